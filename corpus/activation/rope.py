"""Rotary position embedding, halves of the head rotated in place of pairs, for queries and keys at once."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def rope_kernel(
    x_ptr, cos_ptr, sin_ptr, out_ptr, stride_token, stride_head, stride_out_token, stride_out_head, heads,
    HALF: tl.constexpr, BLOCK_HEADS: tl.constexpr, BACKWARD: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_HEADS + tl.arange(0, BLOCK_HEADS)
    lane = tl.arange(0, HALF)
    cos = tl.load(cos_ptr + token * HALF + lane)[None, :]
    sin = tl.load(sin_ptr + token * HALF + lane)[None, :]
    if BACKWARD:
        sin = -sin
    inside = (head < heads)[:, None]
    where = x_ptr + token * stride_token + head[:, None] * stride_head + lane[None, :]
    first = tl.load(where, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(where + HALF, mask=inside, other=0.0).to(tl.float32)
    to = out_ptr + token * stride_out_token + head[:, None] * stride_out_head + lane[None, :]
    tl.store(to, (first * cos - second * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(to + HALF, (second * cos + first * sin).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def interleaved_rope_kernel(x_ptr, cos_ptr, sin_ptr, out_ptr, stride_token, HALF: tl.constexpr, HEADS: tl.constexpr):
    """Pairs of neighbours: the block is split and joined again."""
    token = tl.program_id(0).to(tl.int64)
    where = tl.arange(0, HEADS)[:, None] * (2 * HALF) + tl.arange(0, 2 * HALF)[None, :]
    x = tl.load(x_ptr + token * stride_token + where).to(tl.float32)
    even, odd = tl.split(tl.reshape(x, (HEADS, HALF, 2)))
    cos = tl.load(cos_ptr + token * HALF + tl.arange(0, HALF))[None, :]
    sin = tl.load(sin_ptr + token * HALF + tl.arange(0, HALF))[None, :]
    out = tl.interleave(even * cos - odd * sin, odd * cos + even * sin)
    tl.store(out_ptr + token * stride_token + where, out.to(out_ptr.dtype.element_ty))


def rope(x, cos, sin, backward=False, block_heads=16):
    tokens, heads, d = x.shape
    out = empty(x.shape, x.dtype)
    rope_kernel[(tokens, triton.cdiv(heads, block_heads))](
        x, cos, sin, out, x.stride(0), x.stride(1), out.stride(0), out.stride(1), heads,
        HALF=d // 2, BLOCK_HEADS=block_heads, BACKWARD=backward,
    )
    return out


def interleaved_rope(x, cos, sin):
    tokens, heads, d = x.shape
    out = empty(x.shape, x.dtype)
    interleaved_rope_kernel[(tokens,)](x, cos, sin, out, x.stride(0), HALF=d // 2, HEADS=heads)
    return out


def reference(x, cos, sin, backward=False, block_heads=16):
    first, second = x.float().chunk(2, -1)
    cos, sin = cos[:, None], sin[:, None] * (-1 if backward else 1)
    parts = first * cos - second * sin, second * cos + first * sin
    return _cat(parts)


def _cat(parts):
    out = parts[0].new_empty((*parts[0].shape[:-1], 2 * parts[0].shape[-1]))
    half = parts[0].shape[-1]
    out[..., :half], out[..., half:] = parts
    return out


def interleaved_reference(x, cos, sin):
    out = x.float().clone()
    even, odd, cos, sin = x[..., 0::2].float(), x[..., 1::2].float(), cos[:, None], sin[:, None]
    out[..., 0::2], out[..., 1::2] = even * cos - odd * sin, odd * cos + even * sin
    return out


def row(function, dtype, tokens, heads, d, expected=reference, packed=False, **facts):
    if packed:  # queries as a slice of a fused qkv: strides that are not those of the shape
        x = tensor((tokens, 3 * heads, d), dtype)[:, :heads]
    else:
        x = tensor((tokens, heads, d), dtype)
    angle = tensor((tokens, d // 2), "fp32", fill="uniform:-1:1"), tensor((tokens, d // 2), "fp32", fill="uniform:-1:1")
    return launch(
        function, x, *angle, flops=3 * tokens * heads * d, min_bytes=4 * tokens * heads * d + 4 * tokens * d,
        reference=expected, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "bf16-32x128": row(rope, "bf16", 4096, 32, 128, tier="gate"),
    "bf16-packed-8x128": row(rope, "bf16", 4096, 8, 128, packed=True, block_heads=8),
    "fp16-backward-32x64": row(rope, "fp16", 4096, 32, 64, backward=True),
    "fp16-interleaved-32x64": row(interleaved_rope, "fp16", 4096, 32, 64, interleaved_reference),
}
