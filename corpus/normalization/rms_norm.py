"""RMS norm with and without a residual, forward and backward: the norm of most open language models."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, rstd_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride + cols, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    tl.store(rstd_ptr + row, rstd)
    tl.store(y_ptr + row * stride + cols, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def add_rms_norm_kernel(
    x_ptr, residual_ptr, w_ptr, y_ptr, sum_ptr, stride, n_cols, eps, BLOCK: tl.constexpr
):
    """What inference engines fuse: residual += x, then the norm of the sum."""
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    where = row * stride + cols
    x = tl.load(x_ptr + where, mask=inside, other=0.0).to(tl.float32)
    x += tl.load(residual_ptr + where, mask=inside, other=0.0).to(tl.float32)
    tl.store(sum_ptr + where, x.to(sum_ptr.dtype.element_ty), mask=inside)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    tl.store(y_ptr + where, (x * rstd * w).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def rms_norm_backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, stride, n_rows, n_cols, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """A program owns ROWS rows and keeps its share of dw in registers across them."""
    block_id = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    for row in range(block_id * ROWS, min((block_id + 1) * ROWS, n_rows)):
        where = row * stride + cols
        x = tl.load(x_ptr + where, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + where, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = x * rstd
        w_dy = w * dy
        dx = (w_dy - x_hat * (tl.sum(x_hat * w_dy, axis=0) / n_cols)) * rstd
        dw += dy * x_hat
        tl.store(dx_ptr + where, dx.to(dx_ptr.dtype.element_ty), mask=inside)
    tl.store(dw_ptr + block_id * n_cols + cols, dw, mask=inside)


def rms_norm(x, weight, warps=8):
    rows, cols = x.shape
    y, rstd = empty(x.shape, x.dtype), empty((rows,), "fp32")
    rms_norm_kernel[(rows,)](
        x, weight, y, rstd, x.stride(0), cols, 1e-6, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return y, rstd


def add_rms_norm(x, residual, weight, warps=8):
    rows, cols = x.shape
    y, total = empty(x.shape, x.dtype), empty(x.shape, x.dtype)
    add_rms_norm_kernel[(rows,)](
        x, residual, weight, y, total, x.stride(0), cols, 1e-6, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return y, total


def rms_norm_backward(dy, x, weight, rstd, rows_each=32, warps=8):
    rows, cols = x.shape
    programs = triton.cdiv(rows, rows_each)
    dx, dw = empty(x.shape, x.dtype), zeros((programs, cols), "fp32")
    rms_norm_backward_kernel[(programs,)](
        dy, x, weight, rstd, dx, dw, x.stride(0), rows, cols,
        ROWS=rows_each, BLOCK=triton.next_power_of_2(cols), num_warps=warps,
    )
    return dx, dw


def reference(x, weight, warps=8):
    x = x.float()
    rstd = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    return x * rstd * weight.float(), rstd[:, 0]


def add_reference(x, residual, weight, warps=8):
    total = x.float() + residual.float()
    return reference(total, weight)[0], total


def backward_reference(dy, x, weight, rstd, rows_each=32, warps=8):
    dy, x_hat = dy.float(), x.float() * rstd[:, None]
    w_dy = weight.float() * dy
    dx = (w_dy - x_hat * (x_hat * w_dy).mean(-1, keepdim=True)) * rstd[:, None]
    return dx, (dy * x_hat).unflatten(0, (-1, rows_each)).sum(1)


def forward(rows, cols, dtype, size, **facts):
    return launch(
        rms_norm, tensor((rows, cols), dtype), tensor((cols,), dtype), flops=4 * rows * cols,
        min_bytes=2 * rows * cols * size, reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "bf16-4k": forward(8192, 4096, "bf16", 2, tier="gate"),
    "fp16-5k": forward(8192, 5120, "fp16", 2),  # a third of the block is masked
    "fp32-128": forward(65536, 128, "fp32", 4, warps=1),  # norm of a head: one warp a row
    "add-bf16-8k": launch(
        add_rms_norm, tensor((4096, 8192), "bf16"), tensor((4096, 8192), "bf16"), tensor((8192,), "bf16"),
        warps=16, flops=5 * 4096 * 8192, min_bytes=4 * 4096 * 8192 * 2, reference=add_reference, rtol=2e-2, atol=3e-2,
    ),
    "backward-bf16-4k": launch(
        rms_norm_backward, tensor((8192, 4096), "bf16"), tensor((8192, 4096), "bf16"), tensor((4096,), "bf16"),
        tensor((8192,), "fp32", fill="uniform:0.5:1.5"),
        flops=8 * 8192 * 4096, min_bytes=3 * 8192 * 4096 * 2, reference=backward_reference, rtol=2e-2, atol=5e-2,
    ),
}
