import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def scale(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def pair(tensors, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(tensors[1] + offsets, tl.load(tensors[0] + offsets))


@triton.jit
def copy(x_desc, out_ptr):
    tile = x_desc.load([0, 0])
    offsets = tl.arange(0, 16)[:, None] * 64 + tl.arange(0, 64)[None, :]
    tl.store(out_ptr + offsets, tile)


x, out = tensor((4096,), "fp32"), empty((4096,), "fp32")
other = empty((4096,), "fp32")


def run():
BODY

LAUNCHES = {"case": launch(run)}
