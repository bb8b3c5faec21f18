"""Flash attention backward: probabilities made again from the log-sum-exp; dK and dV by columns, dQ by rows."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros


@triton.jit
def backward_preprocess_kernel(out_ptr, dout_ptr, delta_ptr, BLOCK_M: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    where = rows[:, None] * D + tl.arange(0, D)[None, :]
    out = tl.load(out_ptr + where).to(tl.float32)
    dout = tl.load(dout_ptr + where).to(tl.float32)
    tl.store(delta_ptr + rows, tl.sum(out * dout, axis=1))


@triton.jit
def backward_dkdv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr, length, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    first_n = tl.program_id(0) * BLOCK_N
    q_ptr += head * length * D
    dout_ptr += head * length * D
    offs_n = first_n + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    kv_where = head * length * D + offs_n[:, None] * D + offs_d[None, :]
    k = tl.load(k_ptr + kv_where)
    v = tl.load(v_ptr + kv_where)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    begin = first_n // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(begin, length, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        q_t = tl.load(q_ptr + offs_m[None, :] * D + offs_d[:, None])
        lse = tl.load(lse_ptr + head * length + offs_m)
        p_t = tl.math.exp2(tl.dot(k, q_t) * (scale * 1.4426950408889634) - lse[None, :])
        if CAUSAL:
            p_t = tl.where(offs_m[None, :] >= offs_n[:, None], p_t, 0.0)
        dout = tl.load(dout_ptr + offs_m[:, None] * D + offs_d[None, :])
        dv += tl.dot(p_t.to(dout.dtype), dout)
        dp_t = tl.dot(v, tl.trans(dout))
        delta = tl.load(delta_ptr + head * length + offs_m)
        ds_t = p_t * (dp_t - delta[None, :])
        dk += tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t))
    tl.store(dk_ptr + kv_where, (dk * scale).to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + kv_where, dv.to(dv_ptr.dtype.element_ty))


@triton.jit
def backward_dq_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, length, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    head = tl.program_id(1).to(tl.int64)
    first_m = tl.program_id(0) * BLOCK_M
    offs_m = first_m + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    q_where = head * length * D + offs_m[:, None] * D + offs_d[None, :]
    q = tl.load(q_ptr + q_where)
    dout = tl.load(dout_ptr + q_where)
    lse = tl.load(lse_ptr + head * length + offs_m)
    delta = tl.load(delta_ptr + head * length + offs_m)
    dq = tl.zeros((BLOCK_M, D), tl.float32)
    end = first_m + BLOCK_M if CAUSAL else length
    for start in range(0, end, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        kv_where = head * length * D + offs_n[None, :] * D + offs_d[:, None]
        k_t = tl.load(k_ptr + kv_where)
        v_t = tl.load(v_ptr + kv_where)
        p = tl.math.exp2(tl.dot(q, k_t) * (scale * 1.4426950408889634) - lse[:, None])
        if CAUSAL:
            p = tl.where(offs_m[:, None] >= offs_n[None, :], p, 0.0)
        ds = p * (tl.dot(dout, v_t) - delta[:, None])
        dq += tl.dot(ds.to(k_t.dtype), tl.trans(k_t))
    tl.store(dq_ptr + q_where, (dq * scale).to(dq_ptr.dtype.element_ty))


@triton.jit
def backward_whole_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr, length, scale,
    CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    """All three gradients in one pass over the queries of a key block; dQ is added up with atomics."""
    head = tl.program_id(1).to(tl.int64) * length
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_d = tl.arange(0, D)
    kv_where = (head + offs_n)[:, None] * D + offs_d[None, :]
    k = tl.load(k_ptr + kv_where)
    v = tl.load(v_ptr + kv_where)
    dk = tl.zeros((BLOCK_N, D), tl.float32)
    dv = tl.zeros((BLOCK_N, D), tl.float32)
    begin = tl.program_id(0) * BLOCK_N // BLOCK_M * BLOCK_M if CAUSAL else 0
    for start in range(begin, length, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        q_where = (head + offs_m)[:, None] * D + offs_d[None, :]
        q = tl.load(q_ptr + q_where)
        lse = tl.load(lse_ptr + head + offs_m)
        p = tl.math.exp2(tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634) - lse[:, None])
        if CAUSAL:
            p = tl.where(offs_m[:, None] >= offs_n[None, :], p, 0.0)
        dout = tl.load(dout_ptr + q_where)
        dv += tl.dot(tl.trans(p.to(dout.dtype)), dout)
        dp = tl.dot(dout, tl.trans(v))
        ds = (p * (dp - tl.load(delta_ptr + head + offs_m)[:, None]) * scale).to(q.dtype)
        dk += tl.dot(tl.trans(ds), q)
        tl.atomic_add(dq_ptr + q_where, tl.dot(ds, k), sem="relaxed")
    tl.store(dk_ptr + kv_where, dk.to(dk_ptr.dtype.element_ty))
    tl.store(dv_ptr + kv_where, dv.to(dv_ptr.dtype.element_ty))


def whole_backward(q, k, v, out, dout, lse, causal, block=64, warps=8):
    heads, length, d = q.shape
    delta, dq = empty((heads, length), "fp32"), zeros(q.shape, "fp32")
    dk, dv = empty(k.shape, k.dtype), empty(v.shape, v.dtype)
    backward_preprocess_kernel[(heads * length // 128,)](out, dout, delta, BLOCK_M=128, D=d)
    backward_whole_kernel[(length // block, heads)](
        q, k, v, dout, lse, delta, dq, dk, dv, length, d**-0.5, CAUSAL=causal, BLOCK_M=block, BLOCK_N=block, D=d,
        num_warps=warps, num_stages=1,
    )
    return dq, dk, dv


def flash_backward(q, k, v, out, dout, lse, causal, blocks=(32, 128), warps=4, stages=3):
    heads, length, d = q.shape
    short, long = blocks
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = 1
    delta = empty((heads, length), "fp32")
    dq, dk, dv = empty(q.shape, q.dtype), empty(k.shape, k.dtype), empty(v.shape, v.dtype)
    backward_preprocess_kernel[(heads * length // 128,)](out, dout, delta, BLOCK_M=128, D=d)
    backward_dkdv_kernel[(length // long, heads)](
        q, k, v, dout, lse, delta, dk, dv, length, d**-0.5, CAUSAL=causal, BLOCK_M=short, BLOCK_N=long, D=d,
        num_warps=warps, num_stages=stages,
    )
    backward_dq_kernel[(length // long, heads)](
        q, k, v, dout, lse, delta, dq, length, d**-0.5, CAUSAL=causal, BLOCK_M=long, BLOCK_N=short, D=d,
        num_warps=warps, num_stages=stages,
    )
    return dq, dk, dv


def reference(q, k, v, out, dout, lse, causal, **_):
    q, k, v, out, dout = (x.float() for x in (q, k, v, out, dout))
    scale = q.shape[2] ** -0.5
    p = ((q @ k.transpose(1, 2)) * scale - lse[:, :, None] * 0.6931471805599453).exp()
    if causal:
        p = p.tril()
    ds = p * (dout @ v.transpose(1, 2) - (out * dout).sum(-1, keepdim=True))
    return ds @ k * scale, ds.transpose(1, 2) @ q * scale, p.transpose(1, 2) @ dout


def row(dtype, heads, length, d, causal, function=flash_backward, **facts):
    shape = (heads, length, d)
    return launch(
        function, *(tensor(shape, dtype) for _ in range(5)), tensor((heads, length), "fp32", fill="const:11"), causal,
        flops=10 * heads * length * length * d // (2 if causal else 1), min_bytes=16 * heads * length * d,
        reference=reference, rtol=2e-2, atol=1e-2, **facts,
    )


LAUNCHES = {
    "causal-d64": row("fp16", 16, 2048, 64, True, tier="gate"),
    "causal-d128": row("bf16", 16, 2048, 128, True, warps=8, stages=2),
    "full-d64": row("bf16", 16, 2048, 64, False),
    "causal-d256": row("bf16", 8, 2048, 256, True, blocks=(32, 64), warps=8, stages=1),
    # triton #7268: one kernel for all gradients, tiles of 128×128, 8 warps. 3.2.0 takes 98304 bytes of shared memory on
    # sm_80, 3.3.0 114688: more than the 101376 that the reported GPUs have (L4, A10G)
    "whole-causal-d64": row("bf16", 16, 2048, 64, True, whole_backward, block=128),
    "whole-full-d128": row("fp16", 16, 2048, 128, False, whole_backward, since="3.3.0"),
    "whole-causal-d256": row("bf16", 4, 2048, 256, True, whole_backward, block=32),
}
