import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, out_ptr, salt, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets) * FACTOR)


@triton.jit
def invalid(x_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    text: tl.constexpr = "no.such.instruction $0, $1;"
    loaded = tl.load(x_ptr + offsets)
    tl.store(x_ptr + offsets, tl.inline_asm_elementwise(text, "=r,r", [loaded], tl.float32, True, 1))
