"""Chunked gated delta rule (linear attention): triangular inverse, state recurrence, output."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def unit_lower_inverse_kernel(a_ptr, out_ptr, N: tl.constexpr):
    """(I + A)⁻¹ for strictly lower triangular N×N blocks, by forward substitution, row by row."""
    base = tl.program_id(0) * N * N
    i = tl.arange(0, N)
    where = base + i[:, None] * N + i[None, :]
    a = tl.load(a_ptr + where).to(tl.float32)
    a = -tl.where(i[:, None] > i[None, :], a, 0.0)
    for row in range(1, N):
        line = tl.sum(tl.where(i[:, None] == row, a, 0.0), axis=0)
        line += tl.sum(line[:, None] * a, axis=0) * (i < row)
        a = tl.where(i[:, None] == row, line[None, :], a)
    a += tl.where(i[:, None] == i[None, :], 1.0, 0.0)
    tl.store(out_ptr + where, a.to(out_ptr.dtype.element_ty))


@triton.jit
def delta_state_kernel(
    k_ptr, w_ptr, u_ptr, g_ptr, states_ptr, new_ptr, length,
    CHUNK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, BLOCK_V: tl.constexpr,
):
    """The state before each chunk, a DK × BLOCK_V tile a program: it stays in registers for the whole sequence."""
    head = tl.program_id(1).to(tl.int64)
    offs_v = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    offs_k = tl.arange(0, DK)
    state = tl.zeros((DK, BLOCK_V), tl.float32)
    chunks = length // CHUNK
    for chunk in range(chunks):
        place = (head * chunks + chunk) * DK * DV
        tl.store(states_ptr + place + offs_k[:, None] * DV + offs_v[None, :], state.to(states_ptr.dtype.element_ty))
        rows = head * length + chunk * CHUNK + tl.arange(0, CHUNK)
        w = tl.load(w_ptr + rows[:, None] * DK + offs_k[None, :])
        u = tl.load(u_ptr + rows[:, None] * DV + offs_v[None, :]).to(tl.float32)
        new = u - tl.dot(w, state.to(w.dtype))
        tl.store(new_ptr + rows[:, None] * DV + offs_v[None, :], new.to(new_ptr.dtype.element_ty))
        g = tl.load(g_ptr + rows)
        last = tl.load(g_ptr + head * length + chunk * CHUNK + CHUNK - 1)
        new *= tl.exp(last - g)[:, None]
        k_t = tl.load(k_ptr + rows[None, :] * DK + offs_k[:, None])
        state = state * tl.exp(last) + tl.dot(k_t, new.to(k_t.dtype))


@triton.jit
def delta_output_kernel(
    q_ptr, k_ptr, new_ptr, g_ptr, states_ptr, out_ptr, length, scale,
    CHUNK: tl.constexpr, DK: tl.constexpr, DV: tl.constexpr, BLOCK_V: tl.constexpr,
):
    head = tl.program_id(2).to(tl.int64)
    chunk = tl.program_id(1)
    offs_v = tl.program_id(0) * BLOCK_V + tl.arange(0, BLOCK_V)
    offs_k = tl.arange(0, DK)
    i = tl.arange(0, CHUNK)
    rows = head * length + chunk * CHUNK + i
    q = tl.load(q_ptr + rows[:, None] * DK + offs_k[None, :])
    k_t = tl.load(k_ptr + rows[None, :] * DK + offs_k[:, None])
    new = tl.load(new_ptr + rows[:, None] * DV + offs_v[None, :])
    place = (head * (length // CHUNK) + chunk) * DK * DV
    state = tl.load(states_ptr + place + offs_k[:, None] * DV + offs_v[None, :])
    g = tl.load(g_ptr + rows)
    out = tl.dot(q, state) * tl.exp(g)[:, None]
    scores = tl.dot(q, k_t)
    scores = tl.where(i[:, None] >= i[None, :], scores * tl.exp(g[:, None] - g[None, :]), 0.0)
    out = (out + tl.dot(scores.to(new.dtype), new)) * scale
    tl.store(out_ptr + rows[:, None] * DV + offs_v[None, :], out.to(out_ptr.dtype.element_ty))


def unit_lower_inverse(a, warps=1):
    out = empty(a.shape, "fp32")
    unit_lower_inverse_kernel[(a.shape[0],)](a, out, N=a.shape[1], num_warps=warps)
    return out


def gated_delta(q, k, w, u, g, chunk=64, block_v=32, warps=4, stages=2):
    heads, length, dk = k.shape
    dv = u.shape[2]
    states, new = empty((heads, length // chunk, dk, dv), k.dtype), empty(u.shape, k.dtype)
    out = empty(u.shape, q.dtype)
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = 1
    delta_state_kernel[(dv // block_v, heads)](
        k, w, u, g, states, new, length, CHUNK=chunk, DK=dk, DV=dv, BLOCK_V=block_v, num_warps=warps, num_stages=stages
    )
    delta_output_kernel[(dv // 64, length // chunk, heads)](
        q, k, new, g, states, out, length, dk**-0.5, CHUNK=chunk, DK=dk, DV=dv, BLOCK_V=64, num_warps=warps,
        num_stages=stages,
    )
    return out, new


def inverse_reference(a, warps=1):
    eye = a.new_zeros(a.shape[1:]).float()
    eye.fill_diagonal_(1)
    return (a.float().tril(-1) + eye).inverse()


def reference(q, k, w, u, g, chunk=64, **_):
    dtype = k.dtype
    heads, length, dk = k.shape
    q, k, w, u = q.float(), k.float(), w.float(), u.float()
    state = k.new_zeros((heads, dk, u.shape[2]))
    out, fresh = u.clone(), u.clone()
    for start in range(0, length, chunk):
        part = slice(start, start + chunk)
        gates, last = g[:, part, None], g[:, start + chunk - 1, None, None]
        new = u[:, part] - w[:, part] @ state
        scores = (q[:, part] @ k[:, part].transpose(1, 2) * (gates - gates.transpose(1, 2)).exp()).tril()
        out[:, part] = (q[:, part] @ state * gates.exp() + scores @ new) * dk**-0.5
        fresh[:, part] = new
        state = state * last.exp() + k[:, part].transpose(1, 2) @ (new * (last - gates).exp())
    return out, fresh


def row(dtype, heads, length, dk, dv, **facts):
    small = "normal:0.05"
    return launch(
        gated_delta, tensor((heads, length, dk), dtype, fill="normal:0.3"), tensor((heads, length, dk), dtype, fill=small),
        tensor((heads, length, dk), dtype, fill=small), tensor((heads, length, dv), dtype),
        tensor((heads, length), "fp32", fill="uniform:-0.5:0"),
        flops=heads * length * (6 * dk * dv + 2 * 64 * (dk + dv)), min_bytes=2 * heads * length * (3 * dk + 3 * dv),
        reference=reference, rtol=5e-2, atol=5e-2, **facts,
    )


LAUNCHES = {
    "bf16-d128": row("bf16", 32, 2048, 128, 128, tier="gate"),
    "fp16-d64": row("fp16", 32, 2048, 64, 64, block_v=64),
    "inverse-fp32-16": launch(
        unit_lower_inverse, tensor((8192, 16, 16), "fp32", fill="normal:0.3"), flops=8192 * 16**3,
        min_bytes=8192 * 16 * 16 * 8, reference=inverse_reference, rtol=1e-3, atol=1e-3,
    ),
    "inverse-bf16-64": launch(
        unit_lower_inverse, tensor((1024, 64, 64), "bf16", fill="normal:0.05"), warps=4, flops=1024 * 64**3,
        min_bytes=1024 * 64 * 64 * 6, reference=inverse_reference, rtol=1e-3, atol=1e-3,
    ),
}
