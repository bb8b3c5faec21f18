"""Which operations stand for which."""

from __future__ import annotations

import pytest

from irdiff.group import replacements
from irdiff.model import Cause, CauseKind


def number(subject: str, count: int, in_loops: int = 0) -> Cause:
    return Cause(kind=CauseKind.NUMBER, subject=subject, count=count, in_loops=in_loops, ahead="", detail="")


def told(numbers: list[Cause], hidden: list[Cause] | None = None) -> list[tuple[str, str, int, str]]:
    return [
        (row.kind.value, row.subject, row.count, row.detail)
        for row in replacements.joined(numbers, hidden or [])
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("`arith.divf`", "`tt.approx_divf`"),
        ("`tt.expand_dims`", "`tt.reshape`"),
        ("inline `st.shared::cta.v4.b32`", "`store` to shared memory"),
        ("`nvvm.barrier0`", "`ttg.barrier`"),
        ("`ld.global.v4.b32`", "`ld.global.v2.b32`"),
    ],
)
def test_two_of_a_kind_in_equal_numbers_are_a_replacement(before: str, after: str) -> None:
    assert told([number(before, -2), number(after, 2)]) == [("replaced", f"{before} → {after}", 2, "")]
    apart = told([number(before, -2), number("`ttg.warp_id`", 2)])
    assert apart == [("number", before, -2, ""), ("number", "`ttg.warp_id`", 2, "")]


def test_unequal_numbers_are_one_only_where_lanes_alone_differ() -> None:
    vectors = told([number("`llvm.copysign.f32`", -8), number("`llvm.copysign.v2f32`", 4)])
    assert vectors == [("replaced", "`llvm.copysign.f32` → `llvm.copysign.v2f32`", 8, "8 → 4")]
    assert len(told([number("`arith.divf`", -2), number("`tt.approx_divf`", 1)])) == 2
    assert len(told([number("`llvm.rint.f32`", -4), number("`llvm.copysign.v2f32`", 4)])) == 2, (
        "types are no name"
    )


def test_a_call_is_replaced_by_arithmetic_that_is_not_told_for_itself() -> None:
    call, hidden = (
        number("call of `__nv_umulhi`", -130),
        [number("`llvm.zext`", 260), number("`llvm.mul`", 130)],
    )
    assert told([call], hidden) == [("replaced", "calls of `__nv_umulhi` → `llvm.mul`", 130, "")]
    assert told([call], hidden[:1]) == [("number", "call of `__nv_umulhi`", -130, "")]
    assert told([number("`arith.mulhi`", -130)], hidden)[0][0] == "number", "only calls look there"


def test_loops_are_those_of_what_is_gone() -> None:
    found = replacements.joined([number("`tt.expand_dims`", -3, 2), number("`tt.reshape`", 3, 3)], [])
    assert (found[0].count, found[0].in_loops) == (3, 2)
