import triton
import triton.language as tl


@triton.jit
def square(x, o, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(o + i, v * v, mask=i < n)


class Array:
    dtype, shape = "fp32", (1 << 20,)

    def data_ptr(self):
        return 1 << 36

    def stride(self):
        return (1,)


square[(1024,)](Array(), Array(), 1 << 20, BLOCK=1024)
