from __future__ import annotations
import sys
import triton
from irdiff_corpus import tensor

SCALE = 3

def helper(value):
    return value * SCALE

@triton.jit
def scale(x, out, n, BLOCK):
    helper(n)

@triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64}, num_warps=8)], key=["n"])
@triton.jit
def tuned(x, n, BLOCK):
    pass

x, out = tensor((64, 8), "fp16"), tensor((64,), "fp32", fill="zeros")
for n in (1, 2, 2):
    scale[(n,)](x.t(), out, n, BLOCK=32, num_warps=8)
scale[(1,)](out, out, 5, BLOCK=32)
scale[(1,)](x, out, 7, BLOCK=32, flops=1)
scale[(1,)](out, out.as_strided((2,), (1,), 4), 6, BLOCK=32)
tuned[lambda meta: (256 // meta["BLOCK"],)](x, 64)
triton.testing.do_bench(lambda: scale[(1,)](out, out, 5, BLOCK=32))
sys.exit(sys.argv[1])
