"""Vector addition: the smallest kernel that loads, computes and stores."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n_elements, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def add(x, y, block=1024):
    out = empty(x.shape, x.dtype)
    n = x.numel()
    add_kernel[(triton.cdiv(n, block),)](x, y, out, n, BLOCK=block)
    return out


def reference(x, y, block=1024):
    return x + y


def row(n, dtype, size, **facts):
    return launch(
        add, tensor((n,), dtype), tensor((n,), dtype),
        flops=n, min_bytes=3 * n * size, reference=reference, **facts,
    )


LAUNCHES = {
    "fp32-16m": row(1 << 24, "fp32", 4, tier="gate"),
    "fp16-16m": row(1 << 24, "fp16", 2),
    "fp32-odd": row((1 << 24) + 1, "fp32", 4),  # not divisible by 16: no vector loads across the mask
}
