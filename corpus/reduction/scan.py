"""Scans and what is built on them: sums, products, linear recurrences, sorting, top-k."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def cumsum_kernel(x_ptr, out_ptr, n_cols, REVERSE: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
    y = tl.cumsum(x, axis=0, reverse=REVERSE)
    tl.store(out_ptr + row * n_cols + cols, y.to(out_ptr.dtype.element_ty), mask=cols < n_cols)


@triton.jit
def carried_cumsum_kernel(x_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """Rows longer than a block: the total travels from block to block."""
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, n_cols, BLOCK):
        cols = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n_cols + cols, mask=cols < n_cols, other=0.0).to(tl.float32)
        tl.store(out_ptr + row * n_cols + cols, carry + tl.cumsum(x, axis=0), mask=cols < n_cols)
        carry += tl.sum(x, axis=0)


@triton.jit
def _compose(a_left, b_left, a_right, b_right):
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def recurrence_kernel(a_ptr, b_ptr, out_ptr, STEPS: tl.constexpr, CHANNELS: tl.constexpr):
    """h[t] = a[t] h[t-1] + b[t], a tile of channels at once."""
    where = tl.program_id(0) * STEPS * CHANNELS
    where += tl.arange(0, STEPS)[:, None] * CHANNELS + tl.arange(0, CHANNELS)[None, :]
    a = tl.load(a_ptr + where)
    b = tl.load(b_ptr + where)
    _, h = tl.associative_scan((a, b), 0, _compose)
    tl.store(out_ptr + where, h)


@triton.jit
def sort_kernel(x_ptr, out_ptr, N: tl.constexpr, DESCENDING: tl.constexpr):
    where = tl.program_id(0) * N + tl.arange(0, N)
    tl.store(out_ptr + where, tl.sort(tl.load(x_ptr + where), descending=DESCENDING))


@triton.jit
def topk_kernel(x_ptr, out_ptr, N: tl.constexpr, K: tl.constexpr):
    row = tl.program_id(0)
    x = tl.load(x_ptr + row * N + tl.arange(0, N))
    tl.store(out_ptr + row * K + tl.arange(0, K), tl.topk(x, K))


def cumsum(x, reverse=False, warps=4):
    out = empty(x.shape, x.dtype)
    rows, cols = x.shape
    cumsum_kernel[(rows,)](
        x, out, cols, REVERSE=reverse, BLOCK=triton.next_power_of_2(cols), num_warps=warps
    )
    return out


def carried_cumsum(x, block=2048):
    out = empty(x.shape, "fp32")
    carried_cumsum_kernel[(x.shape[0],)](x, out, x.shape[1], BLOCK=block)
    return out


def recurrence(a, b):
    out = empty(a.shape, "fp32")
    recurrence_kernel[(a.shape[0],)](a, b, out, STEPS=a.shape[1], CHANNELS=a.shape[2])
    return out


def sort(x, descending=False):
    out = empty(x.shape, x.dtype)
    sort_kernel[(x.shape[0],)](x, out, N=x.shape[1], DESCENDING=descending)
    return out


def topk(x, k):
    out = empty((x.shape[0], k), x.dtype)
    topk_kernel[(x.shape[0],)](x, out, N=x.shape[1], K=k)
    return out


def cumsum_reference(x, reverse=False, **_):
    x = x.double()
    return x.flip(1).cumsum(1).flip(1) if reverse else x.cumsum(1)


def recurrence_reference(a, b):
    h, rows = 0, []
    out = b.clone()
    for step in range(a.shape[1]):
        h = a[:, step] * h + b[:, step]
        out[:, step] = h
    return out


def sort_reference(x, descending=False):
    return x.sort(1, descending=descending)[0]


def topk_reference(x, k):
    return x.topk(k, dim=1)[0]


def row(function, shape, dtype, reference, size=4, **facts):
    numel = shape[0] * shape[1]
    return launch(
        function, tensor(shape, dtype), flops=numel, min_bytes=2 * numel * size, reference=reference,
        rtol=facts.pop("rtol", 1e-3), atol=facts.pop("atol", 1e-2), **facts,
    )


LAUNCHES = {
    "cumsum-fp32-1k": row(cumsum, (8192, 1024), "fp32", cumsum_reference, tier="gate"),
    "cumsum-bf16-reverse-3k": row(cumsum, (4096, 3000), "bf16", cumsum_reference, 2, reverse=True, atol=1.0, rtol=2e-2),
    "cumsum-fp32-16k-carried": row(carried_cumsum, (1024, 16384), "fp32", cumsum_reference, atol=5e-2),
    "recurrence-fp32-256x64": launch(
        recurrence, tensor((512, 256, 64), "fp32", fill="uniform:0.5:1"), tensor((512, 256, 64), "fp32"),
        flops=2 * 512 * 256 * 64, min_bytes=12 * 512 * 256 * 64, reference=recurrence_reference, rtol=1e-3, atol=1e-3,
    ),
    "sort-fp32-256": row(sort, (4096, 256), "fp32", sort_reference, atol=0.0),
    "sort-i32-128-descending": launch(
        sort, tensor((4096, 128), "i32", fill="randint:-1000:1000"), descending=True, flops=4096 * 128 * 28,
        min_bytes=8 * 4096 * 128, reference=sort_reference, rtol=0, atol=0,
    ),
    "topk-fp32-512-8": row(topk, (4096, 512), "fp32", topk_reference, k=8, since="3.4.0", atol=0.0),
}
