"""Gluon with nothing of one vendor in it: layouts written out, conversions between them, reductions along a slice."""

import triton
from irdiff_corpus import empty, launch, tensor
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

SINCE = "3.5.0"


@gluon.jit
def gluon_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: gl.constexpr, LANES: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([4], [LANES], [num_warps], [0])
    where = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
    mask = where < n
    gl.store(out_ptr + where, gl.load(x_ptr + where, mask=mask) + gl.load(y_ptr + where, mask=mask), mask=mask)


@gluon.jit
def gluon_transpose_kernel(
    x_ptr, out_ptr, rows, cols, BLOCK: gl.constexpr, LANES: gl.constexpr, num_warps: gl.constexpr
):
    """Read along rows, written along columns: one conversion between two blocked layouts."""
    read: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 8, 8], [num_warps, 1], [1, 0])
    write: gl.constexpr = gl.BlockedLayout([4, 1], [8, LANES // 8], [1, num_warps], [0, 1])
    first_row = gl.program_id(0) * BLOCK
    first_col = gl.program_id(1) * BLOCK
    row = first_row + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, read))
    col = first_col + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, read))
    x = gl.load(x_ptr + row[:, None] * cols + col[None, :])
    x = gl.convert_layout(x, write)
    row = first_row + gl.arange(0, BLOCK, layout=gl.SliceLayout(1, write))
    col = first_col + gl.arange(0, BLOCK, layout=gl.SliceLayout(0, write))
    gl.store(out_ptr + col[None, :] * rows + row[:, None], x)


@gluon.jit
def gluon_softmax_kernel(x_ptr, out_ptr, ROWS: gl.constexpr, COLS: gl.constexpr, LANES: gl.constexpr, num_warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, LANES], [num_warps, 1], [1, 0])
    row = gl.program_id(0) * ROWS + gl.arange(0, ROWS, layout=gl.SliceLayout(1, layout))
    col = gl.arange(0, COLS, layout=gl.SliceLayout(0, layout))
    where = row[:, None] * COLS + col[None, :]
    x = gl.load(x_ptr + where).to(gl.float32)
    p = gl.exp(x - gl.max(x, axis=1)[:, None])
    y = p / gl.sum(p, axis=1)[:, None]
    gl.store(out_ptr + where, y.to(out_ptr.dtype.element_ty))


def _lanes():
    return triton.runtime.driver.active.get_current_target().warp_size


def add(x, y, block=1024):
    out = empty(x.shape, x.dtype)
    gluon_add_kernel[(triton.cdiv(x.numel(), block),)](x, y, out, x.numel(), BLOCK=block, LANES=_lanes(), num_warps=4)
    return out


def transpose(x, block=64):
    rows, cols = x.shape
    out = empty((cols, rows), x.dtype)
    gluon_transpose_kernel[(rows // block, cols // block)](
        x, out, rows, cols, BLOCK=block, LANES=_lanes(), num_warps=4
    )
    return out


def softmax(x, rows=4):
    out = empty(x.shape, x.dtype)
    gluon_softmax_kernel[(x.shape[0] // rows,)](x, out, ROWS=rows, COLS=x.shape[1], LANES=_lanes(), num_warps=4)
    return out


def add_reference(x, y, **_):
    return x + y


def transpose_reference(x, **_):
    return x.T


def softmax_reference(x, **_):
    return x.float().softmax(-1)


LAUNCHES = {
    "add-fp32-4m": launch(
        add, tensor((1 << 22,), "fp32"), tensor((1 << 22,), "fp32"), flops=1 << 22, min_bytes=12 << 22,
        reference=add_reference, rtol=0, atol=0,
    ),
    "transpose-fp32-4096": launch(
        transpose, tensor((4096, 4096), "fp32"), flops=1 << 24, min_bytes=8 << 24, reference=transpose_reference,
        rtol=0, atol=0,
    ),
    "softmax-bf16-1k": launch(
        softmax, tensor((8192, 1024), "bf16"), flops=5 << 23, min_bytes=4 << 23, reference=softmax_reference, atol=1e-4,
    ),
}
