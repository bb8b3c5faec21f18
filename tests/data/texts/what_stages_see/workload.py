import os
import triton
from irdiff_corpus import empty, launch, tensor
from triton.backends.nvidia import compiler
from MODULE import kernel


def plain(x, y, BLOCK=1024, **options):
    kernel[(4,)](x, y, empty(x.shape, x.dtype), x.numel(), BLOCK=BLOCK, **options)


RUN

X = tensor((4096,), "fp32"), tensor((4096,), "fp32")
LAUNCHES = {"a": launch(run, *X)}
