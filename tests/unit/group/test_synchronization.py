"""What takes synchronization away, and what adds it."""

from __future__ import annotations

import pytest

from irdiff.compare.edits import EditLine
from irdiff.group.synchronization import BARRIER, FENCE, WAIT, taken
from irdiff.group.synchronization import added as more
from tests.unit.group.edits_of import added, removed, replaced

LINES = [
    (FENCE, "ttng.fence_async_shared"),
    (BARRIER, "ttg.barrier local"),
    (WAIT, "%1 = ttg.async_wait %0 {num = 2 : i32}"),
]


@pytest.mark.parametrize(("pattern", "line"), LINES)
def test_one_fewer_is_taken_and_one_more_is_added(pattern: object, line: str) -> None:
    def both(*lines: EditLine) -> tuple[float, float]:
        return taken(pattern, lines), more(lines)  # type: ignore[arg-type]

    assert both(removed(line)) == (0.5, 0.0)
    assert both(added(line)) == (0.0, 0.5)
    assert both(added(line, depth=1)) == (0.0, 0.75)
    assert both(added(line), removed(line)) == (0.0, 0.0)
    assert both(added(line), added(line), removed(line)) == (0.0, 0.5)
    assert both(added("tt.other")) == both() == (0.0, 0.0)


@pytest.mark.parametrize(("pattern", "line"), LINES)
def test_what_left_a_loop_is_taken(pattern: object, line: str) -> None:
    lines = [removed(line, depth=1), added(line)]
    assert taken(pattern, lines) == 0.75  # type: ignore[arg-type]
    assert more(lines) == 0.0
    into = [removed(line), added(line, depth=1)]
    assert taken(pattern, into) == 0.0  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("many", "few"),
    [
        ("%1 = ttg.async_wait %0 {num = 2 : i32}", "%7 = ttg.async_wait %0 {num = 1 : i32}"),
        ("%1 = ttng.warp_group_dot_wait %0 {pendings = 1 : i32}", "%1 = ttng.warp_group_dot_wait %0 {pendings = 0 : i32}"),
        ("s_waitcnt vmcnt(3)", "s_waitcnt vmcnt(0)"),
        ("cp.async.wait_group 2;", "cp.async.wait_group 0;"),
    ],
)  # fmt: skip
def test_a_wait_that_leaves_fewer_unfinished_is_a_cost_the_other_way_a_risk(many: str, few: str) -> None:
    assert (taken(WAIT, replaced(many, few)), more(replaced(many, few))) == (0.0, 0.5)
    assert (taken(WAIT, replaced(few, many)), more(replaced(few, many))) == (0.5, 0.0)


def test_a_wait_of_several_counts_is_stricter_only_where_none_grew() -> None:
    mixed = replaced("s_waitcnt vmcnt(3) lgkmcnt(0)", "s_waitcnt vmcnt(0) lgkmcnt(1)")
    assert taken(WAIT, mixed) == 0.5
    gone = replaced("s_waitcnt vmcnt(3) lgkmcnt(0)", "s_waitcnt vmcnt(3)")
    assert taken(WAIT, gone) == 0.5


@pytest.mark.parametrize(
    "line", ["rocdl.sched.barrier 0", "rocdl.sched.group.barrier 8, 1, 0", "; sched_barrier mask(0x0)"]
)
def test_a_mark_for_the_scheduler_synchronizes_nothing(line: str) -> None:
    assert taken(BARRIER, [removed(line)]) == more([added(line)]) == 0.0


def test_another_scope_or_ordering_is_a_risk_either_way() -> None:
    device, group = "llvm.fence syncscope(agent) release", "llvm.fence syncscope(workgroup) release"
    assert taken(FENCE, replaced(device, group)) == taken(FENCE, replaced(group, device)) == 0.5
    assert more(replaced(device, group)) == 0.0


@pytest.mark.parametrize(
    "line", ["ttng.arrive_barrier %0, 1", "mbarrier.arrive.b64 %0;", "ttng.wait_barrier %0, %1"]
)
def test_what_counts_arrivals_is_no_plain_synchronization(line: str) -> None:
    for change in (added(line), removed(line)):
        assert taken(BARRIER, [change]) == taken(WAIT, [change]) == more([change]) == 0.0


def test_waits_of_amds_code_generator_follow_the_order_of_the_rest() -> None:
    wait = "s_waitcnt vmcnt(0)"
    assert taken(WAIT, [removed(wait)]) == 0.5, "nothing else differs: it is the wait itself"
    assert taken(WAIT, [removed(wait), added("v_add_u32 v1, v2, v3")]) == 0.0


def test_a_wait_that_counts_something_else_is_another_wait() -> None:
    """It waits for fewer of one kind, whatever it does for the other."""
    assert taken(WAIT, replaced("s_waitcnt vmcnt(1)", "s_waitcnt lgkmcnt(0)")) == 0.5
    assert taken(WAIT, replaced("s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)")) == 0.5


def test_a_wait_may_keep_one_of_its_counts() -> None:
    kept = replaced("s_waitcnt vmcnt(3) lgkmcnt(0)", "s_waitcnt vmcnt(2) lgkmcnt(0)")
    assert (taken(WAIT, kept), more(kept)) == (0.0, 0.5)


def test_the_deepest_of_all_that_was_added_counts() -> None:
    lines = [added("ttng.fence_async_shared", depth=2), added("ttg.barrier local")]
    assert more(lines) == 1.0
