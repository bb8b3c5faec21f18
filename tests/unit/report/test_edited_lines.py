"""What every report says of the edited lines that ran, and of those that did not."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from irdiff.errors import RunFolderError
from irdiff.model import EditedLine, EditedLines, EditedSource, Run
from irdiff.report import edit_coverage, html, markdown, terminal
from irdiff.run import run_checks, run_folder

PATH = "lib/Fence.cpp"


def source(*cases: int, hunks: tuple[tuple[int, int], ...] = ()) -> EditedSource:
    lines = (EditedLine(number=10 + i, text=f"step({i});", cases=n) for i, n in enumerate(cases))
    return EditedSource(path=PATH, hunks=hunks or ((9, 99),), lines=tuple(lines))


def counted(*cases: int, unmeasured: int = 0, without: tuple[str, ...] = ()) -> EditedLines:
    by = max(cases, default=0)
    return EditedLines(
        sources=(source(*cases),),
        cases=96,
        unmeasured=unmeasured,
        executed_by=by,
        examples=(),
        without_lines=without,
    )


@pytest.fixture
def run(build) -> Run:
    return replace(build.run(), edited_lines=counted(12, 0, 0, 3, 0, unmeasured=1, without=("Passes.td",)))


def test_a_sentence_counts_lines_and_cases(run: Run) -> None:
    assert edit_coverage.lines_sentence(run) == (
        "edited lines executed: 2 of 5, by 12 of 96 cases; "
        "1 case left no counts (the compiler died); not counted by line: Passes.td"
    )


def test_lines_that_follow_one_another_are_one_place(run: Run) -> None:
    places = list(edit_coverage.lines_not_run(run))
    assert places == [f"{PATH}:11-12  step(1);", f"{PATH}:14  step(4);"]


def test_two_hunks_are_two_places(run: Run) -> None:
    assert run.edited_lines is not None
    apart = replace(run.edited_lines, sources=(source(0, 0, 0, hunks=((9, 10), (11, 12))),))
    places = [stretch.split()[0] for stretch in edit_coverage.lines_not_run(replace(run, edited_lines=apart))]
    assert places == [f"{PATH}:10", f"{PATH}:11-12"]


def test_an_edit_that_nothing_reaches_is_said_to_be_one(run: Run) -> None:
    unreached = replace(run, edited_lines=counted(0, 0))
    assert "no case reaches the edit" in edit_coverage.lines_sentence(unreached)
    assert [row.split()[0] for row in edit_coverage.lines_not_run(unreached)] == [f"{PATH}:10-11"]


def test_comments_alone_are_no_lines_that_could_run(run: Run) -> None:
    told = edit_coverage.lines_sentence(replace(run, edited_lines=counted()))
    assert told == "edited lines executed: none of them holds code that runs"


def test_nothing_is_said_where_nothing_was_counted(build) -> None:
    assert edit_coverage.lines_sentence(build.run()) == ""
    assert edit_coverage.lines_not_run(build.run()) == []


def test_every_report_names_the_lines(run: Run, tmp_path: Path) -> None:
    printed = io.StringIO()
    terminal.show(run, tmp_path, Console(file=printed, width=200))
    for text in (printed.getvalue(), markdown.render(run, tmp_path), html.render(run, tmp_path)):
        assert "edited lines executed: 2 of 5" in text
        assert f"{PATH}:11-12" in text
        assert "step(1);" in text


def test_the_run_keeps_them_and_bounds_them(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(run_folder.dump(run))
    assert run_folder.load(tmp_path).edited_lines == run.edited_lines
    assert run.edited_lines is not None
    long = replace(run, edited_lines=replace(run.edited_lines, without_lines=("x" * 2000,)))
    with pytest.raises(RunFolderError, match="2000 characters"):
        run_checks.check_run(long, tmp_path)
