"""Layer norm, forward and backward: statistics of a row, then partial sums of weight gradients under locks."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def layer_norm_forward_kernel(
    x_ptr, y_ptr, w_ptr, b_ptr, mean_ptr, rstd_ptr, stride, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * stride
    y_ptr += row * stride
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        centred = tl.where(cols < n_cols, x - mean, 0.0)
        square += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(square, axis=0) / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        inside = cols < n_cols
        w = tl.load(w_ptr + cols, mask=inside).to(tl.float32)
        b = tl.load(b_ptr + cols, mask=inside).to(tl.float32)
        x = tl.load(x_ptr + cols, mask=inside, other=0.0).to(tl.float32)
        tl.store(y_ptr + cols, ((x - mean) * rstd * w + b).to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, lock_ptr, stride, n_cols,
    GROUPS: tl.constexpr, BLOCK: tl.constexpr,
):
    """The row's dx; its share of dw and db is added to one of GROUPS partial sums, guarded by a spin lock."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    where = row.to(tl.int64) * stride + cols
    x = tl.load(x_ptr + where, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + where, mask=inside, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    x_hat = tl.where(inside, (x - mean) * rstd, 0.0)
    w_dy = tl.where(inside, w * dy, 0.0)
    c1 = tl.sum(x_hat * w_dy, axis=0) / n_cols
    c2 = tl.sum(w_dy, axis=0) / n_cols
    dx = (w_dy - (x_hat * c1 + c2)) * rstd
    tl.store(dx_ptr + where, dx.to(dx_ptr.dtype.element_ty), mask=inside)

    group = row % GROUPS
    partial_dw = (dy * x_hat).to(w_ptr.dtype.element_ty)
    partial_db = dy.to(w_ptr.dtype.element_ty)
    lock_ptr += group
    count_ptr = lock_ptr + GROUPS
    dw_ptrs = dw_ptr + group * n_cols + cols
    db_ptrs = db_ptr + group * n_cols + cols
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    if tl.load(count_ptr) == 0:
        tl.atomic_xchg(count_ptr, 1)
    else:
        partial_dw += tl.load(dw_ptrs, mask=inside)
        partial_db += tl.load(db_ptrs, mask=inside)
    tl.store(dw_ptrs, partial_dw, mask=inside)
    tl.store(db_ptrs, partial_db, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def layer_norm_weights_kernel(
    dw_ptr, db_ptr, out_dw_ptr, out_db_ptr, groups, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    dw = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    db = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, groups, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        inside = (rows[:, None] < groups) & (cols[None, :] < n_cols)
        where = rows[:, None] * n_cols + cols[None, :]
        dw += tl.load(dw_ptr + where, mask=inside, other=0.0)
        db += tl.load(db_ptr + where, mask=inside, other=0.0)
    tl.store(out_dw_ptr + cols, tl.sum(dw, axis=0).to(out_dw_ptr.dtype.element_ty), mask=cols < n_cols)
    tl.store(out_db_ptr + cols, tl.sum(db, axis=0).to(out_db_ptr.dtype.element_ty), mask=cols < n_cols)


@triton.jit
def layer_norm_row_kernel(x_ptr, w_ptr, b_ptr, y_ptr, stride_x, stride_y, n_cols, BLOCK: tl.constexpr):
    """A row in one block, nothing kept for a backward pass: what compilers of models generate for inference."""
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * stride_x + cols, mask=inside, other=0.0, eviction_policy="evict_first").to(tl.float32)
    mean = tl.sum(x, axis=0) / n_cols
    centred = x - mean
    variance = tl.sum(tl.where(inside, centred * centred, 0.0), axis=0) / n_cols
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    y = centred * tl.rsqrt(variance + 1e-5) * w + b
    tl.store(y_ptr + row * stride_y + cols, y.to(y_ptr.dtype.element_ty), mask=inside)


@triton.jit
def layer_norm_backward_rows_kernel(
    x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr, stride, n_rows, n_cols, rows_each,
    BLOCK: tl.constexpr,
):
    """A program walks through its rows with its shares of dw and db in registers: two accumulators as long as a row."""
    program = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    w = tl.load(w_ptr + cols, mask=inside, other=0.0).to(tl.float32)
    dw = tl.zeros((BLOCK,), tl.float32)
    db = tl.zeros((BLOCK,), tl.float32)
    for row in range(program * rows_each, min((program + 1) * rows_each, n_rows)):
        x = tl.load(x_ptr + row * stride + cols, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + row * stride + cols, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(mean_ptr + row)
        rstd = tl.load(rstd_ptr + row)
        x_hat = (x - mean) * rstd
        w_dy = w * dy
        c1 = tl.sum(x_hat * w_dy, axis=0) / n_cols
        c2 = tl.sum(w_dy, axis=0) / n_cols
        dx = (w_dy - (x_hat * c1 + c2)) * rstd
        tl.store(dx_ptr + row * stride + cols, dx.to(dx_ptr.dtype.element_ty), mask=inside)
        dw += dy * x_hat
        db += dy
    tl.store(dw_ptr + program * n_cols + cols, dw, mask=inside)
    tl.store(db_ptr + program * n_cols + cols, db, mask=inside)


def layer_norm(x, weight, bias, warps=8, block=4096):
    rows, cols = x.shape
    y = empty(x.shape, x.dtype)
    mean, rstd = empty((rows,), "fp32"), empty((rows,), "fp32")
    layer_norm_forward_kernel[(rows,)](
        x, y, weight, bias, mean, rstd, x.stride(0), cols, 1e-5,
        BLOCK=min(block, triton.next_power_of_2(cols)), num_warps=warps,
    )
    return y, mean, rstd


def layer_norm_backward(dy, x, weight, mean, rstd, warps=8, groups=128):
    rows, cols = x.shape
    dx = empty(x.shape, x.dtype)
    locks = zeros((2 * groups,), "i32")
    partial_dw, partial_db = zeros((groups, cols), weight.dtype), zeros((groups, cols), weight.dtype)
    dw, db = empty((cols,), weight.dtype), empty((cols,), weight.dtype)
    layer_norm_backward_kernel[(rows,)](
        dx, dy, partial_dw, partial_db, x, weight, mean, rstd, locks, x.stride(0), cols,
        GROUPS=groups, BLOCK=triton.next_power_of_2(cols), num_warps=warps,
    )
    layer_norm_weights_kernel[(triton.cdiv(cols, 128),)](
        partial_dw, partial_db, dw, db, groups, cols, BLOCK_M=32, BLOCK_N=128
    )
    return dx, dw, db


def layer_norm_row(x, weight, bias, warps=8):
    rows, cols = x.shape
    y = empty(x.shape, x.dtype)
    layer_norm_row_kernel[(rows,)](
        x, weight, bias, y, x.stride(0), y.stride(0), cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return y


def layer_norm_backward_rows(dy, x, weight, mean, rstd, warps=16, programs=128):
    rows, cols = x.shape
    dx, dw, db = empty(x.shape, x.dtype), empty((programs, cols), "fp32"), empty((programs, cols), "fp32")
    layer_norm_backward_rows_kernel[(programs,)](
        x, weight, mean, rstd, dy, dx, dw, db, x.stride(0), rows, cols, triton.cdiv(rows, programs),
        BLOCK=triton.next_power_of_2(cols), num_warps=warps,
    )
    return dx, dw, db


def row_reference(x, weight, bias, warps=8):
    return reference(x, weight, bias)[0]


def rows_reference(dy, x, weight, mean, rstd, warps=16, programs=128):
    x_hat = (x.float() - mean[:, None]) * rstd[:, None]
    parts = (dy.float() * x_hat).unflatten(0, (programs, -1)), dy.float().unflatten(0, (programs, -1))
    return backward_reference(dy, x, weight, mean, rstd)[0], parts[0].sum(1), parts[1].sum(1)


def reference(x, weight, bias, warps=8, block=4096):
    x, weight, bias = x.float(), weight.float(), bias.float()
    mean = x.mean(-1, keepdim=True)
    rstd = ((x - mean).square().mean(-1, keepdim=True) + 1e-5).rsqrt()
    return (x - mean) * rstd * weight + bias, mean[:, 0], rstd[:, 0]


def backward_reference(dy, x, weight, mean, rstd, warps=8, groups=128):
    dy, x, weight = dy.float(), x.float(), weight.float()
    x_hat = (x - mean[:, None]) * rstd[:, None]
    w_dy = weight * dy
    c1, c2 = (x_hat * w_dy).mean(-1, keepdim=True), w_dy.mean(-1, keepdim=True)
    return (w_dy - x_hat * c1 - c2) * rstd[:, None], (dy * x_hat).sum(0), dy.sum(0)


def forward(rows, cols, dtype, size, function=layer_norm, expected=reference, **facts):
    return launch(
        function, tensor((rows, cols), dtype), tensor((cols,), dtype), tensor((cols,), dtype),
        flops=8 * rows * cols, min_bytes=2 * rows * cols * size, reference=expected, rtol=2e-2, atol=2e-2, **facts,
    )


def backward(rows, cols, dtype, size, atol, function=layer_norm_backward, expected=backward_reference, **facts):
    return launch(
        function, tensor((rows, cols), dtype, fill="normal:0.1"), tensor((rows, cols), dtype),
        tensor((cols,), dtype, fill="uniform"), tensor((rows,), "fp32", fill="normal:0.1"),
        tensor((rows,), "fp32", fill="uniform:0.5:1.5"),
        flops=14 * rows * cols, min_bytes=3 * rows * cols * size, reference=expected,
        rtol=2e-2, atol=atol, **facts,
    )


LAUNCHES = {
    "fp16-4k": forward(4096, 4096, "fp16", 2, tier="gate"),
    "fp32-1k": forward(4096, 1024, "fp32", 4, warps=4),
    "bf16-64k": forward(512, 65536, "bf16", 2, warps=16),
    # triton #11127: layer norm of a whole row on Blackwell; since 3.7.0 rows of bf16 are added up unconverted
    "row-bf16-4k": forward(4096, 4096, "bf16", 2, layer_norm_row, row_reference, tier="gate"),
    "row-fp32-2k": forward(4096, 2048, "fp32", 4, layer_norm_row, row_reference, warps=4),
    "backward-fp16-4k": backward(4096, 4096, "fp16", 2, 0.1, tier="gate"),
    "backward-fp32-8k": backward(4096, 8192, "fp32", 4, 1e-3, warps=16),
    "backward-bf16-1k": backward(4096, 1024, "bf16", 2, 0.5, warps=4),
    # triton #7449: the backward pass of rows between 4096 and 8192 began to spill in a candidate of 3.4.0; the release
    # went back to the LLVM before
    "backward-rows-bf16-8k": backward(4096, 8192, "bf16", 2, 5e-2, layer_norm_backward_rows, rows_reference),
    "backward-rows-fp32-6k": backward(4096, 6144, "fp32", 4, 1e-3, layer_norm_backward_rows, rows_reference, warps=8),
}
