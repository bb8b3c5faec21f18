"""Every row of the table: where it holds, how far, and what it adds up to."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.compare.edits import Edit
from irdiff.group import severity
from irdiff.group.severity import Ranked, Severity, measures, rank
from irdiff.model import Case, Verdict
from tests.unit.group.edits_of import added, edit, removed, replaced

CASE = "matmul/tma:fp16@sm_90"
WAIT = "%1 = ttg.async_wait %0 {num = 2 : i32}"


def facts(build: Any, base: dict[str, Any], head: dict[str, Any]) -> Case:
    case: Case = build.case(CASE, Verdict.CHANGED, base=base, head=head)
    return case


def plain(build: Any, **changes: Any) -> Case:
    case: Case = build.case(CASE, Verdict.CHANGED, **changes)
    return case


def held(case: Case, of: Edit | None = None) -> dict[str, float]:
    return {name: round(measure, 6) for name, measure in measures(case, of).items()}


# what an edit touches


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("signal", "ttng.arrive_barrier %0, 1"),
        ("signal", "ttng.wait_barrier %0, %1"),
        ("atomic", "%1 = tt.atomic_rmw fadd, relaxed, gpu, %0"),
        ("rounding", "%1 = arith.mulf %0, %0 fastmath<contract> : f32"),
        ("reduction-order", "%1 = tt.reduce %0 {axis = 0 : i32}"),
    ],
)
def test_a_line_more_or_less_outside_of_loops_holds_by_half(build: Any, name: str, line: str) -> None:
    assert held(plain(build), edit("ttgir", added(line)))[name] == 0.5
    assert held(plain(build), edit("ttgir", removed(line)))[name] == 0.5
    assert name not in held(plain(build), edit("ttgir", removed(line), added(line)))
    assert name not in held(plain(build), edit("ttgir", added("tt.other")))
    assert name not in held(plain(build), None)


@pytest.mark.parametrize(
    ("name", "line"),
    [("fence", "ttng.fence_async_shared"), ("barrier", "ttg.barrier local"), ("wait", WAIT)],
)
def test_synchronization_that_is_gone_is_a_risk_and_one_more_a_cost(build: Any, name: str, line: str) -> None:
    assert held(plain(build), edit("ttgir", removed(line)))[name] == 0.5
    more = held(plain(build), edit("ttgir", added(line)))
    assert name not in more
    assert more["synchronization"] == 0.5
    assert "synchronization" not in held(plain(build), edit("ttgir", removed(line)))
    ranked = rank(plain(build), edit("ttgir", added(line, depth=1)))
    assert ranked.severity is Severity.LOOP
    assert rank(plain(build), edit("ttgir", added(line))).severity is Severity.OTHER


@pytest.mark.parametrize(("depth", "measure"), [(0, 0.5), (1, 0.75), (2, 1.0), (3, 1.0)])
def test_a_line_counts_for_more_the_deeper_its_loop(build: Any, depth: int, measure: float) -> None:
    rows = [removed("ttng.fence"), removed("ttng.fence", depth=depth)]
    assert held(plain(build), edit("ttgir", *rows))["fence"] == measure


def test_as_many_lines_that_say_something_else_hold_too(build: Any) -> None:
    """The count of a wait, the scope of a fence; of rounding only what the pattern itself finds."""
    other = WAIT.replace("num = 2", "num = 3")
    assert held(plain(build), edit("ttgir", *replaced(WAIT, other)))["wait"] == 0.5
    renumbered = WAIT.replace("%1", "%7").replace("%0", "%6")
    assert "wait" not in held(plain(build), edit("ttgir", *replaced(WAIT, renumbered)))
    near, zero = "%1 = cvt.rn.f16 %0", "%1 = cvt.rz.f16 %0"
    assert held(plain(build), edit("ptx", *replaced(near, zero)))["rounding"] == 0.5
    assert "rounding" not in held(plain(build), edit("ptx", *replaced(near, near.replace("f16", "bf16"))))


def test_one_of_several_lines_that_differ_is_enough(build: Any) -> None:
    same = (removed(WAIT), added(WAIT))
    rows = (*same, *replaced(WAIT, WAIT.replace("2", "3")))
    assert "wait" in held(plain(build), edit("ttgir", *rows))
    assert "wait" not in held(plain(build), edit("ttgir", *same, *same))


# facts that grew or fell


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("spills", "spill_store_bytes"),
        ("spills", "spill_load_bytes"),
        ("spills", "vgpr_spills"),
        ("spills", "sgpr_spills"),
        ("spills", "scratch_bytes"),
        ("shared-memory", "shared_bytes"),
        ("shared-memory", "lds_bytes"),
        ("shared-memory", "tmem_columns"),
        ("registers", "registers"),
        ("registers", "vgprs"),
        ("registers", "agprs"),
    ],
)
def test_what_grew_holds_by_how_far_it_did(build: Any, name: str, fact: str) -> None:
    assert held(facts(build, {fact: 0}, {fact: 8}))[name] == 1.0
    assert held(facts(build, {}, {fact: 1}))[name] == 1.0
    assert held(facts(build, {fact: 60}, {fact: 80}))[name] == 0.4
    assert name not in held(facts(build, {fact: 8}, {fact: 8}))
    assert name not in held(facts(build, {fact: 8}, {fact: 7}))
    assert name not in held(facts(build, {fact: 0.5}, {fact: "many"}))


def test_of_several_facts_the_one_that_grew_most_counts(build: Any) -> None:
    base, head = {"vgprs": 60, "agprs": 8}, {"vgprs": 80, "agprs": 8}
    assert held(facts(build, base, head))["registers"] == 0.4


@pytest.mark.parametrize(
    ("name", "fact"),
    [
        ("pipeline", "pipeline_stages"),
        ("pipeline", "ptx.tma"),
        ("pipeline", "ttgir.async_copy"),
        ("narrower-access", "ptx.load_global_128"),
        ("narrower-access", "amdgcn.load_shared_128"),
    ],
)
def test_what_fell_holds_by_the_part_that_is_gone(build: Any, name: str, fact: str) -> None:
    assert held(facts(build, {fact: 4}, {fact: 3}))[name] == 0.25
    assert held(facts(build, {fact: 4}, {}))[name] == 1.0
    assert name not in held(facts(build, {fact: 4}, {fact: 4}))
    assert name not in held(facts(build, {}, {}))
    assert name not in held(facts(build, {fact: 4}, {fact: 5}))


@pytest.mark.parametrize(
    ("base", "head", "measure"),
    [
        ({"warps_per_multiprocessor": 64}, {"warps_per_multiprocessor": 16}, 0.75),
        ({"waves_per_simd": 8}, {"waves_per_simd": 4}, 0.5),
        ({"waves_per_simd": 4}, {"waves_per_simd": 4}, None),
        ({"waves_per_simd": 4}, {"waves_per_simd": 8}, None),
        ({"warps_per_multiprocessor": 16}, {"warps_per_multiprocessor": 0}, 1.0),
        ({"warps_per_multiprocessor": 32}, {}, None),
        ({}, {"warps_per_multiprocessor": 8}, None),
    ],
)
def test_fewer_warps_fit(
    build: Any, base: dict[str, int], head: dict[str, int], measure: float | None
) -> None:
    assert held(facts(build, base, head)).get("occupancy") == measure


# the mix of instructions


@pytest.mark.parametrize("prefix", ["ptx", "amdgcn"])
def test_the_mix_is_the_share_of_instructions_that_moved(build: Any, prefix: str) -> None:
    def mix(base: dict[str, int], head: dict[str, int]) -> float | None:
        rows = [{f"{prefix}.{name}": value for name, value in side.items()} for side in (base, head)]
        return held(facts(build, *rows)).get("instruction-mix")

    assert mix({"total": 10, "mma": 4}, {"total": 10, "mma": 4}) is None
    assert mix({"total": 10, "mma": 4, "load": 1}, {"total": 10, "mma": 3, "load": 2}) == 0.2
    assert mix({"total": 10}, {"total": 10, "mma": 1}) == 0.1
    assert mix({"total": 8, "mma": 1}, {"total": 10, "mma": 2}) == 0.2, "each instruction counts once"
    assert mix({"total": 8}, {"total": 10}) == 0.2, "other instructions than those that are counted"
    assert mix({"total": 1, "mma": 0}, {"total": 1, "mma": 9}) == 1.0
    assert mix({"mma": 0}, {"mma": 1}) == 1.0


def test_only_what_is_counted_in_assembly_is_in_the_mix(build: Any) -> None:
    base, head = (
        {"ptx.total": 10, "ttgir.load": 1, "registers": 8},
        {"ptx.total": 10, "ttgir.load": 2, "registers": 8},
    )
    assert held(facts(build, base, head)) == {}


# loops and motion


def test_matrix_instructions_and_moves_between_layouts_count_in_loops_alone(build: Any) -> None:
    for name, line in (("matrix-unit", "%1 = tt.dot %0, %0"), ("loop-layouts", "%1 = ttg.convert_layout %0")):
        inside = held(plain(build), edit("ttgir", added(line, depth=1)))
        assert (inside[name], inside["loop-edit"]) == (0.75, 0.75)
        outside = held(plain(build), edit("ttgir", added(line), added("tt.other", depth=2)))
        assert name not in outside
        assert outside["loop-edit"] == 1.0
    assert "loop-edit" not in held(plain(build), edit("ttgir", added("tt.other")))
    assert held(plain(build), None) == {}


def test_the_same_operations_elsewhere_are_motion(build: Any) -> None:
    moved = edit("ttgir", removed("%1 = tt.load %0"), added("%5 = tt.load %4"))
    assert held(plain(build), moved) == {"motion": 1.0}
    assert "motion" not in held(plain(build), edit("ttgir", removed("tt.load %0"), added("tt.store %0")))
    assert "motion" not in held(
        plain(build), edit("ttgir", removed("tt.load %0"), added("tt.load %0"), added("tt.load %0"))
    )
    assert "motion" not in held(plain(build), edit("ttgir"))
    counted = facts(build, {"ptx.total": 10}, {"ptx.total": 11})
    assert "motion" not in held(counted, moved), "the assembly has other instructions"


# cases of their own


def test_what_is_known_of_the_case_itself(build: Any) -> None:
    assert held(build.case(CASE, Verdict.BROKEN)) == {"broken": 1.0}
    assert held(plain(build, nondeterministic=("head",))) == {"nondeterministic": 1.0}
    assert held(plain(build, nondeterministic=("base", "head"))) == {"nondeterministic": 1.0}
    assert held(plain(build, nondeterministic=("base",))) == {}, "head agrees with itself: good news"
    assert held(plain(build, findings=build.findings("not-compared:a,b"))) == {"not-compared": 1.0}
    assert held(plain(build, findings=build.findings("launch-differs:num_warps"))) == {"launch": 1.0}


# what it adds up to


def test_a_change_that_was_absorbed_weighs_nothing(build: Any) -> None:
    ranked = rank(build.case(CASE, Verdict.ABSORBED), edit("ttgir", added("ttng.fence")))
    assert ranked == Ranked(
        severity=Severity.ABSORBED, score=0.0, reasons=("IR differs, the machine code is the same",)
    )


def test_weights_add_up_and_the_gravest_row_has_the_class(build: Any) -> None:
    warps = "warps_per_multiprocessor"
    case = facts(build, {"registers": 60, warps: 32}, {"registers": 80, warps: 24})
    ranked = rank(case, edit("ttgir", removed("ttng.fence", depth=1)))
    assert ranked.severity is Severity.WRONG_RESULT
    occupancy = 3e3 * (32 - 24) / 32
    assert ranked.score == pytest.approx(0.75 * 5e4 + occupancy + 0.4 * 1e3 + 0.75 * 200)
    assert [reason.partition(": ")[0] for reason in ranked.reasons] == [
        "fence",
        "occupancy",
        "registers",
        "loop-edit",
    ]
    assert ranked.reasons[0] == "fence: a fence was removed, or orders less: a missing one is a race"


def test_scores_are_told_to_the_thousandth(build: Any) -> None:
    assert rank(facts(build, {"pipeline_stages": 7}, {"pipeline_stages": 6}), None).score == 214.286


def test_motion_outside_of_loops_is_a_class_of_its_own(build: Any) -> None:
    ranked = rank(plain(build), edit("ttgir", removed("%1 = tt.load %0"), added("%5 = tt.load %4")))
    assert (ranked.severity, ranked.score) == (Severity.MOTION, 1.0)


def test_motion_in_a_loop_counts_as_an_edit_of_the_loop_where_nothing_else_holds(build: Any) -> None:
    """An operation with other attributes is among what is called motion: in a loop that may cost."""

    def reasons(name: str, **sides: Any) -> tuple[Severity, list[str]]:
        rows = (removed(f"%1 = {name} %0", depth=1), added(f"%5 = {name} %4", depth=1))
        ranked = rank(facts(build, sides.get("base", {}), sides.get("head", {})), edit("ttgir", *rows))
        return ranked.severity, [reason.partition(":")[0] for reason in ranked.reasons]

    assert reasons("tt.load") == (Severity.LOOP, ["loop-edit", "motion"])
    assert reasons("tt.dot") == (Severity.LOOP, ["matrix-unit"])
    spilled = {"base": {"spill_store_bytes": 0}, "head": {"spill_store_bytes": 8}}
    assert reasons("tt.load", **spilled) == (Severity.RESOURCES, ["spills", "loop-edit"])


def test_a_change_that_no_row_knows_is_another_one(build: Any) -> None:
    assert rank(plain(build), None) == Ranked(severity=Severity.OTHER, score=0, reasons=())


def test_classes_outweigh_all_that_is_below_them_together() -> None:
    order = list(Severity)
    for number, kind in enumerate(order[:-1]):
        lightest = min((row.weight for row in severity.TABLE if row.severity is kind), default=None)
        heavier = [row.weight for row in severity.TABLE if order.index(row.severity) > number]
        assert lightest is None or lightest / 5 >= max(heavier, default=0) / 5


def test_another_type_of_an_operation_is_no_other_signal(build: Any) -> None:
    one, other = "ttng.arrive_barrier %0, 1", "ttng.arrive_barrier %0, 2"
    assert held(plain(build), edit("ttgir", *replaced(one, other)))["signal"] == 0.5
    typed = [f"%1 = ttng.arrive_barrier %0 : tensor<{size}xi64>" for size in (1, 2)]
    assert "signal" not in held(plain(build), edit("ttgir", *replaced(*typed)))


@pytest.mark.parametrize("name", ["fence", "barrier", "wait", "synchronization"])
def test_without_texts_no_synchronization_is_known_to_differ(build: Any, name: str) -> None:
    assert name not in held(plain(build), None)
