"""Two kernels that settings reach in other ways: floats that may be fused in a loop, and a matrix product."""

import triton
import triton.language as tl


@triton.jit
def polynomial(x, o, n, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    total = v
    for step in range(STEPS):
        total = total * v + step
    tl.store(o + i, total, mask=i < n)


@triton.jit
def product(a, b, c, k, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        left = tl.load(a + i[:, None] * k + start + i[None, :])
        right = tl.load(b + (start + i)[:, None] * BLOCK + i[None, :])
        total = tl.dot(left, right, total)
    tl.store(c + i[:, None] * BLOCK + i[None, :], total)


class Array:
    def __init__(self, place, dtype, *shape):
        self.place, self.dtype, self.shape = place, dtype, shape

    def data_ptr(self):
        return self.place << 32

    def stride(self):
        return tuple(self.shape[1:]) + (1,)


if __name__ == "__main__":
    polynomial[(1024,)](Array(1, "fp32", 1 << 20), Array(2, "fp32", 1 << 20), 1 << 20, STEPS=8, BLOCK=1024)
    product[(1,)](Array(3, "fp16", 64, 1024), Array(4, "fp16", 1024, 64), Array(5, "fp32", 64, 64), 1024, BLOCK=64)
