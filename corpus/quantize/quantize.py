"""Quantization and casts: scales of rows and groups, packing of 4-bit integers, every cast between storage types."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def row_quantize_kernel(x_ptr, q_ptr, scale_ptr, n_cols, LIMIT: tl.constexpr, ROUND: tl.constexpr, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    cols = tl.arange(0, BLOCK)
    inside = cols < n_cols
    x = tl.load(x_ptr + row * n_cols + cols, mask=inside, other=0.0).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=0) / LIMIT, 1e-10)
    y = x / scale
    if ROUND:
        y = tl.floor(y + 0.5)
    tl.store(q_ptr + row * n_cols + cols, y.to(q_ptr.dtype.element_ty), mask=inside)
    tl.store(scale_ptr + row, scale)


@triton.jit
def group_quantize_kernel(x_ptr, q_ptr, scale_ptr, GROUP: tl.constexpr, GROUPS: tl.constexpr, LIMIT: tl.constexpr):
    """Groups of GROUP neighbours share a scale, as for block-scaled products."""
    group = tl.program_id(0) * GROUPS + tl.arange(0, GROUPS)
    where = group[:, None].to(tl.int64) * GROUP + tl.arange(0, GROUP)[None, :]
    x = tl.load(x_ptr + where).to(tl.float32)
    scale = tl.maximum(tl.max(tl.abs(x), axis=1), 1e-4) / LIMIT
    tl.store(q_ptr + where, (x / scale[:, None]).to(q_ptr.dtype.element_ty))
    tl.store(scale_ptr + group, scale)


@triton.jit
def transposed_quantize_kernel(
    x_ptr, q_ptr, scale, stride_xm: int, stride_xn: int, stride_qn: int, stride_qm: int,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
):
    """Written column by column; the strides of 1 are annotated, which is the frontend's reason to keep them or not."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rows[:, None] * stride_xm + cols[None, :] * stride_xn).to(tl.float32)
    q = (x * scale).to(q_ptr.dtype.element_ty)
    tl.store(q_ptr + cols[:, None] * stride_qn + rows[None, :] * stride_qm, tl.trans(q))


@triton.jit
def int4_unpack_kernel(packed_ptr, scale_ptr, out_ptr, n_bytes, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    packed = tl.load(packed_ptr + where)
    low = ((packed & 15) ^ 8).to(tl.int8) - 8
    high = packed.to(tl.int8, bitcast=True) >> 4
    both = tl.interleave(low, high).to(tl.float32)
    place = tl.program_id(0) * 2 * BLOCK + tl.arange(0, 2 * BLOCK)
    scale = tl.load(scale_ptr + place // 128)
    tl.store(out_ptr + place, (both * scale).to(out_ptr.dtype.element_ty))


@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n)
    tl.store(out_ptr + where, x.to(out_ptr.dtype.element_ty), mask=where < n)


def row_quantize(x, dtype="i8", warps=8):
    rows, cols = x.shape
    q, scale = empty(x.shape, dtype), empty((rows,), "fp32")
    row_quantize_kernel[(rows,)](
        x, q, scale, cols, LIMIT=127.0 if dtype == "i8" else 448.0, ROUND=dtype == "i8",
        BLOCK=triton.next_power_of_2(cols), num_warps=warps,
    )
    return q, scale


def group_quantize(x, group=128, groups=16):
    rows, cols = x.shape
    q, scale = empty(x.shape, "fp8e4nv"), empty((rows, cols // group), "fp32")
    group_quantize_kernel[(rows * cols // (group * groups),)](x, q, scale, GROUP=group, GROUPS=groups, LIMIT=448.0)
    return q, scale


def transposed_quantize(x, scale, dtype="fp8e4nv", block=(128, 128), warps=8):
    rows, cols = x.shape
    q = empty((cols, rows), dtype)
    transposed_quantize_kernel[(rows // block[0], cols // block[1])](
        x, q, scale, *x.stride(), *q.stride(), BLOCK_M=block[0], BLOCK_N=block[1], num_warps=warps
    )
    return q


def int4_unpack(packed, scale, block=1024):
    out = empty((2 * packed.shape[0],), "bf16")
    int4_unpack_kernel[(packed.shape[0] // block,)](packed, scale, out, packed.shape[0], BLOCK=block)
    return out


def cast(x, dtype, block=2048):
    out = empty(x.shape, dtype)
    cast_kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), BLOCK=block)
    return out


def row_reference(x, dtype="i8", warps=8):
    scale = (x.float().abs().amax(1) / (127.0 if dtype == "i8" else 448.0)).clamp_min(1e-10)
    y = x.float() / scale[:, None]
    return ((y + 0.5).floor() if dtype == "i8" else y), scale


def group_reference(x, group=128, groups=16):
    parts = x.float().unflatten(1, (-1, group))
    scale = parts.abs().amax(2).clamp_min(1e-4) / 448
    return (parts / scale[:, :, None]).flatten(1), scale


def transposed_reference(x, scale, **_):
    return x.float().T * scale


def unpack_reference(packed, scale, block=1024):
    nibbles = packed.new_empty((packed.shape[0], 2)).float()
    nibbles[:, 0], nibbles[:, 1] = packed & 15, packed >> 4
    nibbles = nibbles - 16 * (nibbles > 7)
    return nibbles.flatten() * scale.repeat_interleave(128)


def cast_reference(x, dtype, block=2048):
    return x.double()


def cast_row(source, to, fill="normal", rtol=1e-2, **facts):
    return launch(
        cast, tensor((1 << 24,), source, fill=fill), to, flops=1 << 24, min_bytes=3 << 24, reference=cast_reference,
        rtol=rtol, atol=2e-2, **facts,
    )


LAUNCHES = {
    "int8-rows-bf16-4096": launch(
        row_quantize, tensor((8192, 4096), "bf16"), flops=4 * 8192 * 4096, min_bytes=3 * 8192 * 4096,
        reference=row_reference, rtol=1e-3, atol=1.0, tier="gate",
    ),
    "fp8-rows-bf16-5120": launch(
        row_quantize, tensor((4096, 5120), "bf16"), dtype="fp8e4nv", flops=4 * 4096 * 5120, min_bytes=3 * 4096 * 5120,
        reference=row_reference, rtol=7e-2, atol=2e-2, since={"gfx9*": "3.3.0"},
    ),
    "fp8-groups-bf16-7168": launch(
        group_quantize, tensor((2048, 7168), "bf16"), flops=4 * 2048 * 7168, min_bytes=3 * 2048 * 7168,
        reference=group_reference, rtol=7e-2, atol=2e-2, since={"gfx9*": "3.3.0"},
    ),
    # triton #9834 (AMD, since 3.4.0): strides annotated with `int` are no constants any more, and the transposed tile
    # is stored byte by byte
    "fp8-transposed-bf16-8192x4096": launch(
        transposed_quantize, tensor((8192, 4096), "bf16"), 0.25, flops=8192 * 4096, min_bytes=3 * 8192 * 4096,
        reference=transposed_reference, rtol=7e-2, atol=2e-2, since={"gfx9*": "3.3.0"},
    ),
    "int4-unpack-bf16": launch(
        int4_unpack, tensor((1 << 22,), "u8"), tensor((1 << 16,), "fp32", fill="uniform"), flops=3 << 23,
        min_bytes=5 << 22, reference=unpack_reference,
    ),
    "cast-fp32-bf16": cast_row("fp32", "bf16"),
    "cast-fp16-fp8e5": cast_row("fp16", "fp8e5", rtol=0.13),
    "cast-bf16-fp8e4nv": cast_row("bf16", "fp8e4nv", rtol=7e-2, since={"gfx9*": "3.4.0"}),
    "cast-fp8e4nv-bf16": cast_row("fp8e4nv", "bf16", since={"gfx9*": "3.3.0"}),
    "cast-fp8e5-fp32": cast_row("fp8e5", "fp32"),
    "cast-i8-bf16": cast_row("i8", "bf16"),
    "cast-fp32-i32": cast_row("fp32", "i32", fill="const:41"),
}
