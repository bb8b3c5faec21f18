import triton
import triton.language as tl
from irdiff_corpus import launch, tensor


@triton.jit
def copy(x, y, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    mask = i < 100
    tl.store(y + i, tl.load(x + i, mask=mask), mask=mask)


LAUNCHES = {"a": launch(copy[(1,)], tensor((100,), "fp32"), tensor((100,), "fp32"), 100, BLOCK=128)}
