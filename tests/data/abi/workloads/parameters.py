# ruff: noqa
"""Small kernels whose entries show every way in which Triton passes arguments."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor


@triton.jit
def mixed(x_ptr, skipped, one, n, wide, flag, scale, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
    if flag:
        x = x * scale
    tl.store(out_ptr + offsets * one, x, mask=offsets < tl.minimum(n, wide))


@triton.jit
def copy(in_desc, out_desc, row, BLOCK: tl.constexpr):
    out_desc.store([row, tl.program_id(0) * BLOCK], in_desc.load([row, tl.program_id(0) * BLOCK]))


@triton.jit
def copy_on_device(in_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(in_ptr, shape=[m, n], strides=[n, 1], block_shape=[16, BLOCK])
    target = tl.make_tensor_descriptor(out_ptr, shape=[m, n], strides=[n, 1], block_shape=[16, BLOCK])
    target.store([0, tl.program_id(0) * BLOCK], source.load([0, tl.program_id(0) * BLOCK]))


def run_mixed(x, **options):
    out = empty(x.shape, "fp32")
    mixed[(triton.cdiv(x.numel(), 128),)](
        x,
        None,
        1,
        x.numel(),
        1 << 40,
        True,
        0.5,
        out,
        BLOCK=128,
        **options,
    )
    return out


def run_copy(x):
    from triton.tools.tensor_descriptor import TensorDescriptor

    out = empty(x.shape, "fp16")
    copy[(2,)](
        TensorDescriptor(x, x.shape, [x.shape[1], 1], [16, 64]),
        TensorDescriptor(out, out.shape, [out.shape[1], 1], [16, 64]),
        16,
        BLOCK=64,
    )
    return out


def run_copy_on_device(x):
    out = empty(x.shape, "fp16")
    copy_on_device[(2,)](x, out, x.shape[0], x.shape[1], BLOCK=64)
    return out


LAUNCHES = {
    "mixed": launch(run_mixed, tensor((1000,), "fp32")),
    "cluster": launch(run_mixed, tensor((1000,), "fp32"), targets="sm_*", since="3.3.0", num_ctas=2),
    "descriptor": launch(run_copy, tensor((32, 128), "fp16"), since="3.4.0"),
    "device-descriptor": launch(run_copy_on_device, tensor((32, 128), "fp16"), since="3.4.0"),
}
