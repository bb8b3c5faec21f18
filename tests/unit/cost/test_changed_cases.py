"""The step `count`, and what `irdiff explain` says of it, on kernels that need no toolchain."""

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.cost.changed_cases import LaunchCounter, set_other_options
from irdiff.counted_work import Amount, NotCountedWork, facts_of
from irdiff.model import Artifact, Expected, Sides, Verdict
from irdiff.report import phrases, work_table
from irdiff.store import Store
from tests.unit.runs import case, launch, side, target
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
    assert "instructions executed: global load 160 → 320  +100.0%" in lines
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


GATHER = DATA.replace("@P0 EXIT", "IMAD.WIDE R2, R4, 0x4, R2")


def test_requests_at_unknown_places_take_one_sector_to_one_a_lane():
    work = counted(GATHER, facts(X))
    assert work.global_sectors == Amount(2, 33)
    assert not facts_of(work).keys() & {"global_sectors"}


def test_no_share_is_said_of_a_figure_that_is_not_known():
    """A side whose addresses data decide has not lost its sectors."""
    lines = list(work_table.lines(compared(loop(10), counted(GATHER, facts(X)))))
    assert "global sectors of 32 B           160 → 2 to 33" in lines


def test_a_predicate_that_data_decide_makes_an_interval_of_each_figure():
    guarded = DATA.replace("@P0 EXIT", "@P0 STL [R1], R4").replace(
        "LDG.E R6", "@P0 LDS R6, [R0+R4]\n    LDG.E R6"
    )
    work = counted(guarded, facts(X))
    assert work.spill_sectors == Amount(0, 4)
    assert work.shared_wavefronts == Amount(0, 32)
    assert not facts_of(work).keys() & {"spilled_bytes", "shared_wavefronts"}


def test_a_bulk_copy_of_unknown_size_is_no_zero():
    store = "LDG.E R4, desc[UR4][R2.64]\n R2UR UR8, R4\n R2UR UR9, R4\n UTMASTG.2D [UR4], [UR8]\n EXIT"
    work = counted(store, facts(X))
    assert work.tma_bytes == Amount(0, 65536)
    assert "bulk_copied_bytes" not in facts_of(work)


def test_where_data_decide_how_often_a_loop_runs_each_figure_is_the_least():
    work = counted(
        LOOP.replace("EXTRA", "NOP").replace("R0, c[0x0][0x218]", "R6, c[0x0][0x218]"), facts(X, 4)
    )
    assert set(work.trip_counts.values()) == {None}
    assert facts_of(work) == {}
    lines = list(work_table.lines(compared(work, loop(10))))
    assert lines[0] == "base: data decide how often the loop at 0x70 runs"
    assert "global requests                  at least 1 → 160" in lines


@pytest.mark.parametrize("other", [NotCountedWork(reason="the loop at 0x10 never ends"), None])
def test_a_side_that_was_not_counted_has_no_figures(other):
    lines = list(work_table.lines(compared(other, loop(10))))
    why = other.reason if other else "it has no machine code"
    assert lines[:2] == [f"base was not counted: {why}", "figures of head alone:"]
    assert "global requests                  160" in lines
    assert not [line for line in lines if "→" in line or line.startswith("loop")]


TARGETS = (
    target("sm_90"),
    replace(target("sm_100"), arch=100),
    replace(target("sm_120"), arch=120),
    target("gfx942"),
)


@pytest.fixture
def counter(tmp_path):
    return LaunchCounter(store=Store(tmp_path), disassembler=None, report=lambda _: None, is_edited=False)


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
        ("a/b:c@sm_100", "no installed toolchain has nvdisasm"),
        ("a/b:c@sm_120", "of sm_120 is not counted yet"),
    ],
)
def test_a_changed_case_that_cannot_be_counted_says_why(counter, name, reason):
    work = counter.count([with_cubin(name)], {launch(name).key: launch(name)}, TARGETS)[name].work
    assert isinstance(work.base, NotCountedWork)
    assert reason in work.base.reason


def test_machine_code_that_is_not_in_the_store_is_said(counter):
    name = "a/b:c@gfx942"
    artifacts = {stage: Artifact(stage=stage, digest="0" * 64, size_bytes=1) for stage in ("hsaco", "amdgcn")}
    changed = replace(with_cubin(name), artifacts=Sides(base=artifacts, head=artifacts))
    targets = [replace(each, backend="hip", arch=each.name) for each in TARGETS if each.name == "gfx942"]
    work = counter.count([changed], {launch(name).key: launch(name)}, targets)[name].work
    assert work.base == NotCountedWork(reason="its machine code is not in the store any more")
    targets = [replace(targets[0], arch="gfx1200")]
    work = counter.count([changed], {launch(name).key: launch(name)}, targets)[name].work
    assert work.base == NotCountedWork(reason="machine code of gfx942 is not counted yet")


def test_head_is_counted_only_where_base_was(counter):
    sm_120 = "a/b:c@sm_120"
    work = counter.count([with_cubin(sm_120)], {launch(sm_120).key: launch(sm_120)}, TARGETS)[sm_120].work
    assert "not counted yet" in work.head.reason  # a reason of its own costs nothing
    case = "a/b:c@sm_90"
    digest = counter.store.put(b"no binary")
    changed = with_cubin(case)
    cubin = Artifact(stage="cubin", digest=digest, size_bytes=9)
    changed = replace(changed, artifacts=Sides(base={"cubin": cubin}, head={"cubin": cubin}))
    counter = replace(counter, disassembler=Path("/no/nvdisasm"))
    work = counter.count([changed], {launch(case).key: launch(case)}, TARGETS)[case].work
    assert isinstance(work.base, NotCountedWork)
    assert work.head == NotCountedWork(reason="there is nothing to compare it with")


@pytest.mark.parametrize(("name", "why"), [("a/b:c@gfx942", "on this target"), ("a/b:c@sm_120", "of sm_120")])
def test_of_a_target_without_evidence_no_time_is_expected(counter, name, why):
    expected = counter.count([with_cubin(name)], {launch(name).key: launch(name)}, TARGETS)[name].expected
    assert expected.expected is Expected.UNKNOWN
    assert why in expected.why


def test_a_figure_of_one_side_alone_is_no_move():
    base, head = {"registers": 8, "ptx.total": 3}, {"ptx.total": 4, "ptx.bar": 1}
    assert phrases.moved_facts(base, head) == {"ptx.total": (3, 4), "ptx.bar": (0, 1)}


@pytest.mark.parametrize(
    ("settings", "is_edit"),
    [({}, False), ({"num_stages": "5"}, True), ({"TRITON_DEFAULT_FP_FUSION": "0"}, False)],
)
def test_an_option_that_a_user_gives_all_launches_of_a_side_is_an_edit(settings, is_edit):
    """A variable of the compiler is none: the record of `no change expected` holds one of these."""
    base, head = side("base"), side("head")
    head = replace(head, toolchain=replace(head.toolchain, settings=settings))
    assert set_other_options(Sides(base=base, head=head)) is is_edit
