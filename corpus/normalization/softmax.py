"""Softmax over rows, a row a program, forward and backward: exponentials between two block reductions."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def softmax_forward_kernel(x_ptr, out_ptr, stride_x, stride_out, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=-float("inf")).to(tl.float32)
    numerator = tl.exp(x - tl.max(x, axis=0))
    y = numerator / tl.sum(numerator, axis=0)
    tl.store(out_ptr + row * stride_out + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def softmax_backward_kernel(
    dy_ptr, y_ptr, dx_ptr, stride_dy, stride_y, stride_dx, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    dy = tl.load(dy_ptr + row * stride_dy + cols, mask=inside, other=0.0).to(tl.float32)
    y = tl.load(y_ptr + row * stride_y + cols, mask=inside, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(dy * y, axis=0))
    tl.store(dx_ptr + row * stride_dx + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, stride_x, stride_out, n_cols, BLOCK: tl.constexpr):
    """Rows too long for one block: maximum and sum in one pass, the result in a second."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), -float("inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        inside = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=inside, other=-1e30).to(tl.float32)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.where(inside, tl.exp(x - higher), 0.0)
        top = higher
    row_top = tl.max(top, axis=0)
    row_total = tl.sum(total * tl.exp(top - row_top), axis=0)
    for start in range(0, n_cols, BLOCK):
        inside = start + cols < n_cols
        x = tl.load(x_ptr + row * stride_x + start + cols, mask=inside, other=0.0).to(tl.float32)
        y = tl.exp(x - row_top) / row_total
        tl.store(out_ptr + row * stride_out + start + cols, y.to(out_ptr.dtype.element_ty), mask=inside)


def softmax(x, warps=4):
    rows, cols = x.shape
    out = empty(x.shape, x.dtype)
    softmax_forward_kernel[(rows,)](
        x, out, x.stride(0), out.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return out


def softmax_backward(dy, y, warps=4):
    rows, cols = y.shape
    dx = empty(y.shape, y.dtype)
    softmax_backward_kernel[(rows,)](
        dy, y, dx, dy.stride(0), y.stride(0), dx.stride(0), cols,
        BLOCK=triton.next_power_of_2(cols), num_warps=warps,
    )
    return dx


def online_softmax(x, block=4096, warps=8):
    rows, cols = x.shape
    out = empty(x.shape, x.dtype)
    online_softmax_kernel[(rows,)](x, out, x.stride(0), out.stride(0), cols, BLOCK=block, num_warps=warps)
    return out


def reference(x, warps=4, block=None):
    return x.float().softmax(-1)


def backward_reference(dy, y, warps=4):
    dy, y = dy.float(), y.float()
    return y * (dy - (dy * y).sum(-1, keepdim=True))


def forward(rows, cols, dtype, size, function=softmax, **facts):
    return launch(
        function, tensor((rows, cols), dtype), flops=5 * rows * cols, min_bytes=2 * rows * cols * size,
        reference=reference, rtol=1e-2, atol=1e-4, **facts,
    )


def backward(rows, cols, dtype, size, **facts):
    return launch(
        softmax_backward, tensor((rows, cols), dtype), tensor((rows, cols), dtype, fill="uniform"),
        flops=4 * rows * cols, min_bytes=3 * rows * cols * size, reference=backward_reference, rtol=2e-2, atol=0.5,
        **facts,
    )


LAUNCHES = {
    "fp32-1k": forward(8192, 1024, "fp32", 4),
    "fp16-4k": forward(8192, 4096, "fp16", 2, warps=8, tier="gate"),
    "fp32-781": forward(1823, 781, "fp32", 4),  # neither a power of two nor divisible by 16
    "bf16-16k": forward(2048, 16384, "bf16", 2, warps=16),
    "bf16-64k-online": forward(512, 65536, "bf16", 2, function=online_softmax),
    "backward-fp16-4k": backward(8192, 4096, "fp16", 2, warps=8),
    "backward-fp32-1k": backward(8192, 1024, "fp32", 4),
}
