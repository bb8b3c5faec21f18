"""Flash attention forward: online softmax between two products, causal and not, with plain pointers."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def _attend(
    acc, denominator, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n, low, high, scale,
    MASKED: tl.constexpr, BLOCK_N: tl.constexpr,
):
    for start in range(low, high, BLOCK_N):
        k = tl.load(k_ptrs + start * stride_kn)
        scores = tl.dot(q, k) * scale
        if MASKED:
            scores = tl.where(offs_m[:, None] >= start + offs_n[None, :], scores, -1.0e6)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.math.exp2(scores - higher[:, None])
        decay = tl.math.exp2(top - higher)
        denominator = denominator * decay + tl.sum(p, 1)
        acc = acc * decay[:, None]
        v = tl.load(v_ptrs + start * stride_vn)
        acc = tl.dot(p.to(v.dtype), v, acc)
        top = higher
    return acc, denominator, top


@triton.jit
def flash_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr, scale,
    stride_qh, stride_qm, stride_kh, stride_kn, stride_vh, stride_vn, stride_oh, stride_om, length,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    q = tl.load(q_ptr + head * stride_qh + offs_m[:, None] * stride_qm + offs_d[None, :])
    k_ptrs = k_ptr + head * stride_kh + offs_n[None, :] * stride_kn + offs_d[:, None]
    v_ptrs = v_ptr + head * stride_vh + offs_n[:, None] * stride_vn + offs_d[None, :]
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    scale *= 1.4426950408889634
    if CAUSAL:
        acc, denominator, top = _attend(
            acc, denominator, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n,
            0, block * BLOCK_M, scale, False, BLOCK_N,
        )
        acc, denominator, top = _attend(
            acc, denominator, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n,
            block * BLOCK_M, (block + 1) * BLOCK_M, scale, True, BLOCK_N,
        )
    else:
        acc, denominator, top = _attend(
            acc, denominator, top, q, k_ptrs, v_ptrs, stride_kn, stride_vn, offs_m, offs_n,
            0, length, scale, False, BLOCK_N,
        )
    tl.store(lse_ptr + head * length + offs_m, top + tl.math.log2(denominator))
    out = (acc / denominator[:, None]).to(out_ptr.dtype.element_ty)
    tl.store(out_ptr + head * stride_oh + offs_m[:, None] * stride_om + offs_d[None, :], out)


def flash_forward(q, k, v, causal, block=(128, 64), warps=4, stages=3):
    heads, length, d = q.shape
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = min(stages, 2)  # 64 KiB of LDS hold no more
    out, lse = empty(q.shape, q.dtype), empty((heads, length), "fp32")
    flash_forward_kernel[(triton.cdiv(length, block[0]), heads)](
        q, k, v, out, lse, d**-0.5, q.stride(0), q.stride(1), k.stride(0), k.stride(1), v.stride(0), v.stride(1),
        out.stride(0), out.stride(1), length, CAUSAL=causal, BLOCK_M=block[0], BLOCK_N=block[1], D=d,
        num_warps=warps, num_stages=stages,
    )
    return out, lse


def reference(q, k, v, causal, **_):
    q, k, v = q.float(), k.float(), v.float()
    scores = q @ k.transpose(1, 2) * q.shape[2] ** -0.5
    if causal:
        keep = scores.new_ones(scores.shape[1:]).tril().bool()
        scores = scores.masked_fill(~keep, -float("inf"))
    return scores.softmax(-1) @ v, scores.logsumexp(-1) * 1.4426950408889634


def row(dtype, heads, length, d, causal, **facts):
    shape = (heads, length, d)
    return launch(
        flash_forward, tensor(shape, dtype), tensor(shape, dtype), tensor(shape, dtype), causal,
        flops=4 * heads * length * length * d // (2 if causal else 1), min_bytes=8 * heads * length * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "causal-d64": row("fp16", 32, 4096, 64, True, tier="gate"),
    "causal-d128": row("fp16", 32, 4096, 128, True, warps=8, tier="gate"),
    "full-d64": row("fp16", 32, 4096, 64, False),
    "full-d128": row("bf16", 32, 4096, 128, False, warps=8),
    "causal-d256": row("bf16", 16, 2048, 256, True, warps=8, stages=2, block=(64, 32)),
    "causal-d128-stages4": row("bf16", 32, 2048, 128, True, warps=8, stages=4, block=(128, 32), tier="extended"),
}
