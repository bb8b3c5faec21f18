import triton
import triton.language as tl
from irdiff_corpus import launch, tensor


@triton.jit
def kernel(x_ptr, CODE: tl.constexpr, CONSTRAINTS: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    x = tl.inline_asm_elementwise(CODE, CONSTRAINTS, [x], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x_ptr + offsets, x)


FINE = ("abs.f32 $0, $1;", "=f,f")
REFUSED = ("no_such.f32 $0, $1;", "=f,f")
ABORTING = ("abs.f32 $0, $1;", "=f")
LAUNCHES = {
    f"{number}-{name}": launch(kernel[(1,)], tensor((1 << number,), "fp32"), *how, 1 << number)
    for number, (name, how) in enumerate(
        [("fine", FINE), ("refused", REFUSED), ("fine", FINE), ("fine", FINE), ("aborting", ABORTING)]
        + [("aborting", ABORTING), ("fine", FINE), ("refused", REFUSED), ("fine", FINE)],
        start=5,
    )
}
