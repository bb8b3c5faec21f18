"""Decoding with sparse latent attention: each token attends to the rows of the cache that an index has chosen."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def sparse_decode_kernel(
    q_ptr, cache_ptr, index_ptr, out_ptr, count, scale,
    HEADS: tl.constexpr, D: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_N: tl.constexpr,
):
    token, heads = tl.program_id(0), tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    width = tl.arange(0, D)
    where = (token * HEADS + heads)[:, None] * D + width[None, :]
    q = tl.load(q_ptr + where)
    acc = tl.zeros((BLOCK_H, D), tl.float32)
    total = tl.zeros((BLOCK_H,), tl.float32)
    top = tl.full((BLOCK_H,), -float("inf"), tl.float32)
    for start in range(0, count, BLOCK_N):
        place = start + tl.arange(0, BLOCK_N)
        row = tl.load(index_ptr + token * count + place, mask=place < count, other=-1)
        chosen = row >= 0
        keys = tl.load(cache_ptr + row.to(tl.int64)[:, None] * D + width[None, :], mask=chosen[:, None], other=0.0)
        scores = tl.where(chosen[None, :], tl.dot(q, tl.trans(keys)) * scale, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        p = tl.exp(scores - higher[:, None])
        decay = tl.exp(top - higher)
        total = total * decay + tl.sum(p, 1)
        acc = acc * decay[:, None] + tl.dot(p.to(keys.dtype), keys)
        top = higher
    tl.store(out_ptr + where, (acc / total[:, None]).to(out_ptr.dtype.element_ty))


def sparse_decode(q, cache, index, block_n, warps):
    tokens, heads, d = q.shape
    out = empty(q.shape, q.dtype)
    sparse_decode_kernel[(tokens, heads // 16)](
        q, cache, index, out, index.shape[1], d**-0.5, heads, d, 16, block_n, num_warps=warps, num_stages=1
    )
    return out


LAUNCHES = {
    f"bf16-d512-{block_n}-{warps}-warps": launch(
        sparse_decode, tensor((24, 64, 512), "bf16"), tensor((65536, 512), "bf16"),
        tensor((24, 4224), "i32", fill="zeros"), block_n, warps, tier="extended",
    )
    for block_n, warps in [(32, 4), (32, 8), (64, 4), (64, 8)]
}
