"""What is not in the code of kernels, and what the first line of a report then says."""

from __future__ import annotations

from dataclasses import replace

from irdiff.compare import launchers
from irdiff.model import ChangedFile, FileChange, Pair, Reach, Run, Sides, Verdict
from irdiff.report import headline
from tests.unit.conftest import Build

CASE = "matmul/tma:fp16@sm_90"


def run(verdict: Verdict = Verdict.UNCHANGED, grid: tuple[int, int, int] | None = (1, 1, 1)) -> Run:
    """Of one case whose base has the grid (1, 1, 1)."""
    base, head = Build.launch(CASE, "base"), Build.launch(CASE, "head", grid=grid)
    case = replace(Build.case(CASE, verdict), launches=Sides(base=base.key, head=head.key))
    return replace(Build.run(case), launches={base.key: base, head.key: head})


def test_another_grid_is_said() -> None:
    assert "another grid" in headline.of(run(grid=(2, 1, 1)))
    for grid in (None, (1, 1, 1)):
        assert headline.of(run(grid=grid)) == headline.of(run())


def test_a_changed_case_says_itself_that_it_changed() -> None:
    assert "grid" not in headline.of(run(Verdict.CHANGED, (2, 1, 1)))


def test_a_launcher_that_differs_is_said() -> None:
    notes = launchers.notes({"cuda": "a"}, {"cuda": "b"}, ["cuda"])
    assert "launcher differs" in headline.of(replace(run(), notes=notes))


def test_files_that_launches_read_are_said() -> None:
    file = ChangedFile(path="bench/run.py", change=FileChange.CHANGED, compiled_by=0, read_by=1, not_run=())
    assert "read 1 changed file" in headline.of(replace(run(), reach=Reach(files=(file,), read_by=1)))


def test_a_run_notes_which_cases_have_another_grid() -> None:
    base, head = Build.launch(CASE, "base"), Build.launch(CASE, "head", grid=(2, 1, 1))
    pair = Pair(
        id=CASE,
        launch_id=base.id,
        target=Build.target("sm_90"),
        base=base,
        head=head,
        supported=Sides(base=True, head=True),
    )
    assert [*launchers.grids([pair])] == [f"1 case launched with another grid: {CASE}"]
    assert [*launchers.grids([replace(pair, head=base)])] == []
