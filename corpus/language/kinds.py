"""Every kind of memory access, atomic, reduction and product once, by element type and mask, in small blocks."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor, zeros

INTEGERS = ("i8", "i16", "i32", "i64")
FLOATS = ("fp16", "bf16", "fp32", "fp64")


@triton.jit
def copy(x_ptr, y_ptr, n, N: tl.constexpr, M: tl.constexpr):
    """Transposed and masked, then as it is and unmasked."""
    rows, cols = tl.arange(0, N)[:, None], tl.arange(0, M)[None, :]
    here = rows * M + cols
    tile = tl.load(x_ptr + here, mask=rows < n)
    tl.store(y_ptr + cols * N + rows, tile, mask=rows < n)
    tl.store(y_ptr + N * M + here, tl.load(x_ptr + N * M + here))


@triton.jit
def moves_kernel(
    i8, i16, i32, i64, fp16, bf16, fp32, fp64, e4m3, e5m2, to_i8, to_i16, to_i32, to_i64, to_fp16, to_bf16, to_fp32,
    to_fp64, to_e4m3, to_e5m2, n, N: tl.constexpr, M: tl.constexpr,
):
    copy(i8, to_i8, n, N, M)
    copy(i16, to_i16, n, N, M)
    copy(i32, to_i32, n, N, M)
    copy(i64, to_i64, n, N, M)
    copy(fp16, to_fp16, n, N, M)
    copy(bf16, to_bf16, n, N, M)
    copy(fp32, to_fp32, n, N, M)
    copy(fp64, to_fp64, n, N, M)
    copy(e4m3, to_e4m3, n, N, M)
    copy(e5m2, to_e5m2, n, N, M)


@triton.jit
def add(x, y):
    return x + y


@triton.jit
def fold(x_ptr, y_ptr, N: tl.constexpr):
    here = tl.arange(0, N)
    x = tl.load(x_ptr + here)
    tl.store(y_ptr + here, tl.associative_scan(x, 0, add))
    tl.store(y_ptr + N, tl.reduce(x, 0, add))
    tl.store(y_ptr + N + 1 + here, tl.gather(x, here ^ 1, 0))


@triton.jit(noinline=True)
def _twice(x):
    """Stays a function; such functions take scalars only."""
    return x + x


@triton.jit
def others(x_ptr, y_ptr, counts_ptr, N: tl.constexpr):
    """What is there for fp32 alone, or has no element type."""
    here = tl.arange(0, N)
    x = tl.load(x_ptr + here)
    y = tl.div_rn(tl.sqrt_rn(tl.clamp(x, 0.5, 2.0)), x + 1)
    first, second = tl.split(tl.reshape(tl.join(x, y), (N, 2)) + 1)
    total = tl.sum(tl.cat(first, second, can_reorder=True), axis=0)
    tl.store(y_ptr + here, y + total + _twice(tl.load(x_ptr)))
    tl.store(counts_ptr + tl.arange(0, 4), tl.histogram(here & 3, 4))


@triton.jit
def folds_kernel(
    i8, i16, i32, i64, fp16, bf16, fp32, fp64, to_i8, to_i16, to_i32, to_i64, to_fp16, to_bf16, to_fp32, to_fp64,
    N: tl.constexpr,
):
    fold(i8, to_i8, N)
    fold(i16, to_i16, N)
    fold(i32, to_i32, N)
    fold(i64, to_i64, N)
    fold(fp16, to_fp16, N)
    fold(bf16, to_bf16, N)
    fold(fp32, to_fp32, N)
    fold(fp64, to_fp64, N)
    others(fp32, to_fp32 + 2 * N + 1, to_i32 + 2 * N + 1, N)


@triton.jit
def add_to(sums_ptr, n, N: tl.constexpr):
    here = tl.arange(0, N)
    one = tl.full((N,), 1, sums_ptr.dtype.element_ty)
    tl.atomic_add(sums_ptr + here, one)
    tl.atomic_add(sums_ptr + here, one, mask=here < n, sem="relaxed")


@triton.jit
def extremes(x_ptr, n, N: tl.constexpr):
    here = tl.arange(0, N)
    x = here.to(x_ptr.dtype.element_ty)
    tl.atomic_max(x_ptr + here, x)
    tl.atomic_max(x_ptr + here, x + 1, mask=here < n)
    tl.atomic_min(x_ptr + N + here, x)
    tl.atomic_min(x_ptr + N + here, 2 * x, mask=here < n)


@triton.jit
def bits(x_ptr, n, N: tl.constexpr):
    """Each operation on a row of its own."""
    here = tl.arange(0, N)
    x = here.to(x_ptr.dtype.element_ty)
    tl.atomic_and(x_ptr + here, x)
    tl.atomic_and(x_ptr + here, 2 * x, mask=here < n)
    tl.atomic_or(x_ptr + N + here, x)
    tl.atomic_or(x_ptr + N + here, 2 * x, mask=here < n)
    tl.atomic_xor(x_ptr + 2 * N + here, x)
    tl.atomic_xor(x_ptr + 2 * N + here, 2 * x, mask=here < n)
    tl.atomic_cas(x_ptr + 3 * N + here, 0 * x, x)


@triton.jit
def atomics_kernel(
    i32, i64, fp16, bf16, fp32, fp64, low_i32, low_i64, low_u32, low_u64, bits_i32, bits_i64, n, N: tl.constexpr
):
    add_to(i32, n, N)
    add_to(i64, n, N)
    add_to(fp16, n, N)
    add_to(bf16, n, N)
    add_to(fp32, n, N)
    add_to(fp64, n, N)
    extremes(low_i32, n, N)
    extremes(low_i64, n, N)
    extremes(low_u32, n, N)
    extremes(low_u64, n, N)
    bits(bits_i32, n, N)
    bits(bits_i64, n, N)


@triton.jit
def widen(x_ptr, to_fp16, to_bf16, to_fp32, row, N: tl.constexpr):
    here = tl.arange(0, N)
    x = tl.load(x_ptr + here)
    tl.store(to_fp16 + row * N + here, x.to(tl.float16))
    tl.store(to_bf16 + row * N + here, x.to(tl.bfloat16))
    tl.store(to_fp32 + row * N + here, x.to(tl.float32))


@triton.jit
def narrow(x_ptr, to_e4m3, to_e5m2, row, N: tl.constexpr):
    here = tl.arange(0, N)
    x = tl.load(x_ptr + here)
    tl.store(to_e4m3 + row * N + here, x.to(tl.float8e4nv))
    tl.store(to_e5m2 + row * N + here, x.to(tl.float8e5))


@triton.jit
def casts_kernel(fp16, bf16, fp32, e4m3, e5m2, to_fp16, to_bf16, to_fp32, to_e4m3, to_e5m2, N: tl.constexpr):
    widen(fp16, to_fp16, to_bf16, to_fp32, 0, N)
    widen(bf16, to_fp16, to_bf16, to_fp32, 1, N)
    widen(fp32, to_fp16, to_bf16, to_fp32, 2, N)
    widen(e4m3, to_fp16, to_bf16, to_fp32, 3, N)
    widen(e5m2, to_fp16, to_bf16, to_fp32, 4, N)
    narrow(fp16, to_e4m3, to_e5m2, 0, N)
    narrow(bf16, to_e4m3, to_e5m2, 1, N)
    narrow(fp32, to_e4m3, to_e5m2, 2, N)


@triton.jit
def through(x_ptr, y_ptr, n, N: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n, n], [n, 1], [N, N])
    y = tl.make_tensor_descriptor(y_ptr, [n, n], [n, 1], [N, N])
    y.store([0, N], x.load([N, 0]))


@triton.jit
def descriptors_kernel(
    i8, i16, i32, bf16, fp32, e4m3, e5m2, to_i8, to_i16, to_i32, to_bf16, to_fp32, to_e4m3, to_e5m2, n, N: tl.constexpr
):
    through(i8, to_i8, n, N)
    through(i16, to_i16, n, N)
    through(i32, to_i32, n, N)
    through(bf16, to_bf16, n, N)
    through(fp32, to_fp32, n, N)
    through(e4m3, to_e4m3, n, N)
    through(e5m2, to_e5m2, n, N)
    source = tl.make_tensor_descriptor(fp32, [n, n], [n, 1], [N, N])
    sums = tl.make_tensor_descriptor(to_fp32, [n, n], [n, 1], [N, N])
    sums.atomic_add([0, 0], source.load([0, 0]))


@triton.jit
def dots_kernel(a_ptr, b_ptr, c_ptr, steps, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A product of what a loop loads and converts, which Hopper takes from registers, half by half."""
    rows, cols, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a_ptrs = a_ptr + rows[:, None] * (steps * K) + inner[None, :]
    b_ptrs = b_ptr + inner[:, None] * N + cols[None, :]
    acc = tl.zeros((M, N), tl.float32)
    for _ in range(steps):
        b = tl.load(b_ptrs)
        acc = tl.dot(tl.load(a_ptrs).to(b.dtype), b, acc)
        a_ptrs += K
        b_ptrs += K * N
    tl.store(c_ptr + rows[:, None] * N + cols[None, :], acc)


def moves(*tensors):
    outs = [empty(x.shape, x.dtype) for x in tensors]
    _, n, m = tensors[0].shape
    moves_kernel[(1,)](*tensors, *outs, n, N=n, M=m)
    return tuple(outs)


def folds(*tensors):
    n = tensors[0].numel()
    more = {"i32": 4, "fp32": n}
    outs = [empty((2 * n + 1 + more.get(dtype, 0),), dtype) for dtype in (*INTEGERS, *FLOATS)]
    folds_kernel[(1,)](*tensors, *outs, N=n)
    return tuple(outs)


def atomics(n, block=128):
    sums = [zeros((block,), dtype) for dtype in ("i32", "i64", *FLOATS)]
    lows = [zeros((2, block), dtype) for dtype in ("i32", "i64", "u32", "u64")]
    both = [zeros((4, block), dtype) for dtype in ("i32", "i64")]
    atomics_kernel[(1,)](*sums, *lows, *both, n, N=block)
    return (*sums, *lows[:2], *both)


def casts(*tensors):
    n = tensors[0].numel()
    outs = [empty((5 if x.element_size() > 1 else 3, n), x.dtype) for x in tensors]
    casts_kernel[(1,)](*tensors, *outs, N=n)
    return tuple(outs)


def descriptors(*tensors):
    outs = [zeros(x.shape, x.dtype) for x in tensors]
    n = tensors[0].shape[0]
    descriptors_kernel[(1,)](*tensors, *outs, n, N=n // 2)
    return tuple(outs)


def dots(a, b, block_k):
    m, n = a.shape[0], b.shape[1]
    c = empty((m, n), "fp32")
    dots_kernel[(1,)](a, b, c, a.shape[1] // block_k, M=m, N=n, K=block_k)
    return c


def moves_reference(*tensors):
    """The first half transposed; all are as wide as they are high."""
    outs = [x.clone() for x in tensors]
    for x, y in zip(tensors, outs):
        y[0] = x[0].t()
    return tuple(outs)


def folds_reference(*tensors):
    n = tensors[0].numel()
    more = {2: [n / 4] * 4, 6: [0.5 + 3.5 * n + 2] * n}
    return tuple(
        x.new_tensor([*range(1, n + 1), n, *[1] * n, *more.get(place, [])]) for place, x in enumerate(tensors)
    )


def atomics_reference(n, block=128):
    import torch

    here = torch.arange(block)
    sums = 1 + (here < n).long()
    lows = torch.stack([here + (here < n), 0 * here])
    masked = torch.where(here < n, 2 * here, here)
    both = torch.stack([0 * here, here | masked, torch.where(here < n, here ^ 2 * here, here), here])
    return (*[sums] * 6, *[lows] * 2, *[both] * 2)


def casts_reference(*tensors):
    rows = [x.float() for x in tensors]
    return tuple(
        rows[0].new_empty(0).new_tensor([row.tolist() for row in rows[: 5 if y.element_size() > 1 else 3]]).to(y.dtype)
        for y in tensors
    )


def descriptors_reference(*tensors):
    n = tensors[0].shape[0] // 2
    outs = [x.clone().zero_() for x in tensors]
    for x, y in zip(tensors, outs):
        y[:n, n:] = x[n:, :n]
    outs[4][:n, :n] = tensors[4][:n, :n]
    return tuple(outs)


def dots_reference(a, b, block_k):
    return a.float() @ b.float()


def inputs(shape, dtypes, fill="ones"):
    return [tensor(shape, dtype, fill=fill) for dtype in dtypes]


def dots_row(dtype, other, block_k, **facts):
    a, b = tensor((64, 512), dtype, fill="randint:-8:8"), tensor((512, 16), other)
    return launch(dots, a, b, block_k=block_k, reference=dots_reference, flops=2 * 64 * 16 * 512, tier="gate", **facts)


LAUNCHES = {
    "moves": launch(
        moves, *inputs((2, 16, 16), (*INTEGERS, *FLOATS, "fp8e4nv", "fp8e5")), reference=moves_reference, tier="gate"
    ),
    "folds": launch(folds, *inputs((128,), (*INTEGERS, *FLOATS)), reference=folds_reference, tier="gate"),
    "atomics": launch(atomics, 100, reference=atomics_reference, since="3.4.0", tier="gate"),
    "casts": launch(
        casts, *inputs((512,), ("fp16", "bf16", "fp32", "fp8e4nv", "fp8e5")), reference=casts_reference, since={"gfx9*": "3.4.0"},
        tier="gate",
    ),
    "descriptors": launch(
        descriptors, *inputs((64, 64), ("i8", "i16", "i32", "bf16", "fp32", "fp8e4nv", "fp8e5")),
        reference=descriptors_reference, since="3.4.0", tier="gate",
    ),
    "dots-i8-fp16": dots_row("i8", "fp16", 64, atol=0.5),
    "dots-fp32": dots_row("fp32", "fp32", 32, atol=0.5),
}
