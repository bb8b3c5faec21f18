"""What the edit of one case does."""

from __future__ import annotations

import pytest

from irdiff.compare import edits
from irdiff.compare.edits import Edit
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


# what became more or fewer


def test_the_gravest_comes_first_then_what_moved_most() -> None:
    lines = [*[added("tt.other")] * 3, *[removed("tt.trans")] * 2, added("tt.load"), added("ttng.fence")]
    assert subjects(edit("ttgir", *lines)) == [
        ("`ttng.fence`", 1),
        ("`tt.load`", 1),
        ("`tt.other`", 3),
        ("`tt.trans`", -2),
    ]


def test_net_counts_decide_not_how_often_a_line_was_touched() -> None:
    lines = [*[removed("tt.aaa")] * 4, *[added("tt.aaa")] * 3, *[added("tt.zzz")] * 2]
    assert subjects(edit("ttgir", *lines)) == [("`tt.zzz`", 2), ("`tt.aaa`", -1)]


def test_casts_and_constants_come_last() -> None:
    lines = [*[added("arith.constant")] * 3, *[added("arith.extf")] * 2, added("tt.other")]
    assert [name for name, _ in subjects(edit("ttgir", *lines))] == [
        "`tt.other`",
        "`arith.constant`",
        "`arith.extf`",
    ]


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
def test_how_many_lie_in_loops(lines: list[edits.EditLine], count: int, in_loops: int) -> None:
    row = first(edit("ttgir", *lines))
    assert (row.count, row.in_loops) == (count, in_loops)


def test_synchronization_says_what_it_stands_before() -> None:
    """The edit of 3.8.0 → 3.9.0 in a matmul for Hopper (shortened)."""
    start = ("scf.for %1 {", "ttg.async_wait %0 {num = 2 : i32}", "%2 = ttg.memdesc_index %0")
    end = ("%3 = ttng.warp_group_dot %2, %2, %1", "}")
    fence = "ttng.fence_async_shared {bCluster = false}"
    row = first(edits.between("ttgir", [*start, *end], [*start, fence, *end]))
    assert (row.subject, row.count, row.in_loops, row.ahead) == ("`ttng.fence_async_shared`", 1, 1, "wgmma")
    two = edit(
        "ttgir", added("ttg.barrier", ahead="tt.store"), added("ttg.barrier", ahead="ttng.tc_gen5_mma")
    )
    assert first(two).ahead == ""
    moved = edit(
        "ttgir", *two.lines[1:], added("ttg.barrier", ahead="ttng.tc_gen5_mma_scaled"), removed("ttg.barrier")
    )
    assert first(moved).ahead == "tcgen05.mma", "only what is more is told"
    assert first(edit("ttgir", removed("ttg.barrier", ahead="tt.store"))).ahead == "`tt.store`"


def test_what_left_the_loop_is_told_before_what_merely_moved() -> None:
    """3.9 puts a barrier of a Gluon matmul for Hopper behind its loop."""
    lines = [removed("nvvm.barrier", depth=1), added("nvvm.barrier"), removed("tt.aa"), added("tt.aa")]
    assert subjects(edit("mlir", *lines)) == [("`nvvm.barrier` moved out of the loop", 0)]
    back = [removed("tt.splat"), added("tt.splat", depth=1)]
    assert subjects(edit("ttgir", *back)) == [("`tt.splat` moved into the loop", 0)]


# what else


def test_layouts_come_before_the_index_arithmetic_that_came_with_them_which_is_not_told() -> None:
    base = (
        f"%1 = tt.make_range : tensor<64xi32, {LINEAR}>",
        *(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {LINEAR}>" for n in range(2, 5)),
    )
    head = tuple(f"%{n} = arith.addf %0, %0 : tensor<64xf32, {BLOCKED}>" for n in range(1, 4))
    start, *end = WRAP
    of = edits.between("ttgir", [start, *base, *end], [start, *head, *end])
    assert subjects(of) == [("layouts `#ttg.linear` → `#ttg.blocked`", 0)]


def test_flags_of_instructions_are_counted_and_inferred_attributes_named() -> None:
    define = replaced(
        "define void @f(ptr addrspace(1) readnone %4) {",
        "define void @f(ptr addrspace(1) nofree readnone %4) {",
    )
    same = ("the LLVM IR is the same otherwise", 0)
    assert subjects(edit("llir", *define)) == [("LLVM infers `nofree`", 0), same]
    back = replaced(define[1].text, define[0].text)
    assert subjects(edit("llir", *back))[0] == ("LLVM no longer infers `nofree`", 0)
    flags = replaced("%1 = fadd float %0, %0", "%1 = fadd nnan float %0, %0")
    assert subjects(edit("llir", *flags)) == [("`nnan` flag", 1), same]
    more = edit("llir", *define, *flags, added("%2 = fadd float %0, %0"))
    assert subjects(more) == [("`nnan` flag", 1), ("float instruction", 1)], "beside others it tells nothing"
    rounding = replaced("add.rn.f32 %f1, %f2;", "add.rz.f32 %f1, %f2;")
    assert ("`rz` flag", 1) in subjects(edit("ptx", *rounding))


def test_arithmetic_is_told_where_nothing_else_is_by_its_operations() -> None:
    lines = [removed("%1 = rocdl.workitem.id.x : i32"), *[removed("%2 = llvm.and %1, %0 : i32")] * 2]
    assert subjects(edit("mlir", *lines)) == [("`rocdl.workitem.id.x`", -1), ("`llvm.and`", -2)]
    assert subjects(edit("mlir", *lines, added("rocdl.s.barrier"))) == [("`rocdl.s.barrier`", 1)]


def test_what_moved_is_told_before_what_takes_other_operands() -> None:
    moved = [line for name in ("tt.aa", "tt.bb", "tt.bb") for line in (removed(name), added(name))]
    operands = [line for n in range(2) for line in replaced(f"tt.zz %{n}, %1", f"tt.zz %1, %{n}")]
    assert subjects(edit("ttgir", *moved, *operands)) == [("`tt.bb` in another place", 0)]
    assert subjects(edit("ttgir", *operands)) == [("`tt.zz` with other operands", 0)]


def test_lines_that_tell_nothing_are_told_by_their_classes() -> None:
    def pairs(*lines: str, stage: str = "llir") -> Edit:
        return edit(stage, *[line for text in lines for line in (removed(text), added(text))])

    integers, casts, moves = "%1 = add i32 %0, 1", "%1 = bitcast i32 %0 to float", "br label %3"
    words = "in another order or with other operands"
    assert subjects(pairs(integers)) == [(f"integer arithmetic {words}", 0)]
    three = subjects(pairs(integers, casts, casts, moves, moves, moves))
    assert three == [(f"control flow and addresses and casts {words}", 0)]
    assert subjects(pairs("%1 = llvm.add %0, %0 : i32", stage="mlir")) == [(f"integer arithmetic {words}", 0)]
    assert subjects(pairs("}", stage="ttgir")) == [(f"`}}` {words}", 0)]
    assert causes.of_edit(edit("ttgir")) == ()


def test_causes_are_bounded_and_each_is_told_in_one_way() -> None:
    lines = [added(f"tt.op{n} %0") for n in range(40)]
    found = causes.of_edit(edit("ttgir", *lines))
    assert len(found) == causes.MAX_CAUSES
    assert {row.kind for row in found} == {CauseKind.NUMBER}


def test_operations_that_become_llvm_ir_are_told_by_their_classes() -> None:
    for text in ("%1 = nvvm.bitcast %0 : i32 to f32", "%1 = rocdl.bitcast %0 : i32 to f32"):
        found = causes.of_edit(edit("mlir", removed(text), added(text)))
        assert [row.subject for row in found] == [
            "addresses and casts in another order or with other operands"
        ]
        assert [row.kind for row in found] == [CauseKind.STATE]


def test_what_moved_is_what_head_has_in_another_place() -> None:
    load, store = "ld.global.b32 %r1, [%rd1];", "st.global.b32 [%rd1], %r1;"
    lines = [*replaced(load, store), added(load), removed(store)]
    assert subjects(edit("ptx", *lines)) == [("`ld.global.b32` in another place", 0)]
