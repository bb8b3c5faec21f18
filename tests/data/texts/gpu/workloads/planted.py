# ruff: noqa
"""One good kernel and kernels that pretend to be it: each is wrong in one way."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def good(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


@triton.jit
def wrong_result(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, tl.where(offsets == 12345, x * 2 + 1, x * 2), mask=offsets < n)


@triton.jit
def unwritten(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n - 1)


@triton.jit
def out_of_bounds(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)
    tl.store(out_ptr + n + offsets, x, mask=offsets < 1)


@triton.jit
def illegal_address(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out_ptr + offsets + (n.to(tl.int64) << 24), x * 2, mask=offsets < n)


@triton.jit
def endless(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    steps = n.to(tl.int64) << 12  # minutes, not for ever: a test must not depend on being killed
    while steps > 0:
        x += tl.load(x_ptr + (steps % 7), volatile=True)
        steps -= 1
    tl.store(out_ptr + offsets, x * 2, mask=offsets < n)


def run(kernel, x):
    out = empty(x.shape, "fp32")
    kernel[(triton.cdiv(x.numel(), 1024),)](x, out, x.numel(), BLOCK=1024)
    return out


KERNELS = (good, wrong_result, unwritten, out_of_bounds, illegal_address, endless)
LAUNCHES = {
    kernel.fn.__name__: launch(run, kernel, tensor((1 << 20,), "fp32"), rtol=1e-3, atol=1e-3)
    for kernel in KERNELS
}
