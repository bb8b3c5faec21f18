"""Reductions of rows, columns and of everything: sums, extremes, arg-extremes, Welford moments, counts."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def sum_rows_kernel(x_ptr, out_ptr, stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + row * stride + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(acc, axis=0))


@triton.jit
def sum_columns_kernel(x_ptr, out_ptr, n_rows, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N,), tl.float32)
    for start in range(0, n_rows, BLOCK_M):
        rows = start + tl.arange(0, BLOCK_M)
        inside = (rows < n_rows)[:, None] & (cols < n_cols)[None, :]
        x = tl.load(x_ptr + rows[:, None] * n_cols + cols[None, :], mask=inside, other=0.0)
        acc += tl.sum(x.to(tl.float32), axis=0)
    tl.store(out_ptr + cols, acc, mask=cols < n_cols)


@triton.jit
def sum_all_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Everything into one number: a block each, joined by an atomic."""
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0))


@triton.jit
def argmax_kernel(x_ptr, value_ptr, index_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=-float("inf"))
    best, where = tl.max(x, axis=0, return_indices=True)
    tl.store(value_ptr + row, best)
    tl.store(index_ptr + row, where)


@triton.jit
def _combine_moments(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def welford_kernel(x_ptr, mean_ptr, variance_ptr, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    weight = tl.where(inside, 1.0, 0.0)
    mean, m2, total = tl.reduce((x, tl.zeros_like(x), weight), 0, _combine_moments)
    tl.store(mean_ptr + row, mean)
    tl.store(variance_ptr + row, m2 / total)


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), tl.histogram(x, BINS))


def sum_rows(x, block=2048, warps=4):
    out = empty((x.shape[0],), "fp32")
    sum_rows_kernel[(x.shape[0],)](x, out, x.stride(0), x.shape[1], BLOCK=block, num_warps=warps)
    return out


def sum_columns(x, block=(32, 128)):
    rows, cols = x.shape
    out = empty((cols,), "fp32")
    sum_columns_kernel[(triton.cdiv(cols, block[1]),)](x, out, rows, cols, BLOCK_M=block[0], BLOCK_N=block[1])
    return out


def sum_all(x, block=8192):
    out = zeros((1,), "fp32")
    sum_all_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block, num_warps=8)
    return out


def argmax(x):
    rows, cols = x.shape
    value, index = empty((rows,), x.dtype), empty((rows,), "i32")
    argmax_kernel[(rows,)](x, value, index, cols, BLOCK=triton.next_power_of_2(cols))
    return value, index


def welford(x, warps=4):
    rows, cols = x.shape
    mean, variance = empty((rows,), "fp32"), empty((rows,), "fp32")
    welford_kernel[(rows,)](x, mean, variance, cols, BLOCK=triton.next_power_of_2(cols), num_warps=warps)
    return mean, variance


def histogram(x, bins, block=4096):
    counts = zeros((bins,), "i32")
    histogram_kernel[(x.numel() // block,)](x, counts, x.numel(), BINS=bins, BLOCK=block)
    return counts


def row(function, shape, dtype, reference, rtol=1e-3, atol=1e-2, fill="normal", size=4, **facts):
    numel = shape[0] * (shape[1] if len(shape) > 1 else 1)
    return launch(
        function, tensor(shape, dtype, fill=fill), flops=numel, min_bytes=numel * size, reference=reference,
        rtol=rtol, atol=atol, **facts,
    )


def rows_reference(x, **_):
    return x.float().sum(1)


def columns_reference(x, **_):
    return x.float().sum(0)


def all_reference(x, **_):
    return x.double().sum().reshape(1)


def argmax_reference(x):
    return tuple(x.max(1))


def welford_reference(x, warps=4):
    return x.float().mean(1), x.float().var(1, unbiased=False)


def histogram_reference(x, bins, block=4096):
    return x.long().bincount(minlength=bins)


LAUNCHES = {
    "rows-bf16-8k": row(sum_rows, (8192, 8192), "bf16", rows_reference, size=2, atol=0.5),
    "rows-fp32-64": row(sum_rows, (65536, 64), "fp32", rows_reference, block=64, warps=1),
    "columns-fp16-4k": row(sum_columns, (8192, 4096), "fp16", columns_reference, size=2, atol=0.5),
    "all-fp32-16m": row(sum_all, (1 << 24,), "fp32", all_reference, atol=2.0, tier="gate"),
    "argmax-fp32-4k": row(argmax, (4096, 4096), "fp32", argmax_reference),
    "argmax-fp16-1000": row(argmax, (4096, 1000), "fp16", lambda x: (x.max(1)[0], None), size=2),
    "welford-fp32-2k": row(welford, (4096, 2048), "fp32", welford_reference),
    "welford-bf16-3k": row(welford, (4096, 3000), "bf16", welford_reference, warps=8, size=2),
    "histogram-256": row(histogram, (1 << 20,), "i32", histogram_reference, bins=256, fill="randint:0:256"),
}
