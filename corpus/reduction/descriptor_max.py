"""The largest value of each column of a tile that a tensor descriptor loads."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def descriptor_max_kernel(desc, out_ptr, n_cols, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    row, col = tl.program_id(0), tl.program_id(1) * BLOCK_N
    x = desc.load([row * BLOCK_M, col])
    tl.store(out_ptr + row * n_cols + col + tl.arange(0, BLOCK_N), tl.max(x, axis=0))


def descriptor_max(x, rows, columns):
    m, n = x.shape
    out = empty((m // rows, n), x.dtype)
    desc = TensorDescriptor(x, x.shape, x.stride(), [rows, columns])
    descriptor_max_kernel[(m // rows, n // columns)](desc, out, n, rows, columns, num_warps=4)
    return out


def reference(x, rows, columns):
    return x.reshape(-1, rows, x.shape[1]).amax(1)


LAUNCHES = {
    f"{dtype}-{rows}x{columns}": launch(
        descriptor_max, tensor((8192, 8192), dtype), rows, columns, targets=("sm_9*", "sm_1*"), since="3.4.0",
        reference=reference, tier="extended",
    )
    for dtype, rows, columns in [("bf16", 16, 128), ("bf16", 32, 128), ("bf16", 64, 128), ("fp32", 32, 128)]
}
