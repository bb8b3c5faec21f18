"""Attention over a packed batch of sequences of different lengths, with shared key heads and a sliding window."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def varlen_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, bounds_ptr, scale,
    stride_qt, stride_qh, stride_kt, stride_kh, stride_vt, stride_vh, stride_ot, stride_oh,
    GROUP: tl.constexpr, WINDOW: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    sequence = tl.program_id(2)
    head = tl.program_id(1)
    begin = tl.load(bounds_ptr + sequence)
    length = tl.load(bounds_ptr + sequence + 1) - begin
    first_m = tl.program_id(0) * BLOCK_M
    if first_m >= length:
        return
    offs_m = first_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    real = offs_m < length
    q = tl.load(
        q_ptr + (begin + offs_m)[:, None].to(tl.int64) * stride_qt + head * stride_qh + offs_d[None, :],
        mask=real[:, None], other=0.0,
    )
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    low = 0
    if WINDOW > 0:
        low = tl.maximum(0, (first_m - WINDOW + 1) // BLOCK_N * BLOCK_N)
    for start in range(low, tl.minimum(first_m + BLOCK_M, length), BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n < length
        tokens = (begin + offs_n).to(tl.int64)
        k = tl.load(
            k_ptr + tokens[None, :] * stride_kt + head // GROUP * stride_kh + offs_d[:, None],
            mask=inside[None, :], other=0.0,
        )
        keep = (offs_m[:, None] >= offs_n[None, :]) & inside[None, :]
        if WINDOW > 0:
            keep &= offs_m[:, None] - offs_n[None, :] < WINDOW
        scores = tl.where(keep, tl.dot(q, k) * scale, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.where(keep, tl.exp(scores - higher[:, None]), 0.0)
        decay = tl.exp(top - higher)
        denominator = denominator * decay + tl.sum(p, 1)
        v = tl.load(
            v_ptr + tokens[:, None] * stride_vt + head // GROUP * stride_vh + offs_d[None, :],
            mask=inside[:, None], other=0.0,
        )
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        top = higher
    out_ptrs = out_ptr + (begin + offs_m)[:, None].to(tl.int64) * stride_ot + head * stride_oh + offs_d[None, :]
    tl.store(out_ptrs, (acc / denominator[:, None]).to(out_ptr.dtype.element_ty), mask=real[:, None])


def varlen_forward(q, k, v, bounds, longest, window=0, block=(64, 64), warps=4, stages=2):
    tokens, heads, d = q.shape
    out = empty(q.shape, q.dtype)
    varlen_forward_kernel[(triton.cdiv(longest, block[0]), heads, bounds.shape[0] - 1)](
        q, k, v, out, bounds, d**-0.5, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        out.stride(0), out.stride(1), GROUP=heads // k.shape[1], WINDOW=window,
        BLOCK_M=block[0], BLOCK_N=block[1], D=d, num_warps=warps, num_stages=stages,
    )
    return out


def reference(q, k, v, bounds, longest, window=0, **_):
    out = q.float().clone()
    group = q.shape[1] // k.shape[1]
    limits = bounds.tolist()
    for begin, end in zip(limits, limits[1:]):
        part = slice(begin, end)
        qs = q[part].float().transpose(0, 1)
        ks, vs = (x[part].float().transpose(0, 1).repeat_interleave(group, 0) for x in (k, v))
        scores = qs @ ks.transpose(1, 2) * q.shape[2] ** -0.5
        keep = scores.new_ones(scores.shape[1:]).tril()
        if window:
            keep = keep - scores.new_ones(scores.shape[1:]).tril(-window)
        out[part] = (scores.masked_fill(keep == 0, -float("inf")).softmax(-1) @ vs).transpose(0, 1)
    return out


def row(dtype, lengths, heads, kv_heads, d, window=0, **facts):
    bounds = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    tokens = bounds[-1]
    pairs = sum(sum(min(i + 1, window or i + 1) for i in range(n)) for n in lengths)
    return launch(
        varlen_forward, tensor((tokens, heads, d), dtype), tensor((tokens, kv_heads, d), dtype),
        tensor((tokens, kv_heads, d), dtype), values(bounds), max(lengths), window=window,
        flops=4 * heads * pairs * d, min_bytes=4 * tokens * (heads + kv_heads) * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "bf16-d128-gqa": row("bf16", [1024, 77, 512, 1, 2048, 300], 16, 4, 128, block=(128, 64), warps=8, tier="gate"),
    "fp16-d64": row("fp16", [512] * 8, 16, 16, 64),
    "bf16-d128-window": row("bf16", [1500, 2048, 700], 16, 4, 128, window=256),
}
