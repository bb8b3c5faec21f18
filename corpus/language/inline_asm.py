"""Inline assembly on single values and on four packed bytes, in the dialect of each vendor."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def exp2_kernel(x_ptr, out_ptr, n, HIP: tl.constexpr, BLOCK: tl.constexpr):
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0.0)
    if HIP:
        y = tl.inline_asm_elementwise("v_exp_f32 $0, $1", "=v,v", [x], dtype=tl.float32, is_pure=True, pack=1)
    else:
        y = tl.inline_asm_elementwise("ex2.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(out_ptr + where, y, mask=where < n)


@triton.jit
def packed_bytes_kernel(x_ptr, out_ptr, n, HIP: tl.constexpr, BLOCK: tl.constexpr):
    """Four bytes an instruction: each shifted right by 3, through one 32-bit register."""
    where = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + where, mask=where < n, other=0)
    if HIP:
        y = tl.inline_asm_elementwise(
            """
            v_lshrrev_b32 $0, 3, $1
            v_and_b32 $0, 0x1F1F1F1F, $0
            """,
            "=v,v", [x], dtype=tl.uint8, is_pure=True, pack=4,
        )
    else:
        y = tl.inline_asm_elementwise(
            """
            {
                .reg .b32 shifted;
                shr.b32 shifted, $1, 3;
                and.b32 $0, shifted, 0x1F1F1F1F;
            }
            """,
            "=r,r", [x], dtype=tl.uint8, is_pure=True, pack=4,
        )
    tl.store(out_ptr + where, y, mask=where < n)


def pointwise(x, kernel, block=1024):
    out = empty(x.shape, x.dtype)
    hip = triton.runtime.driver.active.get_current_target().backend == "hip"
    kernel[(triton.cdiv(x.numel(), block),)](x, out, x.numel(), HIP=hip, BLOCK=block)
    return out


def exp2_reference(x, kernel, block=1024):
    return x.exp2()


def bytes_reference(x, kernel, block=1024):
    return x >> 3


LAUNCHES = {
    "exp2-fp32": launch(
        pointwise, tensor((1 << 20,), "fp32"), exp2_kernel, flops=1 << 20, min_bytes=8 << 20,
        reference=exp2_reference, rtol=1e-2, atol=1e-3,
    ),
    "bytes-u8": launch(
        pointwise, tensor((1 << 20,), "u8"), packed_bytes_kernel, since={"gfx*": "3.8.0"}, flops=1 << 20, min_bytes=2 << 20,
        reference=bytes_reference, rtol=0, atol=0,
    ),
}
