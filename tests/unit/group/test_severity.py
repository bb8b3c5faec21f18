"""Every row of the table: where it holds, how far, and what it adds up to."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest

from irdiff.compare.edits import Edit, EditLine
from irdiff.group import severity
from irdiff.group.severity import Severity, measures, rank
from irdiff.model import Bits, Case, EffectClass, Effects, Verdict
from tests.unit import runs
from tests.unit.group.edits_of import added, edit, removed

CASE = "matmul/tma:fp16@sm_90"
PLAIN = runs.case(CASE, Verdict.CHANGED)


def facts(base: Mapping[str, Any], head: Mapping[str, Any], **changes: Any) -> Case:
    return runs.case(CASE, Verdict.CHANGED, base=base, head=head, **changes)


def effects(kind: EffectClass, *said: str) -> Effects:
    return Effects(kind=kind, stage="ptx", said=said, bits=Bits.UNKNOWN)


MOTION = effects(EffectClass.MOTION)


def held(case: Case, of: Edit | None = None) -> dict[str, float]:
    """Without the row of what is proved to do the same."""
    return {n: round(measure, 6) for n, measure in measures(case, of, MOTION).items() if n != "motion"}


def touched(*lines: EditLine, stage: str = "ttgir") -> dict[str, float]:
    return held(PLAIN, edit(stage, *lines))


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


@pytest.mark.parametrize(
    ("kind", "line", "head", "wanted"),
    [
        (
            EffectClass.SYNCHRONIZATION,
            "tt.load",
            {},
            (Severity.WRONG_RESULT, ["synchronization", "loop-edit"]),
        ),
        (EffectClass.FLOAT, "tt.load", {}, (Severity.WRONG_RESULT, ["floating point", "loop-edit"])),
        (EffectClass.UNKNOWN, "tt.load", {}, (Severity.LOOP, ["loop-edit", "not understood"])),
        (
            EffectClass.UNKNOWN,
            "",
            {"ptx.total": 1},
            (Severity.UNKNOWN, ["not understood", "instruction-mix"]),
        ),
        (EffectClass.COST, "", {}, (Severity.OTHER, ["synchronization added"])),
        (EffectClass.MOTION, "tt.dot", {"ptx.total": 1}, (Severity.MOTION, ["motion"])),
        (EffectClass.MOTION, "tt.load", {"spill_store_bytes": 8}, (Severity.RESOURCES, ["spills", "motion"])),
    ],
)
def test_effects_rank_a_case_and_only_what_is_proved_is_motion(
    kind: EffectClass, line: str, head: dict[str, int], wanted: tuple[Severity, list[str]]
) -> None:
    lines = (removed(f"%1 = {line} %0", depth=1), added(f"%5 = {line} %4", depth=1)) if line else ()
    ranked = rank(facts({}, head), edit("ttgir", *lines), effects(kind, "a sentence"))
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


def test_a_change_that_was_absorbed_weighs_nothing_and_what_was_not_read_is_not_understood() -> None:
    absorbed = rank(runs.case(CASE, Verdict.ABSORBED), edit("ttgir", added("ttng.fence")))
    assert (absorbed.severity, absorbed.score) == (Severity.ABSORBED, 0.0)
    unread = rank(PLAIN, None)
    assert (unread.severity, unread.score) == (Severity.UNKNOWN, 150), "nothing is known to be the same"


def test_weights_add_up_and_the_gravest_row_has_the_class() -> None:
    case = facts({"registers": 60, WARPS: 32}, {"registers": 80, WARPS: 24})
    said = effects(EffectClass.MEMORY, "a load is gone")
    ranked = rank(case, edit("ttgir", removed("ttng.fence", depth=1)), said)
    assert ranked.severity is Severity.WRONG_RESULT
    assert ranked.score == pytest.approx(4.5e4 + 3e3 * (32 - 24) / 32 + 0.4 * 1e3 + 0.75 * 200)
    assert ranked.reasons[0] == "memory: a load is gone"
    assert [each.partition(": ")[0] for each in ranked.reasons[1:]] == ["occupancy", "registers", "loop-edit"]


def test_lower_classes_weigh_less() -> None:
    weights: dict[Severity, list[float]] = {}
    for row in severity.TABLE:
        weights.setdefault(row.severity, []).append(row.weight)
    ordered = [weights[name] for name in Severity if name in weights]
    assert list(weights) == [name for name in Severity if name in weights]
    assert all(min(above) > max(below) for above, below in itertools.pairwise(ordered))
