"""How far an edit reaches: changed files that launches read, edited lines that cases run, equal compilers."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.compare import radius
from irdiff.errors import RunFolderError
from irdiff.model import (
    ChangedFile,
    Edited,
    EditedFile,
    EditedLine,
    EditedLines,
    EditedSource,
    FileChange,
    Reach,
)  # fmt: skip
from irdiff.report import conclusion, edit_coverage, headline, markdown
from irdiff.report.conclusion import Conclusion
from irdiff.run import run_checks
from tests.unit import runs


def edited_files(*files, identical=True):
    changed = FileChange.CHANGED
    rows = [
        EditedFile(path=path, change=changed, feeds=(feeds,), counts=feeds != "documents")
        for path, feeds in files
    ]
    return Edited(files=tuple(rows), of_kernels=False, identical=identical)


SAME = replace(runs.run(), edited=edited_files(("docs/a.md", "documents")), cases=(), launches={})
SAME = replace(SAME, summary=radius.summarize((), SAME.targets))


def test_equal_compilers_are_a_success_and_an_empty_run_is_none(snapshot):
    assert conclusion.of(SAME) is Conclusion.SUCCESS
    assert [headline.of(SAME), *edit_coverage.sentences(SAME)] == snapshot
    run_checks.check_run(SAME, Path("run.json"))
    assert SAME.edited is not None
    for edited in (replace(SAME.edited, identical=False), None):
        assert conclusion.of(replace(SAME, edited=edited)) is Conclusion.FAILURE


def test_nothing_passes_over_cases_that_were_compared_all_the_same():
    """As with `--no-cache`."""
    run = replace(runs.run(runs.case("a/b:c@sm_90")), edited=SAME.edited)
    assert not edit_coverage.same_compiler(run)
    assert headline.of(run) != headline.of(SAME)
    with pytest.raises(RunFolderError, match="called one of the same compiler, and has cases"):
        run_checks.check_run(run, Path("run.json"))


def test_what_differs_decides_what_has_to_be_built(snapshot):
    python, native = ("python/triton/a.py", "Python frontend"), ("lib/a.cpp", "native code")
    many = [*((f"lib/{n}.cpp", "native code") for n in range(6)), ("a.md", "documents")]
    edits = [edited_files(*rows, identical=False) for rows in ([python, native], [python], many)]
    assert [(edit_coverage.differing(row), edit_coverage.consequence(row)) for row in edits] == snapshot


UNREAD = {"compiled_by": 0, "read_by": 0}


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, Conclusion.SUCCESS),
        ({"path": "data.json", **UNREAD}, Conclusion.SUCCESS),
        (UNREAD, Conclusion.NEUTRAL),
        ({"path": "csrc/moe.cu", **UNREAD}, Conclusion.NEUTRAL),
        ({"not_run": ("settings",)}, Conclusion.NEUTRAL),
        ({"not_run": ("settings",), **UNREAD}, Conclusion.NEUTRAL),
        ({"path": "src/rope.py", "compiled_by": 0}, Conclusion.SUCCESS),
        ({"path": "bench/run/rope.py", "compiled_by": 0}, Conclusion.SUCCESS),
    ],
)
def test_what_no_launch_reads_runs_or_compiles_is_named_once(changes, expected, snapshot):
    file = ChangedFile(path="k.py", change=FileChange.CHANGED, compiled_by=1, read_by=3, not_run=())
    reach = Reach(files=(replace(file, **changes),), read_by=3)
    run = replace(runs.run(runs.case("run/rope:1@sm_90")), reach=reach)
    assert len(edit_coverage.not_looked_at(run)) == (expected is Conclusion.NEUTRAL)
    assert conclusion.of(run) is expected
    assert [headline.of(run), edit_coverage.files_sentence(run)] == snapshot


def lines(*cases, hunks=((9, 99),), unmeasured=0):
    rows = (EditedLine(number=10 + i, text=f"step({i});", cases=n) for i, n in enumerate(cases))
    source = EditedSource(path="lib/Fence.cpp", hunks=hunks, lines=tuple(rows))
    counts = {"cases": 96, "unmeasured": unmeasured, "executed_by": max(cases, default=0)}
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
def test_edited_lines_that_no_case_runs(found, places, reached, snapshot):
    run = replace(runs.run(runs.case("a/b:c@sm_90")), edited_lines=found)
    assert edit_coverage.lines_not_run(run) == [f"lib/Fence.cpp:{place}" for place in places]
    assert edit_coverage.no_line_ran(run) is not reached
    assert all(place in markdown.render(run, Path("nowhere")) for place in places)
    assert [headline.of(run), *edit_coverage.sentences(run)] == snapshot
