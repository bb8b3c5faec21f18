"""Options, defaults and specialization that differ."""

from __future__ import annotations

from typing import Any

import pytest

from irdiff.group import launch_causes
from irdiff.model import CauseKind, Launch, Sides, Verdict

CASE = "a/x:1@sm_90"
DIVISIBLE = "((tt.divisibility, 16))"


def told(build: Any, base: dict[str, Any], head: dict[str, Any], **changes: Any) -> list[str]:
    launches: Sides[Launch | None] = Sides(base=build.launch(CASE, **base), head=build.launch(CASE, **head))
    case = build.case(CASE, Verdict.CHANGED, **changes)
    return [f"{row.subject} {row.detail}" for row in launch_causes.of_case(case, launches)]


def test_an_option_that_both_sides_know_is_told_with_both_values(build: Any) -> None:
    four, eight = {"num_warps": "4", "num_stages": "3"}, {"num_warps": "8", "num_stages": "3"}
    assert told(build, {"options": four}, {"options": eight}) == ["`num_warps` 4 → 8"]
    assert told(build, {"options": {}}, {"options": eight}) == [], "which options a release has is no cause"
    constants = told(build, {"constexprs": {"BLOCK": "64"}}, {"constexprs": {"BLOCK": "128"}})
    assert constants == ["`BLOCK` 64 → 128"]
    long = told(build, {"options": {"a": "x" * 90}}, {"options": {"a": "y"}})
    assert long == [f"`a` {'x' * 39}… → y"]


def test_an_option_is_told_as_the_compiler_resolved_it(build: Any) -> None:
    """A default that depends on the target, or that a pass changes."""
    metadata = Sides(base={"num_stages": 3, "shared": 8}, head={"num_stages": 2, "shared": 16})
    options = {"options": {"num_stages": "3"}}
    assert told(build, options, options, metadata=metadata) == ["`num_stages` 3 → 2"]


def test_the_specialization_is_told_by_argument(build: Any) -> None:
    before = {"signature": {"n": "i32", "x": "*fp16", "y": "*fp16"}, "attributes": {"x": DIVISIBLE}}
    after = {"signature": {"n": "constexpr", "x": "*fp16", "y": "*bf16"}, "attributes": {}}
    assert told(build, before, after) == [
        "argument `n` is a constant",
        "type of `y` *fp16 → *bf16",
        "`x` is no longer known to be divisible by 16",
    ]
    back = told(build, after, before)
    assert back[0] == "argument `n` is no constant any more"
    assert back[2] == "`x` is known to be divisible by 16"
    ranged = {"attributes": {"x": f"{DIVISIBLE}, (tt.pointer_range, 32)"}, "signature": {"x": "*fp16"}}
    plain = {"attributes": {"x": DIVISIBLE}, "signature": {"x": "*fp16"}}
    assert told(build, plain, ranged)[0].startswith("specialization of `x` ((tt.divisibility, 16)) → ")


def test_without_launches_nothing_is_known(build: Any) -> None:
    case = build.case(CASE, Verdict.CHANGED)
    assert launch_causes.of_case(case, Sides(base=None, head=None)) == ()


def test_arguments_of_one_side_alone_are_no_causes(build: Any) -> None:
    one = {"signature": {"x": "*fp16"}, "attributes": {"x": DIVISIBLE}}
    two = {"signature": {"x": "*fp16", "y": "*fp16"}, "attributes": {"x": DIVISIBLE, "y": DIVISIBLE}}
    assert told(build, one, two) == told(build, two, one) == []


def test_a_specialization_that_is_gone_is_none(build: Any) -> None:
    ranged = {"attributes": {"x": "(tt.pointer_range, 32)"}, "signature": {"x": "*fp16"}}
    plain = {"attributes": {}, "signature": {"x": "*fp16"}}
    assert told(build, plain, ranged) == ["specialization of `x` none → (tt.pointer_range, 32)"]
    assert told(build, ranged, plain) == ["specialization of `x` (tt.pointer_range, 32) → none"]


def test_all_of_it_is_of_the_launch(build: Any) -> None:
    before = {
        "signature": {"a": "i32", "b": "*fp16", "c": "*i8", "d": "*i8", "e": "*i8"},
        "attributes": {"c": DIVISIBLE, "e": "(tt.pointer_range, 32)"},
        "options": {"num_warps": "4"},
    }
    after = {
        "signature": {"a": "constexpr", "b": "*bf16", "c": "*i8", "d": "*i8", "e": "*i8"},
        "attributes": {"d": DIVISIBLE},
        "options": {"num_warps": "8"},
    }
    launches = Sides(base=build.launch(CASE, **before), head=build.launch(CASE, **after))
    found = launch_causes.of_case(build.case(CASE, Verdict.CHANGED), launches)
    assert [row.kind for row in found] == [CauseKind.LAUNCH] * 6


def test_a_value_is_cut_where_it_is_too_long(build: Any) -> None:
    fits = told(build, {"options": {"a": "x" * 40}}, {"options": {"a": "y"}})
    assert fits == [f"`a` {'x' * 40} → y"]


@pytest.mark.parametrize(
    "name", ["allowed_dot_input_precisions", "supported_fp8_dtypes", "deprecated_fp8_dtypes"]
)
def test_what_a_release_allows_is_no_cause(build: Any, name: str) -> None:
    assert told(build, {"options": {name: "('tf32',)"}}, {"options": {name: "('tf32', 'bf16x3')"}}) == []
