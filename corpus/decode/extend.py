"""Extend attention: new tokens attend to a cached prefix, found through token numbers, and to each other."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def extend_attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, k_cache_ptr, v_cache_ptr, new_bounds_ptr, prefix_bounds_ptr, prefix_tokens_ptr, scale,
    stride_qt, stride_qh, stride_qd, stride_kt, stride_kh, stride_kd, stride_vt, stride_vh, stride_vd,
    stride_ot, stride_oh, stride_od, stride_ckt, stride_ckh, stride_ckd, stride_cvt, stride_cvh, stride_cvd,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr, D_REST: tl.constexpr,
):
    """D_REST > 0: queries and keys have that many elements more than values (rotary, in latent attention)."""
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    kv_head = head // GROUP
    begin = tl.load(new_bounds_ptr + sequence)
    new = tl.load(new_bounds_ptr + sequence + 1) - begin
    prefix_begin = tl.load(prefix_bounds_ptr + sequence)
    prefix = tl.load(prefix_bounds_ptr + sequence + 1) - prefix_begin
    offs_m = tl.program_id(2) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    real = offs_m < new
    q = tl.load(
        q_ptr + (begin + offs_m)[:, None] * stride_qt + head * stride_qh + offs_d[None, :] * stride_qd,
        mask=real[:, None], other=0.0,
    )
    if D_REST > 0:
        offs_r = D + tl.arange(0, D_REST)
        q_rest = tl.load(
            q_ptr + (begin + offs_m)[:, None] * stride_qt + head * stride_qh + offs_r[None, :] * stride_qd,
            mask=real[:, None], other=0.0,
        )
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    for start in range(0, prefix, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n < prefix
        token = tl.load(prefix_tokens_ptr + prefix_begin + offs_n, mask=inside, other=0)
        k_where = token[None, :] * stride_ckt + kv_head * stride_ckh + offs_d[:, None] * stride_ckd
        k = tl.load(k_cache_ptr + k_where, mask=inside[None, :], other=0.0)
        scores = tl.dot(q, k)
        if D_REST > 0:
            rest_where = token[None, :] * stride_ckt + kv_head * stride_ckh + offs_r[:, None] * stride_ckd
            scores = tl.dot(q_rest, tl.load(k_cache_ptr + rest_where, mask=inside[None, :], other=0.0), scores)
        scores = tl.where(inside[None, :] & real[:, None], scores * scale, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        decay = tl.exp(top - higher)
        v_where = token[:, None] * stride_cvt + kv_head * stride_cvh + offs_d[None, :] * stride_cvd
        v = tl.load(v_cache_ptr + v_where, mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        denominator = denominator * decay + tl.sum(p, 1)
        top = higher
    for start in range(0, tl.minimum(new, (tl.program_id(2) + 1) * BLOCK_M), BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        inside = offs_n < new
        k_where = (begin + offs_n)[None, :] * stride_kt + kv_head * stride_kh + offs_d[:, None] * stride_kd
        k = tl.load(k_ptr + k_where, mask=inside[None, :], other=0.0)
        keep = inside[None, :] & (offs_m[:, None] >= offs_n[None, :])
        scores = tl.dot(q, k)
        if D_REST > 0:
            rest_where = (begin + offs_n)[None, :] * stride_kt + kv_head * stride_kh + offs_r[:, None] * stride_kd
            scores = tl.dot(q_rest, tl.load(k_ptr + rest_where, mask=inside[None, :], other=0.0), scores)
        scores = tl.where(keep, scores * scale, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        decay = tl.exp(top - higher)
        v_where = (begin + offs_n)[:, None] * stride_vt + kv_head * stride_vh + offs_d[None, :] * stride_vd
        v = tl.load(v_ptr + v_where, mask=inside[:, None], other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        denominator = denominator * decay + tl.sum(p, 1)
        top = higher
    out_ptrs = out_ptr + (begin + offs_m)[:, None] * stride_ot + head * stride_oh + offs_d[None, :] * stride_od
    tl.store(out_ptrs, (acc / denominator[:, None]).to(out_ptr.dtype.element_ty), mask=real[:, None])


def extend_attention(
    q, k, v, k_cache, v_cache, new_bounds, prefix_bounds, prefix_tokens, longest, block=(64, 64), warps=4, latent=False
):
    (tokens, heads, dk), d = q.shape, v.shape[2]
    options = {}
    if latent and triton.runtime.driver.active.get_current_target().backend == "hip":
        block, warps, options = (64, 64), 4, {"waves_per_eu": 1, "matrix_instr_nonkdim": 16}
    out = empty((tokens, heads, d), q.dtype)
    extend_attention_kernel[(new_bounds.shape[0] - 1, heads, triton.cdiv(longest, block[0]))](
        q, k, v, out, k_cache, v_cache, new_bounds, prefix_bounds, prefix_tokens, dk**-0.5, *q.stride(), *k.stride(),
        *v.stride(), *out.stride(), *k_cache.stride(), *v_cache.stride(), GROUP=heads // k.shape[1],
        BLOCK_M=block[0], BLOCK_N=block[1], D=d, D_REST=dk - d, num_warps=warps, num_stages=1, **options,
    )
    return out


def reference(q, k, v, k_cache, v_cache, new_bounds, prefix_bounds, prefix_tokens, longest, **_):
    out = q.new_empty((*q.shape[:2], v.shape[2])).float()
    group = q.shape[1] // k.shape[1]
    new, old = new_bounds.tolist(), prefix_bounds.tolist()
    for row in range(len(new) - 1):
        here, tokens = slice(new[row], new[row + 1]), prefix_tokens[old[row] : old[row + 1]].long()
        prefix, count = len(tokens), new[row + 1] - new[row]
        ks, vs = (x.new_empty((prefix + count, *x.shape[1:])).float() for x in (k, v))
        ks[:prefix], ks[prefix:], vs[:prefix], vs[prefix:] = k_cache[tokens], k[here], v_cache[tokens], v[here]
        ks, vs = (x.repeat_interleave(group, 1).transpose(0, 1) for x in (ks, vs))
        scores = q[here].float().transpose(0, 1) @ ks.transpose(1, 2) * q.shape[2] ** -0.5
        keep = scores.new_ones((count, prefix + count)).tril(prefix)
        out[here] = (scores.masked_fill(keep == 0, -float("inf")).softmax(-1) @ vs).transpose(0, 1)
    return out


def row(dtype, new, prefix, heads, kv_heads, d, step=1, rest=0, **facts):
    """step: distance of neighbours in the last dimension; 1 is specialized to a constant, 2 is not.
    rest: by how many elements queries and keys are longer than values.
    """
    def sums(counts):
        return [sum(counts[:i]) for i in range(len(counts) + 1)]

    def matrix(rows, columns, width=d):
        return tensor((rows, columns, width * step), dtype)[:, :, ::step]

    tokens, cached = sum(new), sum(prefix)
    numbers = [(i * 7919) % cached for i in range(cached)]
    pairs = sum(n * p + n * (n + 1) // 2 for n, p in zip(new, prefix))
    return launch(
        extend_attention, matrix(tokens, heads, d + rest), matrix(tokens, kv_heads, d + rest), matrix(tokens, kv_heads),
        matrix(cached, kv_heads, d + rest), matrix(cached, kv_heads), values(sums(new)), values(sums(prefix)), values(numbers, "i64"),
        max(new), flops=2 * heads * pairs * (2 * d + rest),
        min_bytes=2 * (2 * d + rest) * (tokens * heads + (tokens + cached) * kv_heads),
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


NEW, PREFIX = [300, 64, 511, 17], [1000, 0, 700, 2048]

# Both signatures of plain integers: a stride of 1 becomes a constant, any other is passed (see unified.py, vllm #18161).
LAUNCHES = {
    "bf16-d128-unit-strides": row("bf16", NEW, PREFIX, 16, 4, 128, tier="gate"),
    "bf16-d128-generic-strides": row("bf16", NEW, PREFIX, 16, 4, 128, step=2),
    "fp16-d64-unit-strides": row("fp16", NEW, PREFIX, 16, 16, 64),
    # sglang #34741: on gfx950, queries of 576 and values of 512 elements, tiles of 64×64, 4 warps. 3.7.1 spills nothing,
    # 3.8.0 187 vector registers
    "bf16-mla-d576": row("bf16", NEW, PREFIX, 8, 1, 512, rest=64, block=(32, 32), warps=8, latent=True),
}
