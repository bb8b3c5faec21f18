"""Dropout with counter-based random numbers (Philox): nothing stored, the mask made again in the backward pass."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, seed, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = where < n
    x = tl.load(x_ptr + where, mask=inside)
    keep = tl.rand(seed, where) > p
    tl.store(out_ptr + where, tl.where(keep, x / (1 - p), 0.0), mask=inside)


@triton.jit
def random4_kernel(out_ptr, seed, BLOCK: tl.constexpr):
    """All four numbers of a Philox call used."""
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a, b, c, d = tl.rand4x(seed, where)
    out_ptr += tl.program_id(0) * 4 * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr, a)
    tl.store(out_ptr + BLOCK, b)
    tl.store(out_ptr + 2 * BLOCK, c)
    tl.store(out_ptr + 3 * BLOCK, d)


def dropout(x, p, seed, block=1024):
    out = empty(x.shape, x.dtype)
    dropout_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), p, seed, BLOCK=block)
    return out


def random4(like, seed, block=1024):
    out = empty(like.shape, "fp32")
    random4_kernel[(like.numel() // (4 * block),)](out, seed, BLOCK=block)
    return out


def philox(counter, seed):
    """Philox 4x32 with ten rounds (Salmon et al., 2011) on int64 tensors that hold 32-bit words."""
    low = 0xFFFFFFFF
    c0, c1, c2, c3 = counter & low, counter * 0, counter * 0, counter * 0
    k0, k1 = seed & low, seed >> 32
    for _ in range(10):
        first, second = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1 = ((second >> 32) & low) ^ c1 ^ k0, second & low
        c2, c3 = ((first >> 32) & low) ^ c3 ^ k1, first & low
        k0, k1 = (k0 + 0x9E3779B9) & low, (k1 + 0xBB67AE85) & low
    return c0, c1, c2, c3


def uniform(word):
    signed = word.where(word < 1 << 31, word - (1 << 32))
    return signed.where(signed >= 0, -signed - 1).float() * 4.6566127342e-10


def reference(x, p, seed, block=1024):
    counter = (x.flatten().float() * 0).long() + 1
    keep = uniform(philox(counter.cumsum(0) - 1, seed)[0]) > p
    return (x.float() / (1 - p)).where(keep.view(x.shape), x.float() * 0)


def random4_reference(like, seed, block=1024):
    counter = like.new_ones((like.numel() // 4,)).long().cumsum(0) - 1
    words = [uniform(word).view(-1, 1, block) for word in philox(counter, seed)]
    out = like.float().view(-1, 4, block).clone()
    for place, word in enumerate(words):
        out[:, place : place + 1] = word
    return out.view(like.shape)


def row(dtype, n, size, **facts):
    return launch(
        dropout, tensor((n,), dtype), 0.1, 20260, flops=100 * n, min_bytes=2 * n * size, reference=reference, **facts
    )


LAUNCHES = {
    "fp32-4m": row("fp32", 1 << 22, 4, tier="gate"),
    "bf16-odd": row("bf16", (1 << 22) + 3, 2, atol=5e-2),
    "random4-4m": launch(
        random4, tensor((1 << 22,), "fp32"), 77, flops=30 << 22, min_bytes=4 << 22, reference=random4_reference,
        rtol=1e-6, atol=1e-6,
    ),
}
