#loc = loc("k.py":1:0)
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
