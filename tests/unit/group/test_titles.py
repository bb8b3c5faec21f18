"""Titles of groups, from edits that Triton 3.8.0 → 3.9.0 made (shortened lines of canonical IR)."""

from __future__ import annotations

import pytest

from irdiff.compare import edits
from irdiff.compare.edits import Edit
from irdiff.group import titles
from irdiff.model import Sides, Verdict
from tests.unit.findings import findings
from tests.unit.group.test_grouping import make_case

WRAP = ("llvm.func @__kernel__(%0: i32) {", "llvm.return", "}")
BLOCKED = "#ttg.blocked<{order = [0], sizePerThread = [1]}>"
LINEAR = "#ttg.linear<{block = [], register = [[2]]}>"


def edit_of(stage: str, base: tuple[str, ...], head: tuple[str, ...]) -> Edit:
    start, *end = WRAP
    return edits.between(stage, [start, *base, *end], [start, *head, *end])


def title(stage: str, base: tuple[str, ...], head: tuple[str, ...], origin: str = "", **more: object) -> str:
    case = make_case("a", stage=origin or ("llir" if stage == "mlir" else stage), **more)
    return titles.title(case, edit_of(stage, base, head))


def asm(text: str) -> str:
    return f'llvm.inline_asm has_side_effects asm_dialect = att operand_attrs = [] "{text}", "r,r" %0, %0 : (i32)'


REAL = [
    (
        "a call is told by its callee",
        "mlir",
        ("%1 = llvm.call @__nv_umulhi(%0, %0) : (i32, i32) -> i32",) * 2,
        ("%1 = llvm.zext %0 : i32 to i64", "%2 = llvm.mul %1, %1 : i64", "%3 = llvm.trunc %2 : i64 to i32"),
        "-2 `call @__nv_umulhi`",
    ),
    (
        "inline assembly by its instructions",
        "mlir",
        ("%9 = ttg.warp_id", asm("@$0 st.shared::cta.v2.b32 [ $1 + 0 ], {$2, $3};")),
        ("llvm.store %1, %2 : vector<2xi32>, !llvm.ptr<3>",),
        "-1 `asm st.shared::cta.v2.b32`, +1 `store shared`, -1 `ttg.warp_id`",
    ),
    (
        "barriers before what comes with them",
        "mlir",
        ("%1 = llvm.add %0, %0 : i32", "%2 = llvm.fdiv %0, %0 : f32"),
        ("llvm.fence syncscope(workgroup) release", "rocdl.s.barrier", "llvm.fence syncscope(workgroup) acquire"),
        "+2 `llvm.fence`, +1 `rocdl.s.barrier`, -1 `llvm.fdiv`",
    ),
    (
        "an attribute by name and value on both sides",
        "ttgir",
        ("%1 = ttg.async_wait %0 {num = 2 : i32}",),
        ("%1 = ttg.async_wait %0 {num = 1 : i32}",),
        "`ttg.async_wait`: `num = 2` → `num = 1`",
    ),
    (
        "an attribute of one side only",
        "ttgir",
        ("%1 = ttg.local_load %0 : !ttg.memdesc<64x64xf16>",),
        ("%1 = ttg.local_load %0 {ttg.amdg.syncedViaAsyncWait = false} : !ttg.memdesc<64x64xf16>",),
        "`ttg.local_load` with `ttg.amdg.syncedViaAsyncWait = false`",
    ),
    (
        "what replaced a division",
        "ttgir",
        ("%1 = arith.divf %0, %0 : f32",),
        ("%1 = tt.approx_divf %0, %0 : f32", "%2 = arith.mulf %1, %1 : f32"),
        "-1 `arith.divf`, +1 `tt.approx_divf`, +1 `arith.mulf`",
    ),
    (
        "layouts before the index arithmetic that came with them",
        "ttgir",
        (
            f"%1 = tt.make_range : tensor<64xi32, {LINEAR}>",
            *(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {LINEAR}>" for n in range(2, 5)),
        ),
        tuple(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {BLOCKED}>" for n in range(1, 4)),
        "layouts `#ttg.linear` → `#ttg.blocked`, -1 `tt.make_range`",
    ),
    (
        "a constant that moved",
        "ttir",
        ("%1 = arith.constant dense<0.0> : tensor<16xf32>", "%2 = tt.dot %0, %0", "%3 = tt.trans %2"),
        ("%1 = tt.dot %0, %0", "%2 = tt.trans %1", "%3 = arith.constant dense<0.0> : tensor<16xf32>"),
        "`arith.constant` moved",
    ),
    (
        "inferred attributes of LLVM IR",
        "llir",
        ("define void @f(ptr addrspace(1) readnone %4, ptr addrspace(1) readnone %5) {",),
        ("define void @f(ptr addrspace(1) nofree readnone %4, ptr addrspace(1) nofree readnone %5) {",),
        "flags and inferred attributes in the LLVM IR: +1 `nofree`",
    ),
    (
        "an optimizer's output by its classes",
        "llir",
        ("%1 = fmul float %0, %0", "%2 = fadd float %1, %0", "%3 = add i32 %0, 1"),
        ("%1 = fadd float %0, %0", "%2 = xor i32 %0, 1", "%3 = or i32 %0, 1"),
        "-1 float instructions",
    ),
    (
        "what tells nothing by its classes",
        "llir",
        ("%1 = add i32 %0, 1",),
        ("%1 = xor i32 %0, 1", "%2 = shl i32 %1, 1"),
        "other integer arithmetic in the LLVM IR",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("stage", "base", "head", "wanted"), [row[1:] for row in REAL], ids=[r[0] for r in REAL]
)
def test_real_edits(stage: str, base: tuple[str, ...], head: tuple[str, ...], wanted: str) -> None:
    assert title(stage, base, head) == wanted


def test_other_attributes_in_llvm_ir_do_not_hide_an_edit_of_a_pass() -> None:
    """The finding is about the stage's artifact, the edit about the pass: the title says the edit."""
    text = title(
        "mlir",
        ("rocdl.raw.ptr.buffer.store %0, %0 : i16",),
        ("rocdl.raw.ptr.buffer.store %0, %0, 0 : i16",),
        findings=findings("inferred-attributes-only"),
    )
    assert text.startswith("`rocdl.raw.ptr.buffer.store` with ")


def test_many_operations_are_counted_and_facts_follow() -> None:
    base = tuple(f"%{n} = tt.op{n} %0 : i32" for n in range(1, 6))
    facts = Sides(
        base={"registers": 168, "spill_store_bytes": 0, "ttgir.convert_layout": 3},
        head={"registers": 255, "spill_store_bytes": 64, "ttgir.convert_layout": 5},
    )
    assert title("ttgir", base, (), facts=facts) == (
        "-1 `tt.op1`, -1 `tt.op2`, 3 other operations, convert_layout 3 → 5, spills 0 → 64 B, registers 168 → 255"
    )


def test_a_part_that_does_not_fit_is_left_out_whole() -> None:
    base = tuple(f"%{n} = tt.{'long' * 15}{n} %0 : i32" for n in range(1, 3))
    facts = Sides(base={"ptx.total": 3009}, head={"ptx.total": 2986})
    text = title("ttgir", base, (), facts=facts)
    assert len(text) <= titles.MAX_TITLE
    assert text.endswith("2`")


def test_a_case_that_breaks_says_where() -> None:
    assert titles.title(make_case("a", Verdict.BROKEN), None) == "breaks"
    assert titles.title(make_case("a", stage="sass"), None) == "other machine code from the same PTX"


def test_barriers_that_another_pass_made_before_are_as_many_in_the_assembly() -> None:
    """3.8 inserts barriers while it lowers, 3.9 in a pass of its own."""
    facts = Sides(base={"amdgcn.barrier": 3}, head={"amdgcn.barrier": 3})
    text = title("mlir", (), ("ttg.barrier local",), facts=facts)
    assert text == "+1 `ttg.barrier`, as many barriers in the assembly"
    more = Sides(base={"amdgcn.barrier": 3}, head={"amdgcn.barrier": 4})
    assert title("mlir", (), ("ttg.barrier local",), facts=more) == "+1 `ttg.barrier`, barriers 3 → 4"
