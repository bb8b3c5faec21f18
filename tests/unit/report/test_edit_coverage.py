"""How far an edit reaches: changed files that launches read, edited lines that cases run, equal compilers."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from irdiff.compare import radius
from irdiff.errors import RunFolderError
from irdiff.github import checks
from irdiff.github.checks import Conclusion
from irdiff.model import (
    ChangedFile,
    Edited,
    EditedFile,
    EditedLine,
    EditedLines,
    EditedSource,
    FileChange,
    Reach,
    Run,
)
from irdiff.report import edit_coverage, headline, markdown
from irdiff.run import run_checks, run_folder

# files that differ


def edited_files(*files: tuple[str, str], of_kernels: bool = False, identical: bool = True) -> Edited:
    rows = [
        EditedFile(path=path, change=FileChange.CHANGED, feeds=(feeds,), counts=feeds != "documents")
        for path, feeds in files
    ]
    return Edited(files=tuple(rows), of_kernels=of_kernels, identical=identical)


@pytest.fixture
def same(build: Any) -> Run:
    run: Run = build.run(edited=edited_files(("docs/a.md", "documents")), cases=(), launches={})
    return replace(run, summary=radius.summarize((), run.targets))


def test_equal_compilers_are_a_success_that_names_what_was_looked_at(same: Run) -> None:
    assert checks.conclusion(same) is Conclusion.SUCCESS
    assert "1 file differs: documents (1)" in markdown.render(same, Path("nowhere"))
    run_checks.check_run(same, Path("run.json"))


def test_a_run_without_cases_is_no_success_by_itself(same: Run) -> None:
    assert same.edited is not None
    for edited in (replace(same.edited, identical=False), None):
        assert checks.conclusion(replace(same, edited=edited)) is Conclusion.FAILURE


def test_nothing_passes_over_cases_that_were_compared_all_the_same(build: Any, same: Run) -> None:
    """As with `--no-cache`."""
    run = replace(build.run(build.case()), edited=same.edited)
    assert not edit_coverage.same_compiler(run)
    assert headline.of(run) != edit_coverage.identical(same.edited or pytest.fail())
    with pytest.raises(RunFolderError, match="called one of the same compiler, and has cases"):
        run_checks.check_run(run, Path("run.json"))


def test_what_differs_decides_what_has_to_be_built() -> None:
    python, native = ("python/triton/a.py", "Python frontend"), ("lib/a.cpp", "native code")
    both, one = (edited_files(*rows, identical=False) for rows in ((python, native), (python,)))
    assert edit_coverage.consequence(both) != edit_coverage.consequence(one)
    many = edited_files(*((f"lib/{n}.cpp", "native code") for n in range(6)), ("a.md", "documents"))
    text = edit_coverage.differing(many)
    assert all(part in text for part in ("7 files", "native code (6: lib/0.cpp", "2 more", "documents (1)"))


# files that launches read


def reading(build: Any, **changes: Any) -> Run:
    file = ChangedFile(path="k.py", change=FileChange.CHANGED, compiled_by=1, read_by=3, not_run=())
    case = build.case("run/rope:1@sm_90")
    run: Run = build.run(case, reach=Reach(files=(replace(file, **changes),), read_by=3))
    return run


@pytest.mark.parametrize(
    ("changes", "words", "conclusion"),
    [
        ({}, "", Conclusion.SUCCESS),
        ({"path": "data.json", "compiled_by": 0, "read_by": 0}, "no launch reads", Conclusion.SUCCESS),
        ({"compiled_by": 0, "read_by": 0}, "no launch reads", Conclusion.NEUTRAL),
        ({"path": "csrc/moe.cu", "compiled_by": 0, "read_by": 0}, "no launch reads", Conclusion.NEUTRAL),
        ({"not_run": ("settings",)}, "no launch runs", Conclusion.NEUTRAL),
        ({"not_run": ("settings",), "compiled_by": 0, "read_by": 0}, "no launch reads", Conclusion.NEUTRAL),
        ({"path": "src/rope.py", "compiled_by": 0}, "no launch compiles", Conclusion.SUCCESS),
        ({"path": "bench/run/rope.py", "compiled_by": 0}, "", Conclusion.SUCCESS),
    ],
    ids=[
        "read",
        "data",
        "unread",
        "not Python",
        "not run",
        "unread and not run",
        "not compiled",
        "a workload alone",
    ],
)
def test_what_no_launch_reads_runs_or_compiles_is_named_once(
    build: Any, changes: dict[str, Any], words: str, conclusion: Conclusion
) -> None:
    run = reading(build, **changes)
    text = edit_coverage.files_sentence(run)
    assert re.findall("no launch [a-z]+", text) == ([words] if words else [])
    assert len(edit_coverage.gaps(run)) == (conclusion is Conclusion.NEUTRAL)
    assert checks.conclusion(run) is conclusion


# edited lines of a compiler


def lines(*cases: int, hunks: tuple[tuple[int, int], ...] = ((9, 99),), unmeasured: int = 0) -> EditedLines:
    rows = (EditedLine(number=10 + i, text=f"step({i});", cases=n) for i, n in enumerate(cases))
    source = EditedSource(path="lib/Fence.cpp", hunks=hunks, lines=tuple(rows))
    by = max(cases, default=0)
    counts = {"cases": 96, "unmeasured": unmeasured, "executed_by": by}
    return EditedLines(sources=(source,), examples=(), without_lines=("x.td",), **counts)


@pytest.mark.parametrize(
    ("found", "places", "reached"),
    [
        (lines(12, 0, 0, 3, 0, unmeasured=1), ["11-12  step(1);", "14  step(4);"], True),
        (lines(0, 0, 0, hunks=((9, 10), (11, 12))), ["10  step(0);", "11-12  step(1);"], False),
        (lines(0, 0, unmeasured=1), ["10-11  step(0);"], True),
        (lines(), [], True),
    ],
    ids=["some ran", "none of two hunks", "some cases were not counted", "comments alone"],
)
def test_edited_lines_that_no_case_runs(
    build: Any, found: EditedLines, places: list[str], reached: bool
) -> None:
    run = build.run(build.case(), edited_lines=found)
    assert edit_coverage.lines_not_run(run) == [f"lib/Fence.cpp:{place}" for place in places]
    assert edit_coverage.no_line_ran(run) == (not reached)
    assert ("nothing is known" in headline.of(run)) == (not reached)
    text = markdown.render(run, Path("nowhere"))
    assert all(place in text for place in places)
    assert ("1 case left no counts" in text) == bool(found.unmeasured)


def test_the_run_keeps_counted_lines_and_bounds_them(build: Any, tmp_path: Path) -> None:
    run = build.run(edited_lines=lines(1, 0))
    (tmp_path / "run.json").write_bytes(run_folder.dump(run))
    assert run_folder.load(tmp_path).edited_lines == run.edited_lines
    long = replace(run, edited_lines=replace(run.edited_lines, without_lines=("x" * 2000,)))
    with pytest.raises(RunFolderError, match="2000 characters"):
        run_checks.check_run(long, tmp_path)
