"""Control flow that passes rewrite: unrolled and nested loops, branches on one condition, conditions that always
hold, offsets that advance."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def unrolled_kernel(x_ptr, out_ptr, columns, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    """The sum of a row, some blocks a turn."""
    row = tl.program_id(0)
    where = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for begin in tl.range(0, columns, BLOCK, loop_unroll_factor=FACTOR):
        here = begin + where
        total += tl.load(x_ptr + row * columns + here, mask=here < columns, other=0.0).to(tl.float32)
    tl.store(out_ptr + row, tl.sum(total, axis=0))


@triton.jit
def branches_kernel(x_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    """Twice the same question, with work between that does not depend on the answer."""
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0).to(tl.float32)
    is_large = scale > 1.0
    if is_large:
        first = x * scale
    else:
        first = x + scale
    square = x * x
    if is_large:
        second = square - scale
    else:
        second = square + first
    tl.store(out_ptr + where, first + second, mask=where < n)


@triton.jit
def bounded_kernel(x_ptr, out_ptr, columns, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Bounds that the compiler can prove: of a loop's counter, and of an assumption."""
    row = tl.program_id(0)
    tl.assume(row >= 0)
    tl.assume(columns >= STEPS * BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        here = step * BLOCK + tl.arange(0, BLOCK)
        kept = (here >= 0) & (here < STEPS * BLOCK)
        x = tl.load(x_ptr + row * columns + here, mask=kept, other=0.0).to(tl.float32)
        if step < STEPS:
            total += x
        if row < 0:
            total -= x
    tl.store(out_ptr + row * BLOCK + tl.arange(0, BLOCK), total)


@triton.jit
def row_sums_kernel(x_ptr, out_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    """Every turn of the loop reduces a tile: threads may keep their own part of the sum."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros((ROWS,), tl.float32)
    for begin in range(0, columns, BLOCK):
        where = begin + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + rows[:, None] * columns + where[None, :])
        total += tl.sum(x.to(tl.float32), axis=1)
    tl.store(out_ptr + rows, total)


@triton.jit
def advancing_kernel(x_ptr, out_ptr, ROWS: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """Offsets that grow by one amount each turn, and can be proved to stay below four gigabytes."""
    row = tl.program_id(0)
    tl.assume(row < ROWS)
    where = row * (STEPS * BLOCK) + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(STEPS):
        total += tl.load(x_ptr + where).to(tl.float32)
        where += BLOCK
    tl.store(out_ptr + row * BLOCK + tl.arange(0, BLOCK), total)


def unrolled(x, factor=4, block=256):
    rows, columns = x.shape
    out = empty((rows,), "fp32")
    unrolled_kernel[(rows,)](x, out, columns, FACTOR=factor, BLOCK=block)
    return out


def branches(x, scale, block=1024):
    out = empty(x.shape, "fp32")
    branches_kernel[(triton.cdiv(x.numel(), block),)](x, out, scale, x.numel(), BLOCK=block)
    return out


def bounded(x, steps=8, block=256):
    rows, columns = x.shape
    out = empty((rows, block), "fp32")
    bounded_kernel[(rows,)](x, out, columns, STEPS=steps, BLOCK=block)
    return out


def row_sums(x, rows=32, block=128, warps=4):
    out = empty((x.shape[0],), "fp32")
    row_sums_kernel[(x.shape[0] // rows,)](x, out, x.shape[1], ROWS=rows, BLOCK=block, num_warps=warps)
    return out


def advancing(x, block=256):
    rows, columns = x.shape
    out = empty((rows, block), "fp32")
    advancing_kernel[(rows,)](x, out, ROWS=rows, STEPS=columns // block, BLOCK=block)
    return out


def unrolled_reference(x, **_):
    return x.double().sum(1)


def branches_reference(x, scale, **_):
    x = x.double()
    first = x * scale if scale > 1 else x + scale
    return first + (x * x - scale if scale > 1 else x * x + first)


def bounded_reference(x, steps=8, block=256):
    return x.double()[:, : steps * block].view(x.shape[0], steps, block).sum(1)


def advancing_reference(x, block=256):
    return x.double().view(x.shape[0], -1, block).sum(1)


def rows(function, reference, dtype, shape, *scalars, **facts):
    n = shape[0] * shape[-1] if len(shape) > 1 else shape[0]
    return launch(
        function, tensor(shape, dtype), *scalars, flops=4 * n, min_bytes=n * (4 if dtype == "fp32" else 2),
        reference=reference, rtol=1e-3, atol=1e-2, **facts,
    )


LAUNCHES = {
    "unrolled4-fp32": rows(unrolled, unrolled_reference, "fp32", (1024, 4096), factor=4),
    "unrolled2-bf16": rows(unrolled, unrolled_reference, "bf16", (1024, 4096), factor=2),
    "unrolled8-fp16-odd": rows(unrolled, unrolled_reference, "fp16", (1024, 4099), factor=8),
    "branches-fp32": rows(branches, branches_reference, "fp32", (1 << 20,), 2.5),
    "branches-bf16": rows(branches, branches_reference, "bf16", (1 << 20,), 0.5),
    "branches-fp16-small": rows(branches, branches_reference, "fp16", (1 << 14,), 1.5, block=128),
    "bounded-fp32": rows(bounded, bounded_reference, "fp32", (1024, 2048)),
    "bounded-bf16": rows(bounded, bounded_reference, "bf16", (1024, 4096), steps=4, block=1024),
    "bounded-fp16": rows(bounded, bounded_reference, "fp16", (1024, 2048), steps=16, block=128),
    "advancing-fp32": rows(advancing, advancing_reference, "fp32", (1024, 4096)),
    "advancing-bf16": rows(advancing, advancing_reference, "bf16", (4096, 2048), block=1024),
    "advancing-fp16-small": rows(advancing, advancing_reference, "fp16", (512, 8192), block=128),
    "row-sums-fp32": rows(row_sums, unrolled_reference, "fp32", (4096, 1024)),
    "row-sums-bf16-8warps": rows(row_sums, unrolled_reference, "bf16", (4096, 2048), rows=64, warps=8),
    "row-sums-fp16-wide": rows(row_sums, unrolled_reference, "fp16", (4096, 2048), rows=16, block=256),
}
