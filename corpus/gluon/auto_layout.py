"""Gluon that leaves layouts to the compiler: those of memory accesses, and those that follow from one that is given."""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

SINCE = "3.7.0"


@gluon.jit
def gluon_coalesced_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr):
    """The layout of the addresses is the best one for memory."""
    where = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.CoalescedLayout())
    x = gl.load(x_ptr + where, mask=where < n).to(gl.float32)
    gl.store(out_ptr + where, (x * x).to(out_ptr.dtype.element_ty), mask=where < n)


@gluon.jit
def gluon_auto_kernel(x_ptr, out_ptr, n, BLOCK: gl.constexpr, LANES: gl.constexpr, num_warps: gl.constexpr):
    """One layout is given, all others follow from it."""
    layout: gl.constexpr = gl.BlockedLayout([4], [LANES], [num_warps], [0])
    where = gl.set_auto_layout(gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=gl.AutoLayout()), layout)
    x = gl.load(x_ptr + where, mask=where < n).to(gl.float32)
    gl.store(out_ptr + where, (x * x).to(out_ptr.dtype.element_ty), mask=where < n)


def squares_coalesced(x, block=1024):
    out = empty(x.shape, x.dtype)
    gluon_coalesced_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block, num_warps=4)
    return out


def squares_auto(x, block=1024):
    lanes = triton.runtime.driver.active.get_current_target().warp_size
    out = empty(x.shape, x.dtype)
    gluon_auto_kernel[(triton.cdiv(x.numel(), block),)](
        x, out, x.numel(), BLOCK=block, LANES=lanes, num_warps=4
    )
    return out


def reference(x, **_):
    return x.float() * x.float()


def row(function, dtype, n, **facts):
    return launch(
        function, tensor((n,), dtype), flops=n, min_bytes=n * (8 if dtype == "fp32" else 4), reference=reference,
        rtol=1e-2, atol=1e-2, **facts,
    )


LAUNCHES = {
    "coalesced-fp32": row(squares_coalesced, "fp32", 1 << 20),
    "coalesced-bf16-odd": row(squares_coalesced, "bf16", (1 << 20) - 3),
    "coalesced-fp16-2048": row(squares_coalesced, "fp16", 1 << 20, block=2048),
    "auto-fp32": row(squares_auto, "fp32", 1 << 20),
    "auto-bf16-odd": row(squares_auto, "bf16", (1 << 20) - 3),
    "auto-fp16-2048": row(squares_auto, "fp16", 1 << 20, block=2048),
}
