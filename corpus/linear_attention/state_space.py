"""State-space duality (Mamba-2): the state that each chunk leaves, the passing on of states, the scan in a chunk."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def chunk_state_kernel(
    x_ptr, b_ptr, dt_ptr, decay_ptr, states_ptr, length,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
):
    """state[p, n] = Σ x[t, p] · dt[t] · exp(decay[last] - decay[t]) · b[t, n] over a chunk."""
    chunk = tl.program_id(0)
    head = tl.program_id(1).to(tl.int64)
    offs_p = tl.arange(0, P)
    offs_n = tl.arange(0, N)
    first = head * length + chunk * CHUNK
    last = tl.load(decay_ptr + first + CHUNK - 1)
    acc = tl.zeros((P, N), tl.float32)
    for start in range(0, CHUNK, BLOCK):
        rows = first + start + tl.arange(0, BLOCK)
        x_t = tl.load(x_ptr + rows[None, :] * P + offs_p[:, None])
        b = tl.load(b_ptr + rows[:, None] * N + offs_n[None, :]).to(tl.float32)
        weight = tl.load(dt_ptr + rows) * tl.exp(last - tl.load(decay_ptr + rows))
        acc += tl.dot(x_t, (b * weight[:, None]).to(x_t.dtype))
    place = (head * tl.num_programs(0) + chunk) * P * N
    tl.store(states_ptr + place + offs_p[:, None] * N + offs_n[None, :], acc)


@triton.jit
def state_passing_kernel(states_ptr, decay_ptr, before_ptr, chunks, length, CHUNK: tl.constexpr, BLOCK: tl.constexpr, SIZE: tl.constexpr):
    head = tl.program_id(1).to(tl.int64)
    cols = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    state = tl.zeros((BLOCK,), tl.float32)
    for chunk in range(chunks):
        place = (head * chunks + chunk) * SIZE + cols
        tl.store(before_ptr + place, state.to(before_ptr.dtype.element_ty))
        decay = tl.load(decay_ptr + head * length + chunk * CHUNK + CHUNK - 1)
        state = state * tl.exp(decay) + tl.load(states_ptr + place)


@triton.jit
def chunk_scan_kernel(
    x_ptr, b_ptr, c_ptr, dt_ptr, decay_ptr, before_ptr, d_ptr, out_ptr, length,
    CHUNK: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_K: tl.constexpr, P: tl.constexpr, N: tl.constexpr,
):
    chunk = tl.program_id(1)
    head = tl.program_id(2).to(tl.int64)
    first = head * length + chunk * CHUNK
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_p = tl.arange(0, P)
    offs_n = tl.arange(0, N)
    c = tl.load(c_ptr + (first + offs_m)[:, None] * N + offs_n[None, :])
    decay_m = tl.load(decay_ptr + first + offs_m)
    place = (head * tl.num_programs(1) + chunk) * P * N
    before_t = tl.load(before_ptr + place + offs_p[None, :] * N + offs_n[:, None])
    acc = tl.dot(c, before_t) * tl.exp(decay_m)[:, None]
    for start in range(0, (tl.program_id(0) + 1) * BLOCK_M, BLOCK_K):
        offs_k = start + tl.arange(0, BLOCK_K)
        b_t = tl.load(b_ptr + (first + offs_k)[None, :] * N + offs_n[:, None])
        decay_k = tl.load(decay_ptr + first + offs_k)
        dt = tl.load(dt_ptr + first + offs_k)
        weight = tl.dot(c, b_t) * tl.exp(decay_m[:, None] - decay_k[None, :]) * dt[None, :]
        weight = tl.where(offs_m[:, None] >= offs_k[None, :], weight, 0.0)
        x = tl.load(x_ptr + (first + offs_k)[:, None] * P + offs_p[None, :])
        acc += tl.dot(weight.to(x.dtype), x)
    where = (first + offs_m)[:, None] * P + offs_p[None, :]
    acc += tl.load(x_ptr + where).to(tl.float32) * tl.load(d_ptr + head)
    tl.store(out_ptr + where, acc.to(out_ptr.dtype.element_ty))


def state_space(x, b, c, dt, decay, d, chunk=256, warps=4):
    heads, length, p = x.shape
    n, chunks = b.shape[2], length // chunk
    stages = 1 if triton.runtime.driver.active.get_current_target().backend == "hip" else 2
    states, before = empty((heads, chunks, p, n), "fp32"), empty((heads, chunks, p, n), x.dtype)
    out = empty(x.shape, x.dtype)
    chunk_state_kernel[(chunks, heads)](
        x, b, dt, decay, states, length, CHUNK=chunk, BLOCK=64, P=p, N=n, num_warps=warps, num_stages=stages
    )
    state_passing_kernel[(p * n // 512, heads)](states, decay, before, chunks, length, CHUNK=chunk, BLOCK=512, SIZE=p * n)
    chunk_scan_kernel[(chunk // 64, chunks, heads)](
        x, b, c, dt, decay, before, d, out, length, CHUNK=chunk, BLOCK_M=64, BLOCK_K=64, P=p, N=n,
        num_warps=warps, num_stages=stages,
    )
    return out


def reference(x, b, c, dt, decay, d, chunk=256, **_):
    x, b, c = x.float(), b.float(), c.float()
    state = x.new_zeros((x.shape[0], x.shape[2], b.shape[2]))
    out = x * d[:, None, None]
    for start in range(0, x.shape[1], chunk):
        part = slice(start, start + chunk)
        along, last = decay[:, part, None], decay[:, start + chunk - 1, None, None]
        weight = (c[:, part] @ b[:, part].transpose(1, 2) * (along - along.transpose(1, 2)).exp()).tril() * dt[:, None, part]
        out[:, part] += c[:, part] @ state.transpose(1, 2) * along.exp() + weight @ x[:, part]
        scaled = b[:, part] * dt[:, part, None] * (last - along).exp()
        state = state * last.exp() + x[:, part].transpose(1, 2) @ scaled
    return out


def row(dtype, heads, length, p, n, **facts):
    return launch(
        state_space, tensor((heads, length, p), dtype), tensor((heads, length, n), dtype, fill="normal:0.2"),
        tensor((heads, length, n), dtype, fill="normal:0.2"), tensor((heads, length), "fp32", fill="uniform:0:0.2"),
        tensor((heads, length), "fp32", fill="uniform:-1:0"), tensor((heads,), "fp32"),
        flops=heads * length * (4 * p * n + 2 * 128 * (p + n)), min_bytes=2 * heads * length * 2 * (p + n),
        reference=reference, rtol=5e-2, atol=5e-2, **facts,
    )


LAUNCHES = {
    "bf16-p64-n128": row("bf16", 64, 2048, 64, 128, tier="gate"),
    "fp16-p64-n64": row("fp16", 32, 4096, 64, 64),
}
