"""What can be left out of IR, and the CHECK lines for what remains."""

from __future__ import annotations

from irdiff.attribute import lit_text
from irdiff.attribute.kernel_lines import Locations

RAW = """#loc = loc("k.py":1:0)
module attributes {"ttg.num-warps" = 4 : i32} {
  tt.func public @k(%p: !tt.ptr<f16> loc("p"(#loc)), %n: i32 loc("n"(#loc))) {
    %c = arith.constant 1 : i32 loc(#loc2)
    %x = arith.addi %n, %c : i32 loc(#loc3)
    %y = arith.cmpi slt, %x, %c : i32 loc(#loc3)
    scf.if %y {
      tt.print "a" : %x : i32 loc(#loc3)
    } loc(#loc3)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
#loc2 = loc("k.py":5:3)
#loc3 = loc(callsite("lib.py":9:1 at #loc2))
"""


def test_locations_go_and_nothing_else() -> None:
    text = lit_text.without_locations(RAW)
    assert "loc" not in text
    assert "  tt.func public @k(%p: !tt.ptr<f16>, %n: i32) {\n" in text


def test_operations_that_nothing_uses_can_go_with_their_regions() -> None:
    lines = lit_text.without_locations(RAW).splitlines()
    spans = [(row.start, row.end) for row in lit_text.removable(lines)]
    assert spans == [(6, 6), (5, 7)]


def test_results_become_arguments_with_their_own_type() -> None:
    lines = lit_text.without_locations(RAW).splitlines()
    rows = [row for row in lit_text.reductions(lines, set()) if row.argument]
    assert [row.argument for row in rows] == ["%y: i1", "%x: i32"]
    smaller = lit_text.singles(lines, [rows[1]])[0]
    assert "  tt.func public @k(%x: i32, %p: !tt.ptr<f16>, %n: i32) {" in smaller
    assert not any("%x = " in line for line in smaller)


def test_unused_arguments_and_aliases_go() -> None:
    text = "#a = #ttg.blocked<{}>\ntt.func @k(%p: !tt.ptr<f16> {tt.x = 1 : i32}, %n: i32) {\nuse %n\n}\n"
    assert lit_text.without_unused_arguments(text).splitlines()[1] == "tt.func @k(%n: i32) {"
    assert lit_text.without_unused_aliases(text).startswith("tt.func")


def test_checks_hold_the_new_line_and_its_neighbour() -> None:
    base = lit_text.without_locations(RAW)
    head = base.replace("    scf.if", "    ttg.barrier local\n    scf.if")
    assert lit_text.checks_of_edit(base, head, before=0) == [
        "CHECK-LABEL: @k(",
        "CHECK: ttg.barrier local",
        "CHECK-NEXT: scf.if %{{[a-zA-Z0-9_#:]+}} {",
    ]
    assert len(lit_text.checks_of_all(head)) == 11


def test_brackets_that_filecheck_would_read_are_escaped() -> None:
    assert lit_text.pattern("a [[1, 2], [3]] b") == r"a {{\[\[}}1, 2], [3]] b"


def test_kernel_lines_through_callsites_are_those_of_the_kernel() -> None:
    locations = Locations(RAW)
    assert locations.of_line(4) == ("k.py", 5)
    assert locations.of_line(5) == ("k.py", 5), "the caller, not the library"
    assert locations.of_line(2) is None
    assert locations.of_line(99) is None
    assert Locations("#loc1 = loc(#loc1)\nx loc(#loc1)").of_line(2) is None


def test_llvm_lines_have_a_line_without_a_file() -> None:
    assert Locations("  ret void, !dbg !7\n!7 = !DILocation(line: 12, column: 3, scope: !4)").of_line(1) == (
        "",
        12,
    )


def test_types_of_arguments_where_the_line_prints_another() -> None:
    blocked = "#ttg.slice<{dim = 0, parent = #blocked}>"
    rows = {
        f"%x = tt.load %p, %m : tensor<4x!tt.ptr<bf16>, {blocked}>": f"%x: tensor<4xbf16, {blocked}>",
        "%x = tt.load %p : !tt.ptr<i32>": "%x: i32",
        f"%x = arith.select %m, %a, %b : tensor<4xi1, {blocked}>, tensor<4xf32, {blocked}>": (
            f"%x: tensor<4xf32, {blocked}>"
        ),
        "%x = arith.select %m, %a, %b : f32": "%x: f32",
        f"%x = tt.addptr %p, %o : tensor<4x!tt.ptr<f16>, {blocked}>, tensor<4xi32, {blocked}>": (
            f"%x: tensor<4x!tt.ptr<f16>, {blocked}>"
        ),
    }
    for line, argument in rows.items():
        text = ["tt.func @k(%p: i32) {", f"  {line}", "  use %x", "}"]
        found = [row.argument for row in lit_text.reductions(text, set()) if row.argument]
        assert found == [argument]
