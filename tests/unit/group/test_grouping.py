"""Grouping and severity over made-up cases: equal edits group, others do not, whatever the order."""

from __future__ import annotations

import itertools
import random
import time
from collections import Counter
from dataclasses import replace

import pytest

from irdiff.compare import abstraction, alignment, edits, loops
from irdiff.group import grouping, severity
from irdiff.model import Case, Failure, FailureKind, Origin, Sides, Verdict
from tests.unit.conftest import Build

LAYOUT = "#ttg.blocked<{order = [0], sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4]}>"


def make_case(name: str, verdict: Verdict = Verdict.CHANGED, stage: str = "ttgir", **more: object) -> Case:
    case = Build.case(
        f"family/{name}:x@sm_90",
        verdict,
        id=name,
        workload="w",
        kernel="k",
        origin=Origin(stage=stage, pass_name=None, masked=(), charged=(), note=""),
        stages={},
        error=None,
        failures=Sides(base=None, head=None),
        artifacts=Sides(base={}, head={}),
        edit=None,
    )
    return replace(case, **more)  # type: ignore[arg-type]


def loop_of(*body: str, size: int = 128) -> list[str]:
    return [
        "module {",
        "tt.func public @__kernel__(%0: !tt.ptr<f16>) {",
        f"%1 = arith.constant dense<0.0> : tensor<{size}xf32, {LAYOUT}>",
        "%2 = scf.for %3 = %4 to %5 step %6 iter_args(%7 = %1) -> (tensor<4xf32>) {",
        *body,
        "scf.yield %7 : tensor<4xf32>",
        "}",
        "tt.return",
        "}",
        "}",
    ]


FENCE = "ttng.fence_async_shared {bCluster = false}"


def load(number: int, size: int = 128) -> str:
    return f"%{number} = tt.load %0 : tensor<{size}x!tt.ptr<f16>, {LAYOUT}>"


def test_a_new_line_does_not_drag_the_renumbered_ones_along() -> None:
    base = loop_of(load(8), "%9 = arith.addf %8, %8 : tensor<4xf32>")
    head = loop_of(
        "%8 = ttg.local_alloc : !ttg.memdesc<4xf16>", load(9), "%10 = arith.addf %9, %9 : tensor<4xf32>"
    )
    edit = edits.between("ttgir", base, head)
    assert [(line.sign, line.depth) for line in edit.lines] == [("+", 1)]
    assert list(abstraction.abstract(edit)) == ["+ttg.local_alloc"]


def test_swapped_operands_are_an_edit_where_nothing_else_differs() -> None:
    edit = edits.between("ttgir", ["%2 = arith.subf %0, %1 : f32"], ["%2 = arith.subf %1, %0 : f32"])
    assert sorted(abstraction.abstract(edit)) == ["+arith.subf: operands (other)", "-arith.subf: operands"]


def test_cases_with_the_same_edit_in_other_shapes_are_one_group() -> None:
    rows = {
        "a": edits.between("ttgir", loop_of(load(8)), loop_of(FENCE, load(8))),
        "b": edits.between(
            "ttgir", loop_of(load(8, 64), size=64), loop_of(FENCE, FENCE, load(8, 64), size=64)
        ),
        "c": edits.between("ttgir", loop_of(load(8)), loop_of("ttg.barrier local", load(8))),
    }
    groups, of = grouping.group(
        [make_case(name) for name in rows], lambda case: grouping.describe(case, rows[case.id])
    )
    assert of["a"] == of["b"] != of["c"]
    fence = next(group for group in groups if "a" in group.members)
    assert fence.representative == "a"
    assert fence.title == "1 to 2 more `ttng.fence_async_shared` before `tt.load` in the loop"
    assert fence.severity == "instruction mix in loops", "one more fence is waited for, and races nowhere"
    assert fence.likeness == pytest.approx(0.75)
    assert fence.edit == ("+ttng.fence_async_shared",)


def test_groups_do_not_depend_on_the_order_of_cases() -> None:
    rows = {
        str(n): edits.between("ttgir", loop_of(load(8)), loop_of(*[FENCE] * (n % 3), load(8)))
        for n in range(12)
    }
    cases = [make_case(name) for name in rows]
    first = grouping.group(cases, lambda case: grouping.describe(case, rows[case.id]))
    random.Random(1).shuffle(cases)
    second = grouping.group(cases, lambda case: grouping.describe(case, rows[case.id]))
    assert first[0] == second[0]
    assert dict(sorted(first[1].items())) == dict(sorted(second[1].items()))


def test_broken_cases_group_by_their_message_and_come_first() -> None:
    def failure(path: str) -> Sides[Failure | None]:
        found = Failure(
            kind=FailureKind.ERROR,
            stage="ttgir",
            message=f"PassManager failed at {path}",
            signal=None,
            stderr="",
        )
        return Sides(base=None, head=found)

    cases = [
        make_case("a"),
        make_case("b", Verdict.BROKEN, failures=failure("/x/1")),
        make_case("c", Verdict.BROKEN, failures=failure("/y/22")),
    ]
    groups, _ = grouping.group(cases, lambda case: grouping.describe(case, None))
    assert groups[0].severity == "broken"
    assert groups[0].members == ("b", "c")


@pytest.mark.parametrize(
    ("removed", "added", "reason"),
    [
        ((FENCE,), (), "fence"),
        (("%8 = ttg.async_wait %1 {num = 1 : i32}",), ("%8 = ttg.async_wait %1 {num = 2 : i32}",), "wait"),
        (("%8 = tt.atomic_rmw fadd, relaxed, gpu, %1",), (), "atomic"),
        (("%8 = arith.mulf %1, %1 : f32",), ("%8 = arith.mulf %1, %1 fastmath<fast> : f32",), "rounding"),
        (("%8 = tt.reduce %1 {axis = 0 : i32}",), ("%8 = tt.reduce %1 {axis = 1 : i32}",), "wrong"),
    ],
)  # fmt: skip
def test_edits_that_can_make_results_wrong_say_why(
    removed: tuple[str, ...], added: tuple[str, ...], reason: str
) -> None:
    edit = edits.between("ttgir", loop_of(*removed), loop_of(*added))
    ranked = severity.rank(make_case("a"), edit)
    if reason == "wrong":  # another axis is no other order by itself, so that only the loop counts
        assert ranked.severity is severity.Severity.LOOP
    else:
        assert ranked.severity is severity.Severity.WRONG_RESULT
        assert ranked.reasons[0].startswith(reason)


def test_spills_rank_above_loop_edits_and_below_fences_that_are_gone() -> None:
    spilled = make_case("a", facts=Sides(base={"spill_store_bytes": 0}, head={"spill_store_bytes": 64}))
    plain = edits.between("ttgir", loop_of(), loop_of(load(8)))
    fence = edits.between("ttgir", loop_of(FENCE), loop_of())
    scores = [
        severity.rank(make_case("b"), fence).score,
        severity.rank(spilled, None).score,
        severity.rank(make_case("c"), plain).score,
    ]
    assert scores == sorted(scores, reverse=True)
    assert severity.rank(spilled, None).severity is severity.Severity.RESOURCES


def test_operations_in_another_order_are_code_motion() -> None:
    lines = [load(8), "%9 = arith.addf %1, %1 : f32", "tt.store %0, %8 : tensor<4xf32>"]
    edit = edits.between("ttgir", lines, [lines[1], lines[0], lines[2]])
    assert severity.rank(make_case("a"), edit).severity is severity.Severity.MOTION


def test_loop_depth_through_backward_branches_and_nested_regions() -> None:
    assert loops.depths(["br label %1", "%1:", "x", "br i1 %2, label %1, label %3", "%3:", "y"]) == [
        0,
        1,
        1,
        1,
        0,
        0,
    ]
    text = "scf.for %1 = %2 to %3 {|scf.if %4 {|a|} else {|b|}|%5 = scf.while () {|c|} do {|d|}|}|e"
    nested = text.split("|")
    assert loops.depths(nested) == [0, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 0, 0]


def test_alignment_is_exact_on_small_texts_and_bounded_on_huge_ones() -> None:
    rng = random.Random(7)
    base = [str(rng.randrange(40)) for _ in range(300)]
    head = [line for line in base if rng.random() > 0.1]
    pairs = alignment.matching(base, head)
    assert all(base[i] == head[j] for i, j in pairs)
    assert len(pairs) >= 0.95 * len(head)
    began = time.monotonic()
    alignment.matching([str(n % 977) for n in range(60_000)], [str(n % 983) for n in range(60_000)])
    assert time.monotonic() - began < 10


def test_every_row_of_the_table_has_a_reason_and_lower_classes_weigh_less() -> None:
    weights: dict[severity.Severity, list[float]] = {}
    for row in severity.TABLE:
        assert row.reason
        weights.setdefault(row.severity, []).append(row.weight)
    ordered = [weights[name] for name in severity.Severity if name in weights]
    for above, below in itertools.pairwise(ordered):
        assert min(above) > max(below)


def test_a_change_of_layouts_alone_is_told_as_one() -> None:
    wide = "#ttg.blocked<{order = [0], sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4]}>"
    linear = "#ttg.linear<{block = [], lane = [[1]], register = [[2]], warp = [[4]]}>"

    def title(layout: str) -> str:
        base = loop_of(load(8), "%9 = arith.addf %8, %8 : tensor<4xf32, " + LAYOUT + ">")
        edit = edits.between("ttgir", base, [line.replace(LAYOUT, layout) for line in base])
        return grouping.group([make_case("a")], lambda case: grouping.describe(case, edit))[0][0].title

    assert title(wide) == "`#ttg.blocked` layout: `sizePerThread` [4] → [8]"
    assert title(linear) == "layouts `#ttg.blocked` → `#ttg.linear`"


def test_lines_that_move_beside_new_ones_are_no_other_change() -> None:
    """3.9's fence insertion adds a fence in every kernel, and in some moves one that was there."""
    other = "ttng.other"
    rows = {
        "added": edits.between("ttgir", loop_of(load(8)), loop_of(FENCE, load(8))),
        "moved": edits.between("ttgir", [FENCE, other, load(8)], [other, FENCE, load(8), FENCE]),
        "only moved": edits.between("ttgir", [FENCE, other, load(8)], [other, load(8), FENCE]),
        "removed": edits.between("ttgir", loop_of(FENCE, load(8)), loop_of(load(8))),
    }
    assert rows["moved"].lines[0].sign == "-"
    _, of = grouping.group(
        [make_case(name) for name in rows], lambda case: grouping.describe(case, rows[case.id])
    )
    assert of["added"] == of["moved"]
    assert len(set(of.values())) == 3


def test_other_parameters_of_layouts_are_one_change_whatever_the_kind() -> None:
    def other(kind: str, more: str = "") -> edits.Edit:
        lines = [f"%1 = arith.addf %0, %0 : tensor<4xf32, #ttg.{kind}<{{order = [{n}]}}>>" for n in (0, 1)]
        return edits.between("ttgir", [lines[0], *filter(None, [more])], [lines[1]])

    rows = {"mma": other("nvidia_mma"), "linear": other("linear"), "fewer": other("linear", load(2))}
    groups, of = grouping.group(
        [make_case(name) for name in rows], lambda case: grouping.describe(case, rows[case.id])
    )
    assert of["mma"] == of["linear"] != of["fewer"]
    title = next(group.title for group in groups if "mma" in group.members)
    matrix = "`#ttg.nvidia_mma` layout: `order` [0] → [1] (in 1 of 2 cases)"
    assert title == f"{matrix}, {matrix.replace('nvidia_mma', 'linear')}"


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        (("+ttng.fence", "+ttng.fence", "-ttng.fence"), ("+ttng.fence",)),
        (("+ttng.fence", "-ttng.fence"), ("+ttng.fence", "-ttng.fence")),
        (("+ttng.fence", "-tt.load", "+tt.load"), ("+ttng.fence",)),
        (("+asm ld.global", "-other instructions", "+other instructions"), ("+asm ld.global",)),
        (("-other instructions", "+other instructions"), ("+other instructions", "-other instructions")),
        (
            ("-layout #ttg.linear", "+layout #ttg.blocked", "-tt.make_range"),
            ("+layout #ttg.blocked", "-layout #ttg.linear"),
        ),
        (("-tt.make_range", "-arith.addi"), ("-arith.addi", "-tt.make_range")),
        (("-layout #ttg.linear", "-ttg.convert_layout"), ("-layout #ttg.linear", "-ttg.convert_layout")),
    ],
)
def test_what_makes_an_edit_this_change(lines: tuple[str, ...], wanted: tuple[str, ...]) -> None:
    assert abstraction.essence(Counter(lines)) == wanted
