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


_HELPED = """x loc(#loc9)
y loc("y"(callsite(callsite(#loc1 at "mid.py":5:1) at #loc2)))
z loc(callsite(#loc3 at #loc2))
w loc(fused[#loc1, #loc2])
#loc1 = loc("helper.py":7:3)
#loc2 = loc("kernel.py":20:1)
#loc3 = loc("/x/site-packages/triton/language/standard.py":43:1)
#loc8 = loc("n"(#loc1))
#loc9 = loc(callsite(#loc8 at #loc2))
"""


def test_lines_of_mlir_are_those_of_the_kernel_and_its_helpers_first() -> None:
    locations = Locations(RAW)
    assert (locations.of_line(4), locations.of_line(5)) == ((("k.py", 5),), (("lib.py", 9), ("k.py", 5)))
    assert locations.of_line(2) == locations.of_line(99) == ()
    assert Locations("#loc1 = loc(#loc1)\nx loc(#loc1)").of_line(2) == ()
    helper, kernel = ("helper.py", 7), ("kernel.py", 20)
    found = [Locations(_HELPED).of_line(number) for number in range(1, 5)]
    assert found == [(helper, kernel), (helper, ("mid.py", 5), kernel), (kernel,), (kernel,)]


_LLVM = """  ret void, !dbg !7
  ret void, !dbg !9
!1 = !DIFile(filename: "kernel.py", directory: "ops")
!2 = !DIFile(filename: "helper.py", directory: "")
!4 = distinct !DISubprogram(name: "k", scope: !1, file: !1, line: 9, type: !5)
!5 = !DISubroutineType(cc: DW_CC_normal)
!6 = !DILexicalBlockFile(scope: !4, file: !2, discriminator: 0)
!7 = !DILocation(line: 7, column: 3, scope: !6, inlinedAt: !8)
!8 = !DILocation(line: 20, column: 3, scope: !4)
!9 = !DILocation(line: 12, column: 3, scope: !99)
"""


def test_llvm_says_the_same_by_its_scopes() -> None:
    assert Locations(_LLVM).of_line(1) == (("helper.py", 7), ("ops/kernel.py", 20))
    assert Locations(_LLVM).of_line(2) == (), "a scope that is not there"


def test_locations_that_double_end_soon() -> None:
    rows = [f"#loc{n} = loc(callsite(#loc{n + 1} at #loc{n + 1}))" for n in range(1, 60)]
    raw = "\n".join(["x loc(#loc1)", *rows, '#loc60 = loc("k.py":1:1)'])
    assert len(Locations(raw).of_line(1)) <= 12


def test_brackets_that_filecheck_would_read_are_escaped() -> None:
    assert lit_text.pattern("a [[1, 2], [3]] b") == r"a {{\[\[}}1, 2], [3]] b"
