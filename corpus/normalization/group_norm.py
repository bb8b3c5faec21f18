"""Group norm of images: statistics over the channels of a group and all pixels, then scale and shift by channel."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def group_norm_kernel(x_ptr, y_ptr, w_ptr, b_ptr, pixels, channels, groups, eps, PER_GROUP: tl.constexpr, BLOCK: tl.constexpr):
    image = tl.program_id(0)
    group = tl.program_id(1)
    base = (image * channels + group * PER_GROUP).to(tl.int64) * pixels
    size = PER_GROUP * pixels
    total = tl.zeros((BLOCK,), tl.float32)
    square = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, size, BLOCK):
        where = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + base + where, mask=where < size, other=0.0).to(tl.float32)
        total += x
        square += x * x
    mean = tl.sum(total, axis=0) / size
    rstd = tl.rsqrt(tl.sum(square, axis=0) / size - mean * mean + eps)
    for channel in range(PER_GROUP):
        w = tl.load(w_ptr + group * PER_GROUP + channel).to(tl.float32)
        b = tl.load(b_ptr + group * PER_GROUP + channel).to(tl.float32)
        for start in range(0, pixels, BLOCK):
            pixel = start + tl.arange(0, BLOCK)
            where = base + channel * pixels + pixel
            x = tl.load(x_ptr + where, mask=pixel < pixels, other=0.0).to(tl.float32)
            y = (x - mean) * rstd * w + b
            tl.store(y_ptr + where, y.to(y_ptr.dtype.element_ty), mask=pixel < pixels)


def group_norm(x, weight, bias, groups, block=1024, warps=4):
    images, channels, pixels = x.shape
    y = empty(x.shape, x.dtype)
    group_norm_kernel[(images, groups)](
        x, y, weight, bias, pixels, channels, groups, 1e-5, PER_GROUP=channels // groups, BLOCK=block, num_warps=warps
    )
    return y


def reference(x, weight, bias, groups, **_):
    parts = x.float().unflatten(1, (groups, -1))
    mean = parts.mean((2, 3), keepdim=True)
    rstd = ((parts - mean).square().mean((2, 3), keepdim=True) + 1e-5).rsqrt()
    return ((parts - mean) * rstd).flatten(1, 2) * weight.float()[:, None] + bias.float()[:, None]


def row(dtype, images, channels, pixels, groups, size, **facts):
    return launch(
        group_norm, tensor((images, channels, pixels), dtype), tensor((channels,), dtype), tensor((channels,), dtype), groups,
        flops=8 * images * channels * pixels, min_bytes=2 * images * channels * pixels * size,
        reference=reference, rtol=2e-2, atol=2e-2, **facts,
    )


LAUNCHES = {
    "fp16-320x4096": row("fp16", 8, 320, 4096, 32, 2),
    "fp32-512x1000": row("fp32", 8, 512, 1000, 32, 4, warps=8, block=2048),
}
