"""Options, defaults and specialization that differ."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.group import launch_causes, titles
from irdiff.model import CauseKind, Sides, Verdict
from tests.unit import runs
from tests.unit.group.edits_of import added, edit, removed, replaced

CASE = "a/x:1@sm_90"
DIVISIBLE = "((tt.divisibility, 16))"
RANGED = "(tt.pointer_range, 32)"
FOUR, EIGHT = {"num_warps": "4", "num_stages": "3"}, {"num_warps": "8", "num_stages": "3"}
X = {"x": "*fp16"}


def causes(base: dict[str, Any], head: dict[str, Any], **changes: Any) -> list[str]:
    launches = Sides(base=runs.launch(CASE, **base), head=runs.launch(CASE, **head))
    found = launch_causes.of_case(runs.case(CASE, Verdict.CHANGED, **changes), launches)
    assert {row.kind for row in found} <= {CauseKind.LAUNCH}
    return [f"{row.subject} {row.detail}" for row in found]


@pytest.mark.parametrize(
    ("part", "base", "head", "wanted"),
    [
        ("options", FOUR, EIGHT, ["`num_warps` 4 → 8"]),
        ("options", {}, EIGHT, []),  # which options a release has is no cause
        ("options", {"allowed_dot_input_precisions": "a"}, {"allowed_dot_input_precisions": "b"}, []),
        ("options", {"supported_fp8_dtypes": "a"}, {"supported_fp8_dtypes": "b"}, []),
        ("options", {"deprecated_fp8_dtypes": "a"}, {"deprecated_fp8_dtypes": "b"}, []),
        ("constexprs", {"BLOCK": "64"}, {"BLOCK": "128"}, ["`BLOCK` 64 → 128"]),
        ("options", {"a": "x" * 90}, {"a": "y"}, [f"`a` {'x' * 39}… → y"]),
        ("options", {"a": "x" * 40}, {"a": "y"}, [f"`a` {'x' * 40} → y"]),
        ("signature", {"n": "i32"}, {"n": "constexpr"}, ["argument `n` is a constant"]),
        ("signature", {"n": "constexpr"}, {"n": "i32"}, ["argument `n` is no constant any more"]),
        ("signature", {"y": "*fp16"}, {"y": "*bf16"}, ["type of `y` *fp16 → *bf16"]),
        ("signature", X, {**X, "y": "*fp16"}, []),
        ("attributes", {"x": DIVISIBLE}, {}, ["`x` is no longer known to be divisible by 16"]),
        ("attributes", {}, {"x": DIVISIBLE}, ["`x` is known to be divisible by 16"]),
        ("attributes", {}, {"x": RANGED}, [f"specialization of `x` none → {RANGED}"]),
        ("attributes", {"x": RANGED}, {}, [f"specialization of `x` {RANGED} → none"]),
        ("attributes", {}, {"y": DIVISIBLE}, []),  # of an argument that no side has
    ],
)
def test_what_the_launch_passes_differently(
    part: str, base: dict[str, str], head: dict[str, str], wanted: list[str]
) -> None:
    assert causes({part: base}, {part: head}) == wanted


def test_an_option_is_named_as_the_compiler_resolved_it() -> None:
    """A default that depends on the target, or that a pass changes."""
    metadata = Sides(base={"num_stages": 3, "shared": 8}, head={"num_stages": 2, "shared": 16})
    assert causes({"options": FOUR}, {"options": FOUR}, metadata=metadata) == ["`num_stages` 3 → 2"]


def test_an_argument_of_another_type_has_no_specialization_of_its_own() -> None:
    before = {"signature": {"y": "*fp16"}, "attributes": {"y": DIVISIBLE}}
    assert causes(before, {"signature": {"y": "*bf16"}}) == ["type of `y` *fp16 → *bf16"]


def test_without_launches_nothing_is_known() -> None:
    assert launch_causes.of_case(runs.case(CASE, Verdict.CHANGED), Sides(base=None, head=None)) == ()


def test_lines_of_a_launch_that_no_option_explains_are_named() -> None:
    """An option that is written out, configs that an autotuner gains, a grid."""
    lines = [
        added("  option num_stages: 2"),
        *(added(f"  autotuner's config: BLOCK {n}") for n in (1, 2, 3)),
        *replaced("  grid: [4, 1, 1]", "  grid: [8, 1, 1]"),
        removed("  option num_warps: 8"),
    ]
    launch = runs.launch(CASE, options=FOUR)
    other = runs.launch(CASE, options=FOUR | {"num_warps": "8"})
    found = titles.causes_of(
        runs.case(CASE, Verdict.CHANGED), edit("launch", *lines), Sides(base=launch, head=other)
    )
    assert titles.of_case(runs.case(CASE, Verdict.CHANGED), found) == (
        "`num_warps` 4 → 8, grid [4, 1, 1] → [8, 1, 1], 2 other edits"
    )
    found = titles.causes_of(
        runs.case(CASE, Verdict.CHANGED), edit("launch", *lines[:4]), Sides(base=launch, head=launch)
    )
    assert titles.of_case(runs.case(CASE, Verdict.CHANGED), found) == (
        "3 more autotuner's configs, one more option num_stages"
    )
