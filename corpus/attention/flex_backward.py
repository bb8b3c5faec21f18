"""Backward of attention with a score function and block masks: one launch for the gradients of keys and of queries."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def softcap(score, query, key, head):
    return 30.0 * (1.0 - 2.0 / (tl.exp(score * (2.0 / 30.0)) + 1.0))


@triton.jit
def softcap_slope(score, query, key, head):
    bent = 1.0 - 2.0 / (tl.exp(score * (2.0 / 30.0)) + 1.0)
    return 1.0 - bent * bent


@triton.jit
def alibi(score, query, key, head):
    return score + tl.math.exp2(-(head + 1) * 0.5) * (key - query)


@triton.jit
def plain(score, query, key, head):
    return score


@triton.jit
def unit_slope(score, query, key, head):
    return tl.full(score.shape, 1.0, tl.float32)


@triton.jit
def _add_to_keys(
    dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, list_ptr, count, head, offs_n, scale,
    SCORE: tl.constexpr, SLOPE: tl.constexpr, MASKED: tl.constexpr, SPARSE: tl.constexpr,
    BLOCK_M: tl.constexpr, D: tl.constexpr,
):
    offs_d = tl.arange(0, D)
    for step in range(0, count * (SPARSE // BLOCK_M)):
        block = tl.load(list_ptr + step // (SPARSE // BLOCK_M))
        offs_m = block * SPARSE + (step % (SPARSE // BLOCK_M)) * BLOCK_M + tl.arange(0, BLOCK_M)
        q_t = tl.load(q_ptr + offs_m[None, :] * D + offs_d[:, None])
        raw_t = tl.dot(k, q_t) * scale
        scores_t = SCORE(raw_t, offs_m[None, :], offs_n[:, None], head)
        if MASKED:
            scores_t = tl.where(offs_m[None, :] >= offs_n[:, None], scores_t, -float("inf"))
        p_t = tl.math.exp2(scores_t * 1.4426950408889634 - tl.load(lse_ptr + offs_m)[None, :])
        dout = tl.load(dout_ptr + offs_m[:, None] * D + offs_d[None, :])
        dv += tl.dot(p_t.to(dout.dtype), dout)
        ds_t = p_t * (tl.dot(v, tl.trans(dout)) - tl.load(delta_ptr + offs_m)[None, :])
        ds_t *= SLOPE(raw_t, offs_m[None, :], offs_n[:, None], head)
        dk += tl.dot(ds_t.to(q_t.dtype), tl.trans(q_t))
    return dk, dv


@triton.jit
def _add_to_queries(
    dq, q, dout, lse, delta, k_ptr, v_ptr, list_ptr, count, head, offs_m, scale,
    SCORE: tl.constexpr, SLOPE: tl.constexpr, MASKED: tl.constexpr, SPARSE: tl.constexpr,
    BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    offs_d = tl.arange(0, D)
    for step in range(0, count * (SPARSE // BLOCK_N)):
        block = tl.load(list_ptr + step // (SPARSE // BLOCK_N))
        offs_n = block * SPARSE + (step % (SPARSE // BLOCK_N)) * BLOCK_N + tl.arange(0, BLOCK_N)
        where = offs_n[None, :] * D + offs_d[:, None]
        k_t = tl.load(k_ptr + where)
        v_t = tl.load(v_ptr + where)
        raw = tl.dot(q, k_t) * scale
        scores = SCORE(raw, offs_m[:, None], offs_n[None, :], head)
        if MASKED:
            scores = tl.where(offs_m[:, None] >= offs_n[None, :], scores, -float("inf"))
        p = tl.math.exp2(scores * 1.4426950408889634 - lse[:, None])
        ds = p * (tl.dot(dout, v_t) - delta[:, None])
        ds *= SLOPE(raw, offs_m[:, None], offs_n[None, :], head)
        dq += tl.dot(ds.to(k_t.dtype), tl.trans(k_t))
    return dq


@triton.jit
def flex_backward_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr, dk_ptr, dv_ptr,
    kv_partial_count_ptr, kv_partial_ptr, kv_full_count_ptr, kv_full_ptr,
    q_partial_count_ptr, q_partial_ptr, q_full_count_ptr, q_full_ptr,
    length, list_stride, scale, SCORE: tl.constexpr, SLOPE: tl.constexpr, GROUP: tl.constexpr, SPARSE: tl.constexpr,
    BLOCK: tl.constexpr, STEP: tl.constexpr, D: tl.constexpr,
):
    """The first programs of a key head make dK and dV of a key block, the others dQ of a query block."""
    kv_head = tl.program_id(1)
    blocks = length // BLOCK
    k_ptr += kv_head.to(tl.int64) * length * D
    v_ptr += kv_head.to(tl.int64) * length * D
    offs_d = tl.arange(0, D)
    if tl.program_id(0) < blocks:
        offs_n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        where = offs_n[:, None] * D + offs_d[None, :]
        k = tl.load(k_ptr + where)
        v = tl.load(v_ptr + where)
        dk = tl.zeros((BLOCK, D), tl.float32)
        dv = tl.zeros((BLOCK, D), tl.float32)
        row = tl.program_id(0) * BLOCK // SPARSE
        for member in range(0, GROUP):
            head = kv_head * GROUP + member
            first = head.to(tl.int64) * length
            dk, dv = _add_to_keys(
                dk, dv, k, v, q_ptr + first * D, dout_ptr + first * D, lse_ptr + first, delta_ptr + first,
                q_partial_ptr + row * list_stride, tl.load(q_partial_count_ptr + row), head, offs_n, scale,
                SCORE, SLOPE, True, SPARSE, STEP, D,
            )
            dk, dv = _add_to_keys(
                dk, dv, k, v, q_ptr + first * D, dout_ptr + first * D, lse_ptr + first, delta_ptr + first,
                q_full_ptr + row * list_stride, tl.load(q_full_count_ptr + row), head, offs_n, scale,
                SCORE, SLOPE, False, SPARSE, STEP, D,
            )
        where += kv_head.to(tl.int64) * length * D
        tl.store(dk_ptr + where, (dk * scale).to(dk_ptr.dtype.element_ty))
        tl.store(dv_ptr + where, dv.to(dv_ptr.dtype.element_ty))
    else:
        place = tl.program_id(0) - blocks
        head = kv_head * GROUP + place // blocks
        first = head.to(tl.int64) * length
        offs_m = place % blocks * BLOCK + tl.arange(0, BLOCK)
        where = first * D + offs_m[:, None] * D + offs_d[None, :]
        q = tl.load(q_ptr + where)
        dout = tl.load(dout_ptr + where)
        lse = tl.load(lse_ptr + first + offs_m)
        delta = tl.load(delta_ptr + first + offs_m)
        dq = tl.zeros((BLOCK, D), tl.float32)
        row = place % blocks * BLOCK // SPARSE
        dq = _add_to_queries(
            dq, q, dout, lse, delta, k_ptr, v_ptr, kv_partial_ptr + row * list_stride,
            tl.load(kv_partial_count_ptr + row), head, offs_m, scale, SCORE, SLOPE, True, SPARSE, STEP, D,
        )
        dq = _add_to_queries(
            dq, q, dout, lse, delta, k_ptr, v_ptr, kv_full_ptr + row * list_stride,
            tl.load(kv_full_count_ptr + row), head, offs_m, scale, SCORE, SLOPE, False, SPARSE, STEP, D,
        )
        tl.store(dq_ptr + where, (dq * scale).to(dq_ptr.dtype.element_ty))


def flex_backward(q, k, v, dout, lse, delta, of_queries, of_keys, score, slope, sparse=128, block=(64, 32), warps=4, stages=2):
    heads, length, d = q.shape
    kv_heads = k.shape[0]
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = 1
    dq, dk, dv = empty(q.shape, q.dtype), empty(k.shape, k.dtype), empty(v.shape, v.dtype)
    group = heads // kv_heads
    flex_backward_kernel[(length // block[0] * (1 + group), kv_heads)](
        q, k, v, dout, lse, delta, dq, dk, dv, *of_queries, *of_keys, length, of_queries[1].stride(0), d**-0.5,
        SCORE=score, SLOPE=slope, GROUP=group, SPARSE=sparse, BLOCK=block[0], STEP=block[1], D=d,
        num_warps=warps, num_stages=stages,
    )
    return dq, dk, dv


def reference(q, k, v, dout, lse, delta, of_queries, of_keys, score, slope, sparse=128, **_):
    heads, length, d = q.shape
    group, scale = heads // k.shape[0], d**-0.5
    q, dout = q.float(), dout.float()
    k, v = k.float().repeat_interleave(group, 0), v.float().repeat_interleave(group, 0)
    place = q.new_ones((length,)).cumsum(0) - 1
    scores = q @ k.transpose(1, 2) * scale
    bend = 1
    if score is softcap:
        bent = (scores / 30).tanh()
        scores, bend = 30 * bent, 1 - bent * bent
    elif score is alibi:
        steepness = (-(q.new_ones((heads,)).cumsum(0)) * 0.5).exp2()
        scores = scores + steepness[:, None, None] * (place[None, None, :] - place[None, :, None])
    partial_count, partial, full_count, full = of_queries
    keep = scores.new_zeros((length, length))
    for count, blocks, causal in ((partial_count, partial, True), (full_count, full, False)):
        for row, (n, listed) in enumerate(zip(count.tolist(), blocks.tolist())):
            rows = slice(row * sparse, (row + 1) * sparse)
            for block in listed[:n]:
                columns = slice(block * sparse, (block + 1) * sparse)
                keep[rows, columns] = (place[rows, None] >= place[None, columns]).float() if causal else 1
    scores = scores.masked_fill(keep == 0, -float("inf"))
    p = (scores - lse[:, :, None] * 0.6931471805599453).exp()
    ds = p * (dout @ v.transpose(1, 2) - delta[:, :, None]) * bend
    dk, dv = ds.transpose(1, 2) @ q * scale, p.transpose(1, 2) @ dout
    return ds @ k * scale, dk.unflatten(0, (-1, group)).sum(1), dv.unflatten(0, (-1, group)).sum(1)


def block_lists(n, partial, full):
    """Four inputs: for each of n blocks how many partial ones belong to it and which, then the full ones."""
    width = max(1, *(len(rows[i]) for rows in (partial, full) for i in range(n)))

    def table(rows):
        return values([x for row in rows for x in row + [0] * (width - len(row))], shape=(n, width))

    return values(map(len, partial)), table(partial), values(map(len, full)), table(full)


def row(dtype, heads, kv_heads, length, d, window, score, slope, masked=True, **facts):
    """Causal within a window of blocks, or (masked=False) everything attends to everything."""
    n = length // 128
    partial = [[i] if masked else [] for i in range(n)]
    full = [list(range(max(0, i - window), i)) if masked else list(range(n)) for i in range(n)]
    back = [[i for i in range(n) if column in full[i]] for column in range(n)]
    pairs = 128 * 128 * sum(len(partial[i]) + len(full[i]) for i in range(n))
    rows, key_rows = (heads, length, d), (kv_heads, length, d)
    return launch(
        flex_backward, tensor(rows, dtype), tensor(key_rows, dtype), tensor(key_rows, dtype), tensor(rows, dtype),
        tensor((heads, length), "fp32", fill="const:11"), tensor((heads, length), "fp32"),
        block_lists(n, partial, full), block_lists(n, partial, back), score, slope,
        flops=14 * heads * pairs * d, min_bytes=(6 * heads + 8 * kv_heads) * length * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "softcap-d64": row("fp16", 16, 16, 2048, 64, 99, softcap, softcap_slope),
    "alibi-gqa-d128": row("bf16", 16, 4, 2048, 128, 99, alibi, unit_slope, warps=8),
    "window-d128": row("bf16", 16, 2, 2048, 128, 3, plain, unit_slope, warps=8, tier="extended"),
    # pytorch #198224: with heads of more than 128 elements PyTorch's tiles want more shared memory than the 101376
    # bytes of sm_120; these take 69888 there
    "noop-d256": row("bf16", 4, 4, 2048, 256, 99, plain, unit_slope, masked=False, block=(32, 32)),
}
