import triton
import triton.language as tl

from liger.ops.math import silu


def settings(n):
    block = triton.next_power_of_2(n)
    return block, 8 if block >= 4096 else 4


@triton.jit
def gate_kernel(a_ptr, b_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + row * n + offsets, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + row * n + offsets, mask=mask, other=0)
    tl.store(out_ptr + row * n + offsets, silu(a).cast(b.dtype) * b, mask=mask)


def gate(a, b, out):
    rows, n = a.shape
    block, num_warps = settings(n)
    gate_kernel[(rows,)](a, b, out, n, BLOCK=block, num_warps=num_warps)
    return out
