"""Attention with a score function and a block mask: a list of key blocks for every block of queries."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def softcap(score, query, key, head):
    doubled = score * (2.0 / 30.0)
    return 30.0 * (1.0 - 2.0 / (tl.exp(doubled) + 1.0))


@triton.jit
def alibi(score, query, key, head):
    return score + tl.math.exp2(-(head + 1) * 0.5) * (key - query)


@triton.jit
def plain(score, query, key, head):
    return score


@triton.jit
def _blocks(
    acc, denominator, top, q, k_ptr, v_ptr, list_ptr, count, head, offs_m, scale,
    SCORE: tl.constexpr, MASKED: tl.constexpr, SPARSE: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    offs_d = tl.arange(0, D)
    for step in range(0, count * (SPARSE // BLOCK_N)):
        block = tl.load(list_ptr + step // (SPARSE // BLOCK_N))
        offs_n = block * SPARSE + (step % (SPARSE // BLOCK_N)) * BLOCK_N + tl.arange(0, BLOCK_N)
        k = tl.load(k_ptr + offs_n[None, :] * D + offs_d[:, None])
        scores = SCORE(tl.dot(q, k) * scale, offs_m[:, None], offs_n[None, :], head)
        if MASKED:
            scores = tl.where(offs_m[:, None] >= offs_n[None, :], scores, -float("inf"))
        scores *= 1.4426950408889634
        higher = tl.maximum(top, tl.max(scores, 1))
        safe = tl.where(higher == -float("inf"), 0.0, higher)
        decay = tl.math.exp2(top - safe)
        p = tl.math.exp2(scores - safe[:, None])
        denominator = denominator * decay + tl.sum(p, 1)
        v = tl.load(v_ptr + offs_n[:, None] * D + offs_d[None, :])
        acc = tl.dot(p.to(v.dtype), v, acc * decay[:, None])
        top = higher
    return acc, denominator, top


@triton.jit
def flex_forward_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, partial_count_ptr, partial_list_ptr, full_count_ptr, full_list_ptr,
    length, list_stride, scale, SCORE: tl.constexpr, GROUP: tl.constexpr, SPARSE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, D: tl.constexpr,
):
    block = tl.program_id(0)
    head = tl.program_id(1)
    kv = (head // GROUP).to(tl.int64) * length * D
    offs_m = block * BLOCK_M + tl.arange(0, BLOCK_M)
    q_where = head.to(tl.int64) * length * D + offs_m[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + q_where)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    top = tl.full((BLOCK_M,), -float("inf"), tl.float32)
    row = block * BLOCK_M // SPARSE
    acc, denominator, top = _blocks(
        acc, denominator, top, q, k_ptr + kv, v_ptr + kv, partial_list_ptr + row * list_stride,
        tl.load(partial_count_ptr + row), head, offs_m, scale, SCORE, True, SPARSE, BLOCK_N, D,
    )
    acc, denominator, top = _blocks(
        acc, denominator, top, q, k_ptr + kv, v_ptr + kv, full_list_ptr + row * list_stride,
        tl.load(full_count_ptr + row), head, offs_m, scale, SCORE, False, SPARSE, BLOCK_N, D,
    )
    tl.store(out_ptr + q_where, (acc / denominator[:, None]).to(out_ptr.dtype.element_ty))


def flex_forward(q, k, v, partial, full, score, sparse=128, block=(128, 64), warps=8, stages=3):
    heads, length, d = q.shape
    if triton.runtime.driver.active.get_current_target().backend == "hip":
        stages = min(stages, 2)
    out = empty(q.shape, q.dtype)
    flex_forward_kernel[(length // block[0], heads)](
        q, k, v, out, *partial, *full, length, partial[1].stride(0), d**-0.5, SCORE=score, GROUP=heads // k.shape[0],
        SPARSE=sparse, BLOCK_M=block[0], BLOCK_N=block[1], D=d, num_warps=warps, num_stages=stages,
    )
    return out


def reference(q, k, v, partial, full, score, sparse=128, **_):
    heads, length, d = q.shape
    group = heads // k.shape[0]
    k, v = k.float().repeat_interleave(group, 0), v.float().repeat_interleave(group, 0)
    scores = q.float() @ k.transpose(1, 2) * d**-0.5
    place = (q.new_ones((length,)).float().cumsum(0) - 1)
    if score is softcap:
        scores = 30 * (scores / 30).tanh()
    elif score is alibi:
        slope = (-(q.new_ones((heads,)).float().cumsum(0)) * 0.5).exp2()
        scores = scores + slope[:, None, None] * (place[None, None, :] - place[None, :, None])
    keep = scores.new_zeros((length, length))
    for (count, blocks), causal in ((partial, True), (full, False)):
        for row, (n, listed) in enumerate(zip(count.tolist(), blocks.tolist())):
            for block in listed[:n]:
                tile = keep[row * sparse : (row + 1) * sparse, block * sparse : (block + 1) * sparse]
                tile.fill_(1)
                if causal:
                    tile.copy_((place[row * sparse : (row + 1) * sparse, None] >= place[None, block * sparse : (block + 1) * sparse]).float())
    return scores.masked_fill(keep == 0, -float("inf")).softmax(-1) @ v


def block_lists(length, window, sparse=128):
    """Causal within a window of blocks: the diagonal is partial, what lies left of it full."""
    n = length // sparse
    partial = values([1] * n), values(range(n), shape=(n, 1))
    rows = [list(range(max(0, row - window), row)) for row in range(n)]
    width = max(map(len, rows))
    full = values(map(len, rows)), values([x for row in rows for x in row + [0] * (width - len(row))], shape=(n, width))
    return partial, full


def everything(length, sparse=128):
    """Every block of keys is full for every block of queries."""
    n = length // sparse
    return (values([0] * n), values([0] * n, shape=(n, 1))), (values([n] * n), values(list(range(n)) * n, shape=(n, n)))


def row(dtype, heads, kv_heads, length, d, window, score, **facts):
    """window: in blocks of 128; None for no mask at all."""
    partial, full = block_lists(length, window) if window is not None else everything(length)
    # both lists are read with one stride: the partial one is padded to the width of the full one
    n, width = full[1].shape
    partial = partial[0], values([row if i == 0 else 0 for row in range(n) for i in range(width)], shape=(n, width))
    blocks = n * n if window is None else n + sum(min(window, row) for row in range(n))
    return launch(
        flex_forward, tensor((heads, length, d), dtype), tensor((kv_heads, length, d), dtype),
        tensor((kv_heads, length, d), dtype), partial, full, score,
        flops=4 * heads * blocks * 128 * 128 * d, min_bytes=4 * (heads + kv_heads) * length * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    # triton #8328 (B200, before 3.5.0): the probabilities, on their way into tensor memory, got a
    # convert_layout of their own in the loop. No mask, bf16, heads of 128 elements, tiles of 128×64: as here
    "noop-d128": row("bf16", 16, 16, 2048, 128, None, plain),
    "softcap-d64": row("fp16", 16, 16, 2048, 64, 99, softcap, warps=4, tier="gate"),
    "alibi-gqa-d128": row("bf16", 16, 4, 2048, 128, 99, alibi),
    "window-d128": row("bf16", 16, 2, 2048, 128, 3, plain),
}
