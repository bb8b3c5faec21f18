import triton
from irdiff_corpus import empty, launch, tensor
from kernels.{name} import kernel


def run(x):
    out = empty(x.shape, x.dtype)
    kernel[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out


LAUNCHES = {{label: launch(run, tensor((4096,), label)) for label in {labels}}}
