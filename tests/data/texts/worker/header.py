import triton
from irdiff_corpus import empty, launch, launch_ir, program, tensor, values


@triton.jit
def scale(x, out, n, BLOCK):
    # what it does
    pass


@triton.jit
def refused(x):
    pass


X, OUT = tensor((64,), "fp32"), empty((64,), "fp32")
ARGUMENTS = X, OUT, 64
