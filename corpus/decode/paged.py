"""Decoding against a paged key-value cache: keys split among programs, partial results joined by a second kernel."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def paged_split_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, partial_ptr, lse_ptr, scale,
    stride_qb, stride_qh, stride_kp, stride_kt, stride_kh, stride_vp, stride_vt, stride_vh, stride_table,
    GROUP: tl.constexpr, SPLITS: tl.constexpr, PAGE: tl.constexpr,
    BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, DK_REST: tl.constexpr,
):
    """All query heads that share a key head are the rows of one product. DK_REST > 0: keys have a second,
    shorter part (rotary, as in multi-head latent attention) behind the first DK elements."""
    batch = tl.program_id(0)
    kv_head = tl.program_id(1)
    split = tl.program_id(2)
    length = tl.load(lengths_ptr + batch)
    each = tl.cdiv(tl.cdiv(length, SPLITS), BLOCK_N) * BLOCK_N
    low = split * each
    high = tl.minimum(low + each, length)
    heads = kv_head * GROUP + tl.arange(0, BLOCK_H)
    real = tl.arange(0, BLOCK_H) < GROUP
    offs_k = tl.arange(0, DK)
    offs_v = tl.arange(0, DV)
    q_ptrs = q_ptr + batch * stride_qb + heads[:, None] * stride_qh
    q = tl.load(q_ptrs + offs_k[None, :], mask=real[:, None], other=0.0)
    if DK_REST > 0:
        offs_r = DK + tl.arange(0, DK_REST)
        q_rest = tl.load(q_ptrs + offs_r[None, :], mask=real[:, None], other=0.0)
    acc = tl.zeros((BLOCK_H, DV), tl.float32)
    denominator = tl.zeros((BLOCK_H,), tl.float32)
    top = tl.full((BLOCK_H,), -1.0e30, tl.float32)
    for start in range(low, high, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n < high
        page = tl.load(table_ptr + batch * stride_table + offs_n // PAGE, mask=inside, other=0).to(tl.int64)
        k_rows = page * stride_kp + offs_n % PAGE * stride_kt + kv_head * stride_kh
        k = tl.load(k_ptr + k_rows[None, :] + offs_k[:, None], mask=inside[None, :], other=0.0)
        scores = tl.dot(q, k)
        if DK_REST > 0:
            k_rest = tl.load(k_ptr + k_rows[None, :] + offs_r[:, None], mask=inside[None, :], other=0.0)
            scores = tl.dot(q_rest, k_rest, scores)
        scores = tl.where(inside[None, :], scores * scale, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        decay = tl.exp(top - higher)
        v_rows = page * stride_vp + offs_n % PAGE * stride_vt + kv_head * stride_vh
        v = tl.load(v_ptr + v_rows[:, None] + offs_v[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        denominator = denominator * decay + tl.sum(p, 1)
        top = higher
    slot = (batch * tl.num_programs(1) * GROUP + heads) * SPLITS + split
    out = acc / tl.where(denominator > 0, denominator, 1.0)[:, None]
    tl.store(partial_ptr + slot[:, None] * DV + offs_v[None, :], out, mask=real[:, None])
    tl.store(lse_ptr + slot, tl.where(denominator > 0, top + tl.log(denominator), -1.0e30), mask=real)


@triton.jit
def paged_join_kernel(partial_ptr, lse_ptr, out_ptr, SPLITS: tl.constexpr, DV: tl.constexpr):
    row = tl.program_id(0)
    offs_v = tl.arange(0, DV)
    acc = tl.zeros((DV,), tl.float32)
    total = 0.0
    top = -1.0e30
    for split in range(0, SPLITS):
        lse = tl.load(lse_ptr + row * SPLITS + split)
        part = tl.load(partial_ptr + (row * SPLITS + split) * DV + offs_v)
        higher = tl.maximum(top, lse)
        decay = tl.exp(top - higher)
        weight = tl.exp(lse - higher)
        acc = acc * decay + part * weight
        total = total * decay + weight
        top = higher
    tl.store(out_ptr + row * DV + offs_v, (acc / total).to(out_ptr.dtype.element_ty))


def paged_decode(q, k, v, table, lengths, splits=8, block_n=32, rest=0, warps=4, stages=2):
    batch, heads, d = q.shape
    page, kv_heads, dv = k.shape[1], k.shape[2], v.shape[3]
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = 1
    group = heads // kv_heads
    partial, lse = empty((batch, heads, splits, dv), "fp32"), empty((batch, heads, splits), "fp32")
    out = empty((batch, heads, dv), q.dtype)
    paged_split_kernel[(batch, kv_heads, splits)](
        q, k, v, table, lengths, partial, lse, d**-0.5, q.stride(0), q.stride(1), k.stride(0), k.stride(1), k.stride(2),
        v.stride(0), v.stride(1), v.stride(2), table.stride(0), GROUP=group, SPLITS=splits, PAGE=page,
        BLOCK_H=max(16, triton.next_power_of_2(group)), BLOCK_N=block_n, DK=d - rest, DV=dv, DK_REST=rest,
        num_warps=warps, num_stages=stages,
    )
    paged_join_kernel[(batch * heads,)](partial, lse, out, SPLITS=splits, DV=dv)
    return out


def reference(q, k, v, table, lengths, **_):
    out = q.new_empty((*q.shape[:2], v.shape[3])).float()
    group, page = q.shape[1] // k.shape[2], k.shape[1]
    for row, length in enumerate(lengths.tolist()):
        pages = table[row, : -(-length // page)].long()
        ks, vs = (x[pages].flatten(0, 1)[:length].float().repeat_interleave(group, 1) for x in (k, v))
        scores = (q[row].float()[:, None] * ks.transpose(0, 1)).sum(-1) * q.shape[2] ** -0.5
        out[row] = (scores.softmax(-1)[:, :, None] * vs.transpose(0, 1)).sum(1)
    return out


def row(dtype, lengths, heads, kv_heads, d, page, dv=None, shared=False, **facts):
    """Pages of a sequence lie scattered: sequence b's page i is page (b + i * batch) of the cache."""
    batch = len(lengths)
    width = max(-(-n // page) for n in lengths)
    k = tensor((batch * width, page, kv_heads, d), dtype)
    v = k[:, :, :, :dv] if shared else tensor((batch * width, page, kv_heads, dv or d), dtype)
    table = values([b + i * batch for b in range(batch) for i in range(width)], shape=(batch, width))
    tokens = sum(lengths)
    return launch(
        paged_decode, tensor((batch, heads, d), dtype), k, v, table, values(lengths),
        flops=2 * heads * tokens * (d + (dv or d)), min_bytes=2 * tokens * kv_heads * (d if shared else d + (dv or d)),
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LENGTHS = [4096, 1, 777, 2048, 3000, 17, 1024, 2500] * 4

LAUNCHES = {
    "bf16-gqa8-d128": row("bf16", LENGTHS, 32, 4, 128, 16, tier="gate"),
    "fp16-mha-d64": row("fp16", LENGTHS[:16], 16, 16, 64, 16, block_n=64),
    "bf16-mla-d576": row("bf16", LENGTHS[:16], 16, 1, 576, 64, dv=512, shared=True, rest=64),
}
