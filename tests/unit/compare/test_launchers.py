"""What is not in the code of kernels, and what the first line of a report then says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from irdiff.compare import launchers
from irdiff.model import ChangedFile, Compiled, FileChange, Reach, Run, Sides
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


# what the backends pack for the launcher


def handed(packed: object) -> Compiled:
    return Compiled(
        handed={} if packed is None else {"packed": packed},
        artifacts={},
        metadata={},
        stage_times_s={},
        stage_cpu_s={},
        assembler=None,
        assembler_log="",
        notes=(),
    )


SAME, OTHER = {JIT: "1"}, {JIT: "2"}


@pytest.mark.parametrize(
    ("base", "head", "runtime", "differs"),
    [
        ([4, 1, 0], [4, 1, 0], OTHER, False),
        ([4, 1, 0], [8, 1, 0], SAME, True),
        ([4, 1, 0], [8, 1, 0], OTHER, True),
        ([4, 1, 0], [4, 1, 0, 0], SAME, True),
        ([4, 1, 0], [4, 1, 0, 0], OTHER, False),
        ([4, 1, 0], None, SAME, False),
    ],
    ids=["same", "value", "value, other launcher", "number", "number, other launcher", "not known"],
)
def test_what_is_packed_is_compared_value_by_value(
    base: object, head: object, runtime: Mapping[str, str], differs: bool
) -> None:
    """Launchers that take another number of values are other files, of which the run has a note."""
    both = Sides(base=handed(base), head=handed(head))
    runtimes: Sides[Mapping[str, str]] = Sides(base=SAME, head=runtime)
    assert launchers.packed_differs(both, runtimes, "cuda") == (("packed",) if differs else ())
    assert differs or base == head or head is None or launchers.notes(runtimes, ["cuda"])
