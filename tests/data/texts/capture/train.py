"""A user's program: softmax, an autotuned matmul with an epilogue, heuristics, views of one buffer.

Needs no torch: an array is anything with `data_ptr`, `dtype`, `shape` and `stride`.
"""

import sys

import shapes
import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)


class Array:
    addresses = iter(range(1 << 32, 1 << 60, 1 << 32))

    def __init__(self, shape, dtype, strides=None, pointer=None):
        self.shape, self.dtype = shape, dtype
        self.strides = strides or (shape[1], 1)
        self.pointer = next(self.addresses) if pointer is None else pointer

    def data_ptr(self):
        return self.pointer

    def stride(self):
        return self.strides


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n_cols"])})
@triton.jit
def softmax_kernel(out, x, row_stride, n_cols, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    offsets = tl.program_id(0) * row_stride + columns
    values = tl.load(x + offsets, mask=columns < n_cols, other=-float("inf")).to(tl.float32)
    powers = tl.exp2((values - tl.max(values, axis=0)) * LOG2E)
    tl.store(out + offsets, powers / (tl.sum(powers, axis=0) + shapes.EPSILON), mask=columns < n_cols)


@triton.autotune(
    configs=[
        triton.Config({"BLOCK_M": 64, "BLOCK_N": 64}, num_warps=4, num_stages=3),
        triton.Config({"BLOCK_M": 128, "BLOCK_N": 64}, num_warps=8, num_stages=2),
    ],
    key=["k"],
)
@triton.jit
def _matmul_kernel(
    a,
    b,
    c,
    k,
    stride_am,
    stride_bk,
    stride_cm,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    act: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, 32)
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, 32):
        left = tl.load(a + rows[:, None] * stride_am + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * stride_bk + columns[None, :])
        total = tl.dot(left, right, total)
    if act is not None:
        total = act(total)
    tl.store(c + rows[:, None] * stride_cm + columns[None, :], total.to(c.dtype.element_ty))


def matmul(a, b, act=None):
    m, n, k = a.shape[0], b.shape[1], a.shape[1]
    c = Array((m, n), a.dtype)

    def grid(config):
        return (m // config["BLOCK_M"], n // config["BLOCK_N"])

    _matmul_kernel[grid](a, b, c, k, a.stride()[0], b.stride()[0], c.stride()[0], act=act)
    return c


if __name__ == "__main__":
    n_cols = int(sys.argv[1])
    x = Array((64, n_cols), "fp32")
    for _ in range(3):
        softmax_kernel[(64,)](x, x, n_cols, n_cols, num_warps=8)
    odd = Array((64, n_cols - 1), "fp32", (n_cols, 1), x.data_ptr() + 4)
    softmax_kernel[(64,)](Array(odd.shape, "fp32"), odd, n_cols, n_cols - 1)
    a, b = Array((256, 512), "fp16"), Array((512, 128), "fp16")
    matmul(a, b)
    matmul(a, b, act=shapes.leaky_relu)
    raise SystemExit("its results were not computed")
