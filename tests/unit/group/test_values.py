"""What stands where it stood and says something else."""

from __future__ import annotations

from collections import Counter

from irdiff.group import values
from irdiff.model import CauseKind
from tests.unit.group.edits_of import added, edit, removed, replaced
from tests.unit.group.test_operation_names import ASSEMBLY

BLOCKED, LINEAR = ", #ttg.blocked<{a = [0]}>", ", #ttg.linear<{a = [0]}>"
WIDE, WIDER = ", #ttg.blocked<{a = [1], b = [2, 3]}>", ", #ttg.blocked<{a = [1], b = [2, 4]}>"


def other(*pairs: tuple[str, str], stage: str = "ttgir", depth: int = 0) -> list[tuple[str, str, int, int]]:
    of = edit(stage, *[line for pair in pairs for line in replaced(*pair, depth=depth)])
    return [(row.subject, row.detail, row.count, row.in_loops) for row in values.of_edit(of)]


def test_an_attribute_is_told_by_name_and_value() -> None:
    two, one = "%1 = ttg.async_wait %0 {num = 2 : i32}", "%1 = ttg.async_wait %0 {num = 1 : i32}"
    bare = "%1 = ttg.async_wait %0"
    assert other((two, one)) == [("`ttg.async_wait`", "`num` 2 → 1", 1, 0)]
    assert other((two, one), depth=1) == [("`ttg.async_wait`", "`num` 2 → 1", 1, 1)]
    assert other((bare, two)) == [("`ttg.async_wait`", "with `num = 2 : i32`", 1, 0)]
    assert other((two, bare)) == [("`ttg.async_wait`", "without `num = 2 : i32`", 1, 0)]
    assert other(("arith.cmpi eq, %1", "arith.cmpi sge, %1")) == [("`arith.cmpi`", "`eq` → `sge`", 1, 0)]
    assert other(("tt.load %1", "tt.load %2")) == [], "values alone say nothing"


def test_an_attribute_of_a_dialect_is_told_by_what_it_says() -> None:
    policy = "amdg.buffer_load {c = #tt.cache_policy<modifier = none, eviction = evict_last>}"
    assert other(("amdg.buffer_load", policy))[0][1] == "with `c = evict_last`"
    assert other((policy, "amdg.buffer_load"))[0][1] == "without `c = evict_last`"


def test_code_does_not_end_its_backticks_and_is_cut() -> None:
    assert other(("tt.op {a = `x`}", "tt.op {a = 1}"))[0][1] == "`a` ' x ' → 1"
    assert len(other(("tt.op {a = b}", f"tt.op {{a = {'c' * 90}}}"))[0][1]) < 80


def test_inline_assembly_without_the_move_before_it() -> None:
    before, after = (
        ASSEMBLY.format(text) for text in (r"mov.u32 $0, $1;\0A\09ld.global.b32 $0;", "ld.global.b32 $0;")
    )
    told = "the `mov.u32` before it"
    assert other((before, after), stage="mlir") == [("inline `ld.global.b32`", f"without {told}", 1, 0)]
    assert other((after, before), stage="mlir") == [
        ("inline `ld.global.b32`", "with a `mov.u32` before it", 1, 0)
    ]
    pure = before.replace("has_side_effects ", "")
    assert other((before, pure), stage="mlir")[0][1] == "no longer marked as having side effects"
    assert other((pure, before), stage="mlir")[0][1] == "marked as having side effects"
    assert other((before, before.replace("%1", "%2")), stage="mlir") == []


def layouts(*pairs: tuple[str, str], others: int = 0) -> list[tuple[CauseKind, str, str]]:
    lines = [
        line
        for n, (before, after) in enumerate(pairs)
        for line in replaced(
            f"%{n} = arith.addf : tensor<4xf32{before}>", f"%{n} = arith.addf : tensor<4xf32{after}>"
        )
    ]
    more = [line for n in range(others) for line in (removed(f"tt.aa{n}"), added(f"tt.aa{n}"))]
    return [(row.kind, row.subject, row.detail) for row in values.layouts(edit("ttgir", *lines, *more))]


def test_layouts_are_told_where_half_of_the_lines_or_more_differ_in_them() -> None:
    told = [(CauseKind.STATE, "layouts `#ttg.blocked` → `#ttg.linear`", "")]
    assert layouts((BLOCKED, LINEAR)) == layouts((BLOCKED, LINEAR), others=1) == told
    assert layouts((BLOCKED, LINEAR), others=2) == []
    assert layouts(("", BLOCKED)) == [(CauseKind.STATE, "layouts `#ttg.blocked`", "")]
    assert layouts((BLOCKED, "")) == [(CauseKind.STATE, "no longer layouts `#ttg.blocked`", "")]
    slices = ", #ttg.slice<{dim = 0, parent = #ttg.wide<{a = [0]}>}>"
    assert layouts((slices, LINEAR))[0][1] == "layouts `#ttg.wide` → `#ttg.linear`"


def test_the_parameter_that_most_layouts_have_otherwise_is_told_with_both_values() -> None:
    assert layouts((WIDE, WIDER)) == [(CauseKind.VALUE, "`#ttg.blocked` layout", "`b` [2, 3] → [2, 4]")]
    most = layouts((WIDE, WIDER), (WIDE, WIDER), (BLOCKED, BLOCKED.replace("0", "5")))
    assert most[0][2] == "`b` [2, 3] → [2, 4]"
    gone = layouts((WIDE, ", #ttg.blocked<{a = [1]}>"))
    assert gone[0][2] == "without `b`"
    assert layouts((WIDE, WIDE)) == [], "another size, in the same layout"


def test_an_attribute_of_a_dialect_is_told_by_all_that_is_no_default() -> None:
    both = "amdg.buffer_load {c = #tt.cache_policy<modifier = cg, eviction = evict_last>}"
    assert other(("amdg.buffer_load", both))[0][1] == "with `c = cg evict_last`"
    none = "amdg.buffer_load {c = #tt.cache_policy<modifier = none, eviction = normal>}"
    assert other(("amdg.buffer_load", none))[0][1] == "with `c = #tt.cache_policy`"
    scoped = "amdg.buffer_load {c = #tt.cache_policy<modifier = a = b, eviction = normal>}"
    assert other(("amdg.buffer_load", scoped))[0][1] == "with `c = b`"


def test_an_attribute_without_parameters_is_told_as_it_stands() -> None:
    assert other(("tt.op", "tt.op {c = #tt.plain}"))[0][1] == "with `c = #tt.plain`"
    assert other(("tt.op", "tt.op {d = 1 : i32}"))[0][1] == "with `d = 1 : i32`"


def test_several_attributes_at_once_are_told_as_they_stand() -> None:
    first = "tt.op {c = #tt.cache_policy<modifier = cg>, d = true}"
    assert other(("tt.op", first))[0][1] == "with `c = #tt.cache_policy , d = true`"
    last = "tt.op {d = true, c = #tt.cache_policy<modifier = cg>}"
    assert other(("tt.op", last))[0][1] == "with `d = true , c = #tt.cache_policy`"


def test_side_effects_of_inline_assembly_in_llvm_ir() -> None:
    marked = 'call i32 asm sideeffect "ld.global.b32 $0;", "=r"()'
    pure = marked.replace("sideeffect ", "")
    assert other((marked, pure), stage="llir")[0][1] == "no longer marked as having side effects"


def test_layouts_of_no_kind_have_no_parameters() -> None:
    assert values._parameters("ttg.linear", BLOCKED) == {}
    assert values.most_frequent(Counter()) == ""
