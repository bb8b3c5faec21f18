"""Every row of the table: where it holds, how far, and what it adds up to."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from irdiff.compare.edits import Edit, EditLine
from irdiff.group import severity
from irdiff.group.severity import Severity, measures, rank
from irdiff.model import Case, Verdict
from tests.unit import runs
from tests.unit.group.edits_of import added, edit, removed, replaced

CASE = "matmul/tma:fp16@sm_90"
PLAIN = runs.case(CASE, Verdict.CHANGED)
WAIT = "%1 = ttg.async_wait %0 {num = 2 : i32}"
NEAR = "%1 = cvt.rn.f16 %0"
ARRIVE = "ttng.arrive_barrier %0, 1"


def facts(base: Mapping[str, Any], head: Mapping[str, Any], **changes: Any) -> Case:
    return runs.case(CASE, Verdict.CHANGED, base=base, head=head, **changes)


def held(case: Case, of: Edit | None = None) -> dict[str, float]:
    return {name: round(measure, 6) for name, measure in measures(case, of).items()}


def touched(*lines: EditLine, stage: str = "ttgir") -> dict[str, float]:
    return held(PLAIN, edit(stage, *lines))


# what an edit touches


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("signal", ARRIVE),
        ("signal", "ttng.wait_barrier %0, %1"),
        ("atomic", "%1 = tt.atomic_rmw fadd, relaxed, gpu, %0"),
        ("rounding", "%1 = arith.mulf %0, %0 fastmath<contract> : f32"),
        ("reduction-order", "%1 = tt.reduce %0 {axis = 0 : i32}"),
    ],
)
def test_a_line_more_or_less_outside_of_loops_holds_by_half(name: str, line: str) -> None:
    assert touched(added(line))[name] == touched(removed(line))[name] == 0.5
    assert name not in {*touched(removed(line), added(line)), *touched(added("tt.other")), *held(PLAIN)}


@pytest.mark.parametrize(
    ("name", "line"),
    [("fence", "ttng.fence_async_shared"), ("barrier", "ttg.barrier local"), ("wait", WAIT)],
)
def test_synchronization_that_is_gone_is_a_risk_and_one_more_a_cost(name: str, line: str) -> None:
    less, more = touched(removed(line)), touched(added(line))
    assert (less[name], more["synchronization"]) == (0.5, 0.5)
    assert name not in more
    assert "synchronization" not in less
    assert rank(PLAIN, edit("ttgir", removed(line))).severity is Severity.WRONG_RESULT
    assert rank(PLAIN, edit("ttgir", added(line, depth=1))).severity is Severity.LOOP
    assert rank(PLAIN, edit("ttgir", added(line))).severity is Severity.OTHER
    assert not {name, "synchronization"} & held(PLAIN).keys(), "without texts nothing is known to differ"


@pytest.mark.parametrize(("depth", "measure"), [(0, 0.5), (1, 0.75), (2, 1.0), (3, 1.0)])
def test_a_line_counts_for_more_the_deeper_its_loop(depth: int, measure: float) -> None:
    assert touched(removed("ttng.fence"), removed("ttng.fence", depth=depth))["fence"] == measure


@pytest.mark.parametrize(
    ("name", "line", "other", "measure"),
    [
        ("wait", WAIT, WAIT.replace("num = 2", "num = 3"), 0.5),
        ("wait", WAIT, WAIT.replace("%1", "%7").replace("%0", "%6"), None),
        ("rounding", NEAR, NEAR.replace("rn", "rz"), 0.5),
        ("rounding", NEAR, NEAR.replace("f16", "bf16"), None),
        ("signal", ARRIVE, ARRIVE.replace(", 1", ", 2"), 0.5),
        ("signal", f"%1 = {ARRIVE} : tensor<1xi64>", f"%1 = {ARRIVE} : tensor<2xi64>", None),
    ],
    ids=["count", "renumbered", "rounding", "type", "arrivals", "size"],
)
def test_as_many_lines_that_differ_in_what_matters_hold_too(
    name: str, line: str, other: str, measure: float | None
) -> None:
    stage = "ptx" if name == "rounding" else "ttgir"
    assert touched(*replaced(line, other), stage=stage).get(name) == measure
    same = (removed(line), added(line))
    assert touched(*same, *replaced(line, other), stage=stage).get(name) == measure


# facts that grew or fell


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("spills", "spill_store_bytes spill_load_bytes vgpr_spills sgpr_spills scratch_bytes"),
        ("shared-memory", "shared_bytes lds_bytes tmem_columns"),
        ("registers", "registers vgprs agprs"),
    ],
)
def test_what_grew_holds_by_how_far_it_did(name: str, names: str) -> None:
    for fact in names.split():
        rows = [(0, 8, 1.0), (60, 80, 0.4), (8, 8, None), (8, 7, None), (0.5, "many", None)]
        for before, after, measure in rows:
            assert held(facts({fact: before}, {fact: after})).get(name) == measure, (fact, before, after)
        assert held(facts({}, {fact: 1}))[name] == 1.0
    both = facts({"vgprs": 60, "agprs": 8}, {"vgprs": 80, "agprs": 8})
    assert name != "registers" or held(both)[name] == 0.4, "the one that grew most counts"


@pytest.mark.parametrize(
    ("name", "names"),
    [
        ("pipeline", "pipeline_stages ptx.tma ttgir.async_copy"),
        ("narrower-access", "ptx.load_global_128 amdgcn.load_shared_128"),
    ],
)
def test_what_fell_holds_by_the_part_that_is_gone(name: str, names: str) -> None:
    for fact in names.split():
        assert held(facts({fact: 4}, {fact: 3}))[name] == 0.25
        assert held(facts({fact: 4}, {}))[name] == 1.0
        for before, after in (({fact: 4}, {fact: 4}), ({fact: 4}, {fact: 5}), ({}, {})):
            assert name not in held(facts(before, after))


WARPS, WAVES = "warps_per_multiprocessor", "waves_per_simd"


@pytest.mark.parametrize(
    ("base", "head", "measure"),
    [
        ({WARPS: 64}, {WARPS: 16}, 0.75),
        ({WAVES: 8}, {WAVES: 4}, 0.5),
        ({WAVES: 4}, {WAVES: 4}, None),
        ({WAVES: 4}, {WAVES: 8}, None),
        ({WARPS: 16}, {WARPS: 0}, 1.0),
        ({WARPS: 32}, {}, None),
        ({}, {WARPS: 8}, None),
    ],
)
def test_fewer_warps_fit(base: dict[str, int], head: dict[str, int], measure: float | None) -> None:
    assert held(facts(base, head)).get("occupancy") == measure


@pytest.mark.parametrize("prefix", ["ptx", "amdgcn"])
@pytest.mark.parametrize(
    ("base", "head", "wanted"),
    [
        ({"total": 10, "mma": 4}, {"total": 10, "mma": 4}, None),
        ({"total": 10, "mma": 4, "load": 1}, {"total": 10, "mma": 3, "load": 2}, 0.2),
        ({"total": 10}, {"total": 10, "mma": 1}, 0.1),
        ({"total": 8, "mma": 1}, {"total": 10, "mma": 2}, 0.2),
        ({"total": 8}, {"total": 10}, 0.2),
        ({"total": 1, "mma": 0}, {"total": 1, "mma": 9}, 1.0),
        ({"mma": 0}, {"mma": 1}, 1.0),
    ],
)
def test_the_mix_is_the_share_of_instructions_that_moved(
    prefix: str, base: dict[str, int], head: dict[str, int], wanted: float | None
) -> None:
    rows = [{f"{prefix}.{name}": value for name, value in side.items()} for side in (base, head)]
    assert held(facts(*rows)).get("instruction-mix") == wanted


def test_only_what_is_counted_in_assembly_is_in_the_mix() -> None:
    base = {"ptx.total": 10, "ttgir.load": 1, "registers": 8}
    assert held(facts(base, {**base, "ttgir.load": 2})) == {}


# loops and motion


@pytest.mark.parametrize(
    ("name", "line"), [("matrix-unit", "%1 = tt.dot %0, %0"), ("loop-layouts", "%1 = ttg.convert_layout %0")]
)
def test_matrix_instructions_and_moves_between_layouts_count_in_loops_alone(name: str, line: str) -> None:
    inside, outside = touched(added(line, depth=1)), touched(added(line), added("tt.other", depth=2))
    assert (inside[name], inside["loop-edit"]) == (0.75, 0.75)
    assert (outside.get(name), outside["loop-edit"]) == (None, 1.0)
    assert "loop-edit" not in touched(added("tt.other"))


def test_the_same_operations_elsewhere_are_motion() -> None:
    moved = edit("ttgir", removed("%1 = tt.load %0"), added("%5 = tt.load %4"))
    assert held(PLAIN, moved) == {"motion": 1.0}
    ranked = rank(PLAIN, moved)
    assert (ranked.severity, ranked.score) == (Severity.MOTION, 1.0)
    for lines in ([removed("tt.load"), added("tt.store")], [removed("tt.load"), *[added("tt.load")] * 2], []):
        assert "motion" not in touched(*lines)
    counted = facts({"ptx.total": 10}, {"ptx.total": 11})
    assert "motion" not in held(counted, moved), "the assembly has other instructions"


@pytest.mark.parametrize(
    ("name", "head", "wanted"),
    [
        ("tt.load", {}, (Severity.LOOP, ["loop-edit", "motion"])),
        ("tt.dot", {}, (Severity.LOOP, ["matrix-unit"])),
        ("tt.load", {"spill_store_bytes": 8}, (Severity.RESOURCES, ["spills", "loop-edit"])),
    ],
)
def test_motion_in_a_loop_counts_as_an_edit_of_the_loop_where_nothing_else_holds(
    name: str, head: dict[str, int], wanted: tuple[Severity, list[str]]
) -> None:
    """An operation with other attributes is among what is called motion: in a loop that may cost."""
    rows = (removed(f"%1 = {name} %0", depth=1), added(f"%5 = {name} %4", depth=1))
    ranked = rank(facts({}, head), edit("ttgir", *rows))
    assert (ranked.severity, [reason.partition(":")[0] for reason in ranked.reasons]) == wanted


# cases of their own, and what it adds up to


@pytest.mark.parametrize(
    ("case", "wanted"),
    [
        (runs.case(CASE, Verdict.BROKEN), {"broken": 1.0}),
        (facts({}, {}, nondeterministic=("head",)), {"nondeterministic": 1.0}),
        (facts({}, {}, nondeterministic=("base", "head")), {"nondeterministic": 1.0}),
        (facts({}, {}, nondeterministic=("base",)), {}),  # head agrees with itself: good news
        (facts({}, {}, findings=runs.findings("not-compared:a,b")), {"not-compared": 1.0}),
        (facts({}, {}, findings=runs.findings("launch-differs:num_warps")), {"launch": 1.0}),
    ],
)
def test_what_is_known_of_the_case_itself(case: Case, wanted: dict[str, float]) -> None:
    assert held(case) == wanted


def test_a_change_that_was_absorbed_weighs_nothing_and_an_unknown_one_is_other() -> None:
    absorbed = rank(runs.case(CASE, Verdict.ABSORBED), edit("ttgir", added("ttng.fence")))
    assert (absorbed.severity, absorbed.score) == (Severity.ABSORBED, 0.0)
    unknown = rank(PLAIN, None)
    assert (unknown.severity, unknown.score, unknown.reasons) == (Severity.OTHER, 0, ())


def test_weights_add_up_and_the_gravest_row_has_the_class() -> None:
    case = facts({"registers": 60, WARPS: 32}, {"registers": 80, WARPS: 24})
    ranked = rank(case, edit("ttgir", removed("ttng.fence", depth=1)))
    assert ranked.severity is Severity.WRONG_RESULT
    assert ranked.score == pytest.approx(0.75 * 5e4 + 3e3 * (32 - 24) / 32 + 0.4 * 1e3 + 0.75 * 200)
    names = [reason.partition(": ")[0] for reason in ranked.reasons]
    assert names == ["fence", "occupancy", "registers", "loop-edit"]
    assert rank(facts({"pipeline_stages": 7}, {"pipeline_stages": 6}), None).score == 214.286


def test_every_row_has_a_reason_and_lower_classes_weigh_less() -> None:
    weights: dict[Severity, list[float]] = {}
    for row in severity.TABLE:
        assert row.reason
        weights.setdefault(row.severity, []).append(row.weight)
    ordered = [weights[name] for name in Severity if name in weights]
    assert list(weights) == [name for name in Severity if name in weights]
    assert all(min(above) > max(below) for above, below in itertools.pairwise(ordered))
