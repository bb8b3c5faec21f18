"""Mixture of experts: tokens routed to experts through a sorted list of token numbers, as inference engines do."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def fused_moe_kernel(
    x_ptr, w_ptr, y_ptr, weights_ptr, sorted_ids_ptr, expert_ids_ptr, N, K, num_valid,
    stride_xm, stride_xk, stride_we, stride_wn, stride_wk, stride_ym, stride_yn,
    TOP_K: tl.constexpr, MUL_WEIGHT: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):
    pid_m = tl.program_id(0)
    pid_n = tl.program_id(1)
    slots = tl.load(sorted_ids_ptr + pid_m * BLOCK_M + tl.arange(0, BLOCK_M)).to(tl.int64)
    valid = slots < num_valid
    expert = tl.load(expert_ids_ptr + pid_m).to(tl.int64)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    x_ptrs = x_ptr + (slots // TOP_K)[:, None] * stride_xm + offs_k[None, :] * stride_xk
    w_ptrs = w_ptr + expert * stride_we + offs_k[:, None] * stride_wk + (offs_n % N)[None, :] * stride_wn
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        x = tl.load(x_ptrs, mask=valid[:, None] & (offs_k[None, :] < K - k * BLOCK_K), other=0.0)
        w = tl.load(w_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc += tl.dot(x, w)
        x_ptrs += BLOCK_K * stride_xk
        w_ptrs += BLOCK_K * stride_wk
    if MUL_WEIGHT:
        acc *= tl.load(weights_ptr + slots, mask=valid, other=0.0)[:, None]
    y_ptrs = y_ptr + slots[:, None] * stride_ym + offs_n[None, :] * stride_yn
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=valid[:, None] & (offs_n < N)[None, :])


@triton.jit
def moe_topk_softmax_kernel(logits_ptr, weights_ptr, ids_ptr, EXPERTS: tl.constexpr, TOP_K: tl.constexpr):
    """The router: softmax over experts, then the best TOP_K by repeated maximum."""
    row = tl.program_id(0)
    experts = tl.arange(0, EXPERTS)
    logits = tl.load(logits_ptr + row * EXPERTS + experts).to(tl.float32)
    numerator = tl.exp(logits - tl.max(logits, axis=0))
    p = numerator / tl.sum(numerator, axis=0)
    for place in tl.static_range(TOP_K):
        best = tl.argmax(p, axis=0)
        tl.store(weights_ptr + row * TOP_K + place, tl.max(p, axis=0))
        tl.store(ids_ptr + row * TOP_K + place, best.to(tl.int32))
        p = tl.where(experts == best, -1.0, p)


def fused_moe(x, w, weights, sorted_ids, expert_ids, top_k, mul_weight=False, block=(64, 64, 64), warps=4, stages=3):
    (tokens, k), (_, n, _) = x.shape, w.shape
    y = empty((tokens * top_k, n), x.dtype)
    grid = (expert_ids.shape[0], triton.cdiv(n, block[1]))
    fused_moe_kernel[grid](
        x, w, y, weights, sorted_ids, expert_ids, n, k, tokens * top_k, *x.stride(), *w.stride(), *y.stride(),
        TOP_K=top_k, MUL_WEIGHT=mul_weight, BLOCK_M=block[0], BLOCK_N=block[1], BLOCK_K=block[2],
        num_warps=warps, num_stages=stages,
    )
    return y


def topk_softmax(logits, top_k):
    tokens, experts = logits.shape
    weights, ids = empty((tokens, top_k), "fp32"), empty((tokens, top_k), "i32")
    moe_topk_softmax_kernel[(tokens,)](logits, weights, ids, EXPERTS=experts, TOP_K=top_k, num_warps=1)
    return weights, ids


def reference(x, w, weights, sorted_ids, expert_ids, top_k, mul_weight=False, block=(64, 64, 64), **_):
    out = x.new_zeros((x.shape[0] * top_k, w.shape[1])).float()
    slots = sorted_ids.view(-1, block[0])
    for rows, expert in zip(slots, expert_ids.tolist()):
        rows = rows[rows < out.shape[0]].long()
        out[rows] = x[rows // top_k].float() @ w[expert].float().T
    return out * weights.view(-1, 1) if mul_weight else out


def topk_reference(logits, top_k):
    weights, ids = logits.float().softmax(-1).topk(top_k, dim=-1)
    return weights, ids


def row(dtype, tokens, experts, top_k, n, k, block=(64, 64, 64), **facts):
    """Slot s goes to expert (s * 7) % experts; each expert's slots are padded to whole blocks."""
    sorted_ids, expert_ids, nobody = [], [], tokens * top_k
    for expert in range(experts):
        slots = [slot for slot in range(tokens * top_k) if slot * 7 % experts == expert]
        slots += [nobody] * (-len(slots) % block[0])
        sorted_ids += slots
        expert_ids += [expert] * (len(slots) // block[0])
    return launch(
        fused_moe, tensor((tokens, k), dtype), tensor((experts, n, k), dtype), tensor((tokens * top_k,), "fp32", fill="uniform"),
        values(sorted_ids), values(expert_ids), top_k, block=block,
        flops=2 * tokens * top_k * n * k, min_bytes=2 * (tokens * k + experts * n * k + tokens * top_k * n),
        reference=reference, rtol=2e-2, atol=0.5, **facts,
    )


LAUNCHES = {
    "bf16-512x8-top2": row("bf16", 512, 8, 2, 4096, 2048, tier="gate"),
    "bf16-weighted-top2": row("bf16", 512, 8, 2, 2048, 4096, mul_weight=True),
    "fp16-decode-16x8-top2": row("fp16", 16, 8, 2, 2048, 2048, block=(16, 64, 128), stages=4),
    "router-64-top8": launch(
        topk_softmax, tensor((4096, 64), "fp32"), 8, flops=4096 * 64 * 12, min_bytes=4096 * (64 * 4 + 8 * 8),
        reference=topk_reference, rtol=1e-4, atol=1e-5,
    ),
}
