"""Prompt processing and decoding in one launch: rows of any sequences over a paged cache, found by binary search."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, values


@triton.jit
def _sequence_of(starts_ptr, block, count, BLOCK_Q: tl.constexpr):
    """The sequence that the block of queries belongs to; each sequence begins a block of its own."""
    low = 0
    high = count
    while low < high:
        middle = (low + high) // 2
        if tl.load(starts_ptr + middle) // BLOCK_Q + middle <= block:
            low = middle + 1
        else:
            high = middle
    return low - 1


@triton.jit
def _attend(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, starts_ptr, scale, count,
    stride_table, stride_qt, stride_qh, stride_kp, stride_kt, stride_kh, stride_kd, stride_vp, stride_vt, stride_vh,
    stride_vd, GROUP: tl.constexpr, PAGE: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_M: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr,
):
    block = tl.program_id(0)
    kv_head = tl.program_id(1)
    sequence = _sequence_of(starts_ptr, block, count, BLOCK_Q)
    start = tl.load(starts_ptr + sequence)
    queries = tl.load(starts_ptr + sequence + 1) - start
    local = block - (start // BLOCK_Q + sequence)
    if local * BLOCK_Q >= queries:
        return
    rows = tl.arange(0, BLOCK_M)
    place = local * BLOCK_Q + rows // GROUP
    heads = kv_head * GROUP + rows % GROUP
    real = (place < queries) & (rows < BLOCK_Q * GROUP)
    offs_d = tl.arange(0, D)
    q_where = (start + place)[:, None] * stride_qt + heads[:, None] * stride_qh + offs_d[None, :]
    q = tl.load(q_ptr + q_where, mask=real[:, None], other=0.0)
    length = tl.load(lengths_ptr + sequence)
    context = length - queries
    top = tl.full((BLOCK_M,), -1.0e30, tl.float32)
    denominator = tl.zeros((BLOCK_M,), tl.float32)
    acc = tl.zeros((BLOCK_M, D), tl.float32)
    last = tl.minimum(context + local * BLOCK_Q + BLOCK_Q, length)
    first_tile = 0
    if WINDOW > 0:
        first_tile = tl.maximum(0, context + local * BLOCK_Q - WINDOW + 1) // TILE
    for tile in range(first_tile, tl.cdiv(last, TILE)):
        offs_n = tile * TILE + tl.arange(0, TILE)
        inside = offs_n < last
        page = tl.load(table_ptr + sequence * stride_table + offs_n // PAGE, mask=inside, other=0).to(tl.int64)
        k_where = page * stride_kp + (offs_n % PAGE) * stride_kt + kv_head * stride_kh
        k = tl.load(k_ptr + k_where[None, :] + offs_d[:, None] * stride_kd, mask=inside[None, :], other=0.0)
        v_where = page * stride_vp + (offs_n % PAGE) * stride_vt + kv_head * stride_vh
        v = tl.load(v_ptr + v_where[:, None] + offs_d[None, :] * stride_vd, mask=inside[:, None], other=0.0)
        scores = scale * tl.dot(q, k)
        if SOFTCAP > 0:
            both = tl.exp(scores * (2.0 / SOFTCAP))
            scores = SOFTCAP * (both - 1) / (both + 1)
        keep = real[:, None] & (offs_n[None, :] <= context + place[:, None]) & inside[None, :]
        if WINDOW > 0:
            keep &= context + place[:, None] - offs_n[None, :] < WINDOW
        scores = tl.where(keep, scores, -1.0e30)
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.where(keep, tl.exp(scores - higher[:, None]), 0.0)
        decay = tl.exp(top - higher)
        acc = acc * decay[:, None]
        denominator = denominator * decay + tl.sum(p, 1)
        top = higher
        acc += tl.dot(p.to(v.dtype), v)
    acc = acc / tl.where(denominator > 0, denominator, 1.0)[:, None]
    tl.store(out_ptr + q_where, acc.to(out_ptr.dtype.element_ty), mask=real[:, None])


@triton.jit
def unified_attention_kernel(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, starts_ptr, scale, count,
    stride_table: tl.int64, stride_qt: tl.int64, stride_qh: tl.int64,
    stride_kp: tl.int64, stride_kt: tl.int64, stride_kh: tl.int64, stride_kd: tl.constexpr,
    stride_vp: tl.int64, stride_vt: tl.int64, stride_vh: tl.int64, stride_vd: tl.constexpr,
    GROUP: tl.constexpr, PAGE: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_M: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr,
):
    _attend(
        out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, starts_ptr, scale, count, stride_table, stride_qt,
        stride_qh, stride_kp, stride_kt, stride_kh, stride_kd, stride_vp, stride_vt, stride_vh, stride_vd,
        GROUP, PAGE, WINDOW, SOFTCAP, BLOCK_Q, BLOCK_M, TILE, D,
    )


@triton.jit
def unified_attention_int64_kernel(
    out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, starts_ptr, scale, count,
    stride_table: tl.int64, stride_qt: tl.int64, stride_qh: tl.int64,
    stride_kp: tl.int64, stride_kt: tl.int64, stride_kh: tl.int64, stride_kd: tl.int64,
    stride_vp: tl.int64, stride_vt: tl.int64, stride_vh: tl.int64, stride_vd: tl.int64,
    GROUP: tl.constexpr, PAGE: tl.constexpr, WINDOW: tl.constexpr, SOFTCAP: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_M: tl.constexpr, TILE: tl.constexpr, D: tl.constexpr,
):
    """The last strides, which are 1, are annotated too: whether they become constants is the frontend's choice."""
    _attend(
        out_ptr, q_ptr, k_ptr, v_ptr, table_ptr, lengths_ptr, starts_ptr, scale, count, stride_table, stride_qt,
        stride_qh, stride_kp, stride_kt, stride_kh, stride_kd, stride_vp, stride_vt, stride_vh, stride_vd,
        GROUP, PAGE, WINDOW, SOFTCAP, BLOCK_Q, BLOCK_M, TILE, D,
    )


def unified_attention(
    q, k, v, table, lengths, starts, window=0, softcap=0.0, block_m=16, tile=32, warps=4, stages=2,
    kernel=unified_attention_kernel, **options,
):
    tokens, heads, d = q.shape
    page, kv_heads = k.shape[1], k.shape[2]
    group, count = heads // kv_heads, lengths.shape[0]
    block_q = block_m // group
    out = empty(q.shape, q.dtype)
    kernel[(tokens // block_q + count, kv_heads)](
        out, q, k, v, table, lengths, starts, d**-0.5, count, table.stride(0), q.stride(0), q.stride(1),
        *k.stride(), *v.stride(), GROUP=group, PAGE=page, WINDOW=window, SOFTCAP=softcap,
        BLOCK_Q=block_q, BLOCK_M=block_m, TILE=tile, D=d, num_warps=warps, num_stages=stages, **options,
    )
    return out


def reference(q, k, v, table, lengths, starts, window=0, softcap=0.0, **_):
    out = q.float().clone()
    group, page = q.shape[1] // k.shape[2], k.shape[1]
    bounds = starts.tolist()
    for row, length in enumerate(lengths.tolist()):
        queries = bounds[row + 1] - bounds[row]
        pages = table[row, : -(-length // page)].long()
        ks, vs = (x[pages].flatten(0, 1)[:length].float().repeat_interleave(group, 1).transpose(0, 1) for x in (k, v))
        scores = q[bounds[row] : bounds[row + 1]].float().transpose(0, 1) @ ks.transpose(1, 2) * q.shape[2] ** -0.5
        if softcap:
            scores = softcap * (scores / softcap).tanh()
        keep = scores.new_ones((queries, length)).tril(length - queries)
        if window:
            keep = keep - scores.new_ones((queries, length)).tril(length - queries - window)
        attended = scores.masked_fill(keep == 0, -float("inf")).softmax(-1) @ vs
        out[bounds[row] : bounds[row + 1]] = attended.transpose(0, 1)
    return out


def row(dtype, queries, lengths, heads, kv_heads, d, page=16, **facts):
    count, width = len(lengths), max(-(-n // page) for n in lengths)
    starts = [sum(queries[:i]) for i in range(count + 1)]
    table = values([b + i * count for b in range(count) for i in range(width)], shape=(count, width))
    cache = (count * width, page, kv_heads, d)
    pairs = sum(q * (n - q) + q * (q + 1) // 2 for q, n in zip(queries, lengths))
    return launch(
        unified_attention, tensor((starts[-1], heads, d), dtype), tensor(cache, dtype), tensor(cache, dtype), table,
        values(lengths), values(starts), flops=4 * heads * pairs * d, min_bytes=4 * sum(lengths) * kv_heads * d,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


QUERIES, LENGTHS = [512, 1, 77, 1, 1, 300, 1, 1024], [512, 900, 500, 2048, 33, 1300, 4000, 1024]

LAUNCHES = {
    # vllm #18161: from 3.3.0 on an annotated stride of 1 is no constant any more, and loads of keys and values
    # that lie side by side become loads of single elements
    "bf16-int64-strides-d128": row(
        "bf16", QUERIES, LENGTHS, 32, 8, 128, block_m=64, kernel=unified_attention_int64_kernel
    ),
    "bf16-mixed-d128": row("bf16", QUERIES, LENGTHS, 32, 8, 128, block_m=64, tier="gate"),
    "bf16-decode-d128": row("bf16", [1] * 16, [2000 + 77 * i for i in range(16)], 32, 4, 128),
    "fp16-window-softcap-d64": row("fp16", QUERIES, LENGTHS, 16, 2, 64, window=512, softcap=30.0, block_m=32),
    # aiter #4137: spills of a prefill with wide heads, which is asked to leave room for a second wave
    "bf16-prefill-d256-two-waves": row(
        "bf16", [4096], [8192], 32, 2, 256, block_m=128, stages=1, targets="gfx9*", waves_per_eu=2
    ),
    "bf16-d256-page64": row("bf16", QUERIES, LENGTHS, 16, 8, 256, page=64, tile=64, block_m=64, stages=1),
}
