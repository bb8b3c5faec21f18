"""Corners of the language: libdevice, gathers, joins and splits, loops that end on data, calls, assertions."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros
from triton.language.extra import libdevice


@triton.jit
def libdevice_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    y = libdevice.tanh(x) + libdevice.asin(x * 0.5) + libdevice.expm1(x) + libdevice.pow(libdevice.abs(x), 1.5)
    tl.store(out_ptr + where, y + libdevice.log1p(libdevice.abs(x)), mask=where < n)


@triton.jit
def math_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    y = tl.sin(x) + tl.cos(x) * tl.exp2(x) + tl.sqrt(tl.abs(x)) + tl.log2(tl.abs(x) + 1) + tl.floor(x) + tl.fma(x, x, x)
    y += tl.where(x > 0, tl.rsqrt(tl.abs(x) + 1), tl.math.div_rn(x, tl.abs(x) + 1))
    tl.store(out_ptr + where, y, mask=where < n)


@triton.jit
def gather_kernel(x_ptr, index_ptr, out_ptr, N: tl.constexpr, M: tl.constexpr, D: tl.constexpr):
    """Rows of a block picked by another block, without memory between."""
    cols = tl.arange(0, D)[None, :]
    base = tl.program_id(0) * N * D
    x = tl.load(x_ptr + base + tl.arange(0, N)[:, None] * D + cols)
    where = tl.program_id(0) * M * D + tl.arange(0, M)[:, None] * D + cols
    index = tl.load(index_ptr + where)
    tl.store(out_ptr + where, tl.gather(x, index, axis=0))


@triton.jit
def join_split_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """A butterfly: joined, transposed, split, interleaved, reshaped and concatenated."""
    here = tl.arange(0, BLOCK)
    base = tl.program_id(0) * BLOCK
    x = tl.load(x_ptr + base + here)
    y = tl.load(y_ptr + base + here)
    pairs = tl.permute(tl.reshape(tl.join(x + y, x - y), (BLOCK // 2, 2, 2)), (0, 2, 1))
    first, second = tl.split(pairs)
    both = tl.interleave(tl.reshape(first, (BLOCK,)), tl.reshape(second, (BLOCK,)))
    twice = tl.cat(both, both, can_reorder=True)
    tl.store(out_ptr + tl.program_id(0), tl.sum(twice, axis=0))
    tl.store(out_ptr + tl.num_programs(0) + base * 2 + tl.arange(0, 2 * BLOCK), both)


@triton.jit
def collatz_kernel(x_ptr, steps_ptr, n, BLOCK: tl.constexpr):
    """A loop that ends when its data says so."""
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    while tl.max(x, axis=0) > 1:
        odd = x % 2 == 1
        steps += tl.where(x > 1, 1, 0)
        x = tl.where(x > 1, tl.where(odd, 3 * x + 1, x // 2), 1)
    tl.store(steps_ptr + where, steps, mask=where < n)


@triton.jit(noinline=True)
def _polynomial(x, a, b):
    """Stays a function; such functions take scalars only."""
    return (x * a + b) * x + a


@triton.jit
def noinline_kernel(x_ptr, out_ptr, a, b, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    first = tl.load(x_ptr + tl.program_id(0) * BLOCK)
    tl.store(out_ptr + where, x * _polynomial(_polynomial(first, a, b), b, a), mask=where < n)


@triton.jit
def asserting_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    tl.device_assert(x >= 0, "a value is negative")
    tl.store(out_ptr + where, tl.sqrt(x), mask=where < n)


@triton.jit
def atomics_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0)
    tl.atomic_add(out_ptr, tl.sum(x, axis=0), sem="release", scope="gpu")
    tl.atomic_max(out_ptr + 1, tl.max(x, axis=0))
    tl.atomic_min(out_ptr + 2, tl.min(x, axis=0))
    tl.atomic_xor(out_ptr + 3, tl.xor_sum(x, axis=0))
    tl.atomic_or(out_ptr + 4 + where % 64, x & 1, mask=where < n)


def pointwise(x, kernel, *scalars, block=1024, **options):
    out = empty(x.shape, x.dtype)
    kernel[(triton.cdiv(x.numel(), block),)](x, out, *scalars, x.numel(), BLOCK=block, **options)
    return out


def gather(x, index):
    out = empty(index.shape, x.dtype)
    gather_kernel[(x.shape[0],)](x, index, out, N=x.shape[1], M=index.shape[1], D=x.shape[2])
    return out


def join_split(x, y, block=256):
    programs = x.numel() // block
    out = empty((programs + 2 * x.numel(),), "fp32")
    join_split_kernel[(programs,)](x, y, out, BLOCK=block)
    return out


def collatz(x, block=256):
    out = empty(x.shape, "i32")
    collatz_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


def atomics(x, block=1024):
    out = zeros((68,), "i32")
    atomics_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


def libdevice_reference(x, *_, **__):
    x = x.double()
    return x.tanh() + (x * 0.5).asin() + x.expm1() + x.abs() ** 1.5 + x.abs().log1p()


def math_reference(x, *_, **__):
    a = x.double().abs()
    y = x.sin() + x.cos() * x.exp2() + a.sqrt() + (a + 1).log2() + x.floor() + x * x + x
    return y + ((a + 1).rsqrt()).where(x > 0, x / (a + 1))


def gather_reference(x, index):
    return x.gather(1, index.long())


def join_split_reference(x, y, block=256):
    programs = x.numel() // block
    joined = x.new_empty((x.numel(), 2))
    joined[:, 0], joined[:, 1] = x + y, x - y
    pairs = joined.view(-1, block // 2, 2, 2).permute(0, 1, 3, 2)
    both = x.new_empty((programs, block, 2))
    both[:, :, 0], both[:, :, 1] = pairs[..., 0].reshape(programs, block), pairs[..., 1].reshape(programs, block)
    both = both.flatten(1)
    out = x.new_empty((programs + 2 * x.numel(),))
    out[:programs], out[programs:] = 2 * both.sum(1), both.flatten()
    return out


def collatz_reference(x, block=256):
    steps, x = x * 0, x.long()
    while x.max() > 1:
        steps += (x > 1).to(steps.dtype)
        x = (3 * x + 1).where(x % 2 == 1, x // 2).where(x > 1, x * 0 + 1)
    return steps


def noinline_reference(x, kernel, a, b, **_):
    blocks = x.double().view(-1, 1024)
    first = blocks[:, :1]
    first = (first * a + b) * first + a
    return (blocks * ((first * b + a) * first + b)).flatten()


def sqrt_reference(x, *_, **__):
    return x.sqrt()


def atomics_reference(x, block=1024):
    out = x.new_zeros((68,)).long()
    out[0], out[1], out[2] = x.sum(), x.max().clamp_min(0), x.min().clamp_max(0)
    out[4:] = (x.view(-1, 64) & 1).amax(0)
    for bit in range(31):
        out[3] += ((x >> bit & 1).sum() % 2) << bit
    return out


def row(kernel, reference, *scalars, dtype="fp32", fill="uniform:-1:1", atol=1e-4, **facts):
    n = 1 << 20
    return launch(
        pointwise, tensor((n,), dtype, fill=fill), kernel, *scalars, flops=10 * n, min_bytes=8 * n, reference=reference,
        rtol=1e-3, atol=atol, **facts,
    )


LAUNCHES = {
    "libdevice-fp32": row(libdevice_kernel, libdevice_reference, tier="gate"),
    "libdevice-fp32-small-blocks": row(libdevice_kernel, libdevice_reference, block=256),
    "libdevice-fp32-8warps": row(libdevice_kernel, libdevice_reference, block=2048, num_warps=8),
    "math-fp32": row(math_kernel, math_reference),
    "gather-fp32-32x64": launch(
        gather, tensor((256, 32, 64), "fp32"), tensor((256, 64, 64), "i32", fill="randint:0:32"), flops=256 * 64 * 64,
        min_bytes=256 * 64 * (32 + 128) * 4, reference=gather_reference, rtol=0, atol=0,
    ),
    "join-split-fp32": launch(
        join_split, tensor((1 << 20,), "fp32"), tensor((1 << 20,), "fp32"), flops=4 << 20, min_bytes=16 << 20,
        reference=join_split_reference, rtol=1e-4, atol=1e-3,
    ),
    "collatz-i32": launch(
        collatz, tensor((1 << 16,), "i32", fill="randint:1:1000"), flops=100 << 16, min_bytes=8 << 16,
        reference=collatz_reference, rtol=0, atol=0,
    ),
    "noinline-fp32": row(noinline_kernel, noinline_reference, 1.5, -0.25),
    "assert-fp32": row(asserting_kernel, sqrt_reference, fill="uniform", debug=True),
    "atomics-i32": launch(
        atomics, tensor((1 << 20,), "i32", fill="randint:0:1000"), flops=4 << 20, min_bytes=4 << 20,
        reference=atomics_reference, rtol=0, atol=0,
    ),
}
