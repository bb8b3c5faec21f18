"""What the edit of one case does."""

from __future__ import annotations

import pytest

from irdiff.compare import edits
from irdiff.compare.edits import Edit, EditLine
from irdiff.group import causes
from irdiff.model import Cause, CauseKind
from tests.unit.group.edits_of import added, edit, removed, replaced

WRAP = ("llvm.func @__kernel__(%0: i32) {", "llvm.return", "}")
BLOCKED = "#ttg.blocked<{order = [0], sizePerThread = [1]}>"
LINEAR = "#ttg.linear<{block = [], register = [[2]]}>"


def subjects(of: Edit) -> list[tuple[str, int]]:
    return [(row.subject, row.count) for row in causes.of_edit(of)]


def first(of: Edit) -> Cause:
    return causes.of_edit(of)[0]


def both(*lines: str) -> list[EditLine]:
    return [line for text in lines for line in (removed(text), added(text))]


DEFINE = replaced(
    "define void @f(ptr addrspace(1) readnone %4) {", "define void @f(ptr addrspace(1) nofree readnone %4) {"
)
FLAG = replaced("%1 = fadd float %0, %0", "%1 = fadd nnan float %0, %0")
OPERANDS = [line for n in range(2) for line in replaced(f"tt.zz %{n}, %1", f"tt.zz %1, %{n}")]
ARITHMETIC = [removed("%1 = rocdl.workitem.id.x : i32"), *[removed("%2 = llvm.and %1, %0 : i32")] * 2]
LOAD, STORE = "ld.global.b32 %r1, [%rd1];", "st.global.b32 [%rd1], %r1;"
INTEGERS, CASTS, MOVES = "%1 = add i32 %0, 1", "%1 = bitcast i32 %0 to float", "br label %3"
WORDS = "in another order or with other operands"
SAME = ("the LLVM IR is the same otherwise", 0)
EDITS = {
    "the gravest comes first, then what moved most": (
        edit(
            "ttgir",
            *[*[added("tt.other")] * 3, *[removed("tt.trans")] * 2, added("tt.load"), added("ttng.fence")],
        ),
        [("`ttng.fence`", 1), ("`tt.load`", 1), ("`tt.other`", 3), ("`tt.trans`", -2)],
    ),
    "net counts decide, not how often a line was touched": (
        edit("ttgir", *[removed("tt.aaa")] * 4, *[added("tt.aaa")] * 3, *[added("tt.zzz")] * 2),
        [("`tt.zzz`", 2), ("`tt.aaa`", -1)],
    ),
    "casts and constants come last": (
        edit("ttgir", *[added("arith.constant")] * 3, *[added("arith.extf")] * 2, added("tt.other")),
        [("`tt.other`", 1), ("`arith.constant`", 3), ("`arith.extf`", 2)],
    ),
    # 3.9 puts a barrier of a Gluon matmul for Hopper behind its loop
    "out of the loop": (
        edit("mlir", removed("nvvm.barrier", depth=1), added("nvvm.barrier"), *both("tt.aa")),
        [("`nvvm.barrier` moved out of the loop", 0)],
    ),
    "into the loop": (
        edit("ttgir", removed("tt.splat"), added("tt.splat", depth=1)),
        [("`tt.splat` moved into the loop", 0)],
    ),
    "inferred": (edit("llir", *DEFINE), [("LLVM infers `nofree`", 0), SAME]),
    "flags": (edit("llir", *FLAG), [("`nnan` flag", 1), SAME]),
    "inferred besides others": (
        edit("llir", *DEFINE, *FLAG, added("%2 = fadd float %0, %0")),
        [("`nnan` flag", 1), ("float instruction", 1)],
    ),
    "arithmetic alone": (edit("mlir", *ARITHMETIC), [("`rocdl.workitem.id.x`", -1), ("`llvm.and`", -2)]),
    "arithmetic besides others": (
        edit("mlir", *ARITHMETIC, added("rocdl.s.barrier")),
        [("`rocdl.s.barrier`", 1)],
    ),
    "moved": (
        edit("ttgir", *both("tt.aa", "tt.bb", "tt.bb"), *OPERANDS),
        [("`tt.bb` in another place", 0)],
    ),
    "other operands": (edit("ttgir", *OPERANDS), [("`tt.zz` with other operands", 0)]),
    "head's place": (
        edit("ptx", *replaced(LOAD, STORE), added(LOAD), removed(STORE)),
        [("`ld.global.b32` in another place", 0)],
    ),
    "one class": (edit("llir", *both(INTEGERS)), [(f"integer arithmetic {WORDS}", 0)]),
    "two classes": (
        edit("llir", *both(INTEGERS, CASTS, CASTS, MOVES, MOVES, MOVES)),
        [(f"control flow and addresses and casts {WORDS}", 0)],
    ),
    "dialects": (
        edit("mlir", *both("%1 = nvvm.bitcast %0 : i32 to f32")),
        [(f"addresses and casts {WORDS}", 0)],
    ),
    "braces": (edit("ttgir", *both("}")), [(f"`}}` {WORDS}", 0)]),
    "nothing": (edit("ttgir"), []),
}


@pytest.mark.parametrize("name", EDITS)
def test_what_an_edit_does(name: str) -> None:
    of, wanted = EDITS[name]
    assert subjects(of) == wanted


def test_what_is_inferred_no_longer_and_rounding() -> None:
    assert subjects(edit("llir", *replaced(DEFINE[1].text, DEFINE[0].text)))[0][0].startswith(
        "LLVM no longer"
    )
    rounding = replaced("add.rn.f32 %f1, %f2;", "add.rz.f32 %f1, %f2;")
    assert ("`rz` flag", 1) in subjects(edit("ptx", *rounding))


@pytest.mark.parametrize(
    ("lines", "count", "in_loops"),
    [
        ([added("tt.load", depth=2)], 1, 1),
        ([added("tt.load", depth=1), added("tt.load")], 2, 1),
        ([added("tt.load"), removed("tt.load", depth=1), added("tt.load")], 1, 0),
        ([removed("tt.load", depth=1), removed("tt.load", depth=1), added("tt.load")], -1, 1),
        ([removed("tt.load", depth=1), removed("tt.load")], -2, 1),
    ],
)
def test_how_many_lie_in_loops(lines: list[EditLine], count: int, in_loops: int) -> None:
    row = first(edit("ttgir", *lines))
    assert (row.count, row.in_loops) == (count, in_loops)


def test_synchronization_says_what_it_stands_before() -> None:
    """The edit of 3.8.0 → 3.9.0 in a matmul for Hopper (shortened)."""
    start = ("scf.for %1 {", "ttg.async_wait %0 {num = 2 : i32}", "%2 = ttg.memdesc_index %0")
    end = ("%3 = ttng.warp_group_dot %2, %2, %1", "}")
    fence = "ttng.fence_async_shared {bCluster = false}"
    row = first(edits.between("ttgir", [*start, *end], [*start, fence, *end]))
    assert (row.subject, row.count, row.in_loops, row.ahead) == ("`ttng.fence_async_shared`", 1, 1, "wgmma")
    mma = added("ttg.barrier", ahead="ttng.tc_gen5_mma")
    assert first(edit("ttgir", added("ttg.barrier", ahead="tt.store"), mma)).ahead == ""
    scaled = added("ttg.barrier", ahead="ttng.tc_gen5_mma_scaled")
    only_more = edit("ttgir", mma, scaled, removed("ttg.barrier"))
    assert first(only_more).ahead == "tcgen05.mma"
    assert first(edit("ttgir", removed("ttg.barrier", ahead="tt.store"))).ahead == "`tt.store`"


def test_layouts_come_before_the_index_arithmetic_that_came_with_them_which_is_not_shown() -> None:
    base = (
        f"%1 = tt.make_range : tensor<64xi32, {LINEAR}>",
        *(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {LINEAR}>" for n in range(2, 5)),
    )
    head = tuple(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {BLOCKED}>" for n in range(1, 4))
    start, *end = WRAP
    of = edits.between("ttgir", [start, *base, *end], [start, *head, *end])
    assert subjects(of) == [("layouts `#ttg.linear` → `#ttg.blocked`", 0)]


def test_causes_are_bounded_and_each_is_named_in_one_way() -> None:
    found = causes.of_edit(edit("ttgir", *[added(f"tt.op{n} %0") for n in range(40)]))
    assert len(found) == causes.MAX_CAUSES
    assert {row.kind for row in found} == {CauseKind.NUMBER}
