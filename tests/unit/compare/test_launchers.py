"""What is not in the code of kernels, and what the first line of a report then says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from irdiff.compare import launchers
from irdiff.model import ChangedFile, FileChange, Reach, Run, Sides
from irdiff.report import headline
from tests.unit.conftest import Build

CASE = "matmul/tma:fp16@sm_90"


def run() -> Run:
    return Build.run(Build.case(CASE))


JIT, NVIDIA, AMD = (
    f"triton/{name}" for name in ("runtime/jit.py", "backends/nvidia/driver.c", "backends/amd/driver.c")
)


@pytest.mark.parametrize(
    ("changed", "backends", "named"),
    [(JIT, ["cuda"], True), (NVIDIA, ["cuda"], True), (AMD, ["cuda"], False), (AMD, ["cuda", "hip"], True)],
)
def test_a_runtime_that_differs_is_said(changed: str, backends: list[str], named: bool) -> None:
    """That of a backend that no case is for is not used."""
    base = {JIT: "1", NVIDIA: "2", AMD: "3"}
    notes = launchers.notes(Sides(base=base, head={**base, changed: "other"}), backends)
    assert bool(notes) is named
    assert all(changed in note for note in notes)
    told = headline.of(replace(run(), notes=notes))
    assert ("the runtime differs" in told) is named


def test_a_file_of_the_runtime_that_one_side_lacks_is_said() -> None:
    assert launchers.notes(Sides(base={JIT: "1"}, head={}), ["cuda"])
    assert launchers.notes(Sides(base={JIT: "1"}, head={JIT: "1"}), ["cuda"]) == ()


def test_files_that_launches_read_are_said() -> None:
    file = ChangedFile(path="bench/run.py", change=FileChange.CHANGED, compiled_by=0, read_by=1, not_run=())
    assert "read 1 changed file" in headline.of(replace(run(), reach=Reach(files=(file,), read_by=1)))
