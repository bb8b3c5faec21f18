"""The step `count`, and what `irdiff explain` says of it, on kernels that need no toolchain."""

from dataclasses import replace

import pytest

from irdiff.counted_work import Amount, NotCountedWork, facts_of
from irdiff.model import Artifact, Sides, Verdict
from irdiff.report import work_table
from irdiff.store import Store
from irdiff.work.changed_cases import LaunchCounter
from tests.unit.runs import case, launch, target
from tests.unit.work.kernels import counted, facts

LOOP = """
    MOV R0, RZ
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    .L_x_0:
    LDG.E R6, desc[UR4][R2.64]
    EXTRA
    IADD3 R0, R0, 0x1, RZ
    ISETP.GE.AND P0, PT, R0, c[0x0][0x218], PT
    @!P0 BRA `(.L_x_0)
    EXIT
"""
DATA = """
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    LDG.E R4, desc[UR4][R2.64]
    ISETP.GE.AND P0, PT, R4, 0x1, PT
    @P0 EXIT
    LDG.E R6, desc[UR4][R2.64]
    EXIT
"""
X = 0x7F00_1000_0000


def loop(trips, extra="NOP"):
    return counted(LOOP.replace("EXTRA", extra), facts(X, trips, grid=(8, 1, 1), warps=2))


def compared(base, head):
    return replace(case(verdict=Verdict.CHANGED), work=Sides(base=base, head=head))


def test_both_sides_stand_beside_each_other_with_the_loop_that_differs():
    lines = list(work_table.lines(compared(loop(10), loop(10, "LDG.E R7, desc[UR4][R2.64]"))))
    assert "warps                            16" in lines
    assert "global requests                  160 → 320  +100.0%" in lines
    assert "instructions: global load        160 → 320  +100.0%" in lines
    assert lines[-1] == (
        "loop at 0x30 → 0x30, depth 1, a warp: global requests 10 → 20, global sectors 10 → 20"
    )


def test_a_loop_that_is_gone_is_said():
    unrolled = counted(LOOP.replace("EXTRA", "NOP").replace("@!P0 BRA `(.L_x_0)", "NOP"), facts(X, 1))
    lines = list(work_table.lines(compared(loop(10), unrolled)))
    assert "loops: 1 of depth 1 → none" in lines


def test_what_data_decide_is_an_interval_and_no_fact():
    work = counted(DATA, facts(X))
    assert work.global_requests == Amount(1, 2)
    assert "global_requests" not in facts_of(work)
    assert facts_of(work)["executed_barriers"] == 0
    assert "global requests                  1 to 2" in work_table.lines(compared(work, work))


def test_requests_at_unknown_places_leave_no_number_of_sectors():
    gather = DATA.replace("@P0 EXIT", "IMAD.WIDE R2, R4, 0x4, R2")
    assert not facts_of(counted(gather, facts(X))).keys() & {"global_sectors"}


def test_a_side_that_was_not_counted_says_why():
    lines = list(work_table.lines(compared(NotCountedWork(reason="the loop at 0x10 never ends"), loop(10))))
    assert lines[0] == "base was not counted: the loop at 0x10 never ends"
    assert "global requests                  160" in lines


@pytest.fixture
def counter(tmp_path):
    targets = (target("sm_90"), replace(target("sm_100"), arch=100), target("gfx942"))
    return LaunchCounter(store=Store(tmp_path), nvdisasm=None, targets=targets, report=lambda _: None)


def with_cubin(name, verdict=Verdict.CHANGED):
    cubin = Artifact(stage="cubin", digest="0" * 64, size_bytes=1)
    key = launch(name).key
    return replace(
        case(name, verdict), artifacts=Sides(base={"cubin": cubin}, head={"cubin": cubin}),
        launches=Sides(base=key, head=key),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("a/b:c@sm_90", "no installed toolchain has nvdisasm"),
        ("a/b:c@sm_100", "of sm_100 is not counted yet"),
    ],
)
def test_a_changed_case_that_cannot_be_counted_says_why(counter, name, reason):
    work = counter.count([with_cubin(name)], {launch(name).key: launch(name)})[name]
    assert isinstance(work.base, NotCountedWork)
    assert reason in work.base.reason


@pytest.mark.parametrize(
    ("name", "verdict"), [("a/b:c@sm_90", Verdict.UNCHANGED), ("a/b:c@gfx942", Verdict.CHANGED)]
)
def test_nothing_is_counted_of_other_cases(counter, name, verdict):
    assert counter.count([with_cubin(name, verdict)], {launch(name).key: launch(name)}) == {}
