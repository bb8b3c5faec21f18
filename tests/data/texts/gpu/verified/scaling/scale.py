"""Launches of torch tensors: right, wrong, without a reference, and one that faults."""

import torch
import triton
import triton.language as tl
from irdiff_corpus import checked, launch, trained

@triton.jit
def scale(x, y, n, FACTOR: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, at < n) * FACTOR, at < n)

class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return scaled(x, factor)

    @staticmethod
    def backward(ctx, flow):
        return scaled(flow.contiguous(), ctx.factor), None

def scaled(x, factor):
    y = torch.empty_like(x)
    scale[(x.numel() // 1024,)](x, y, x.numel(), factor, 1024)
    return y

def twice(factor, dtype=torch.float32):
    checked(lambda x: scaled(x, factor), lambda x: x * 2.0, torch.randn(1 << 20, dtype=dtype))

def in_place():
    def run(x):
        scale[(1024,)](x, x, x.numel(), 2.0, 1024)
        return x

    checked(run, lambda x: x * 2.0, torch.randn(1 << 20))

def with_gradient(factor):
    trained(lambda x: Scale.apply(x, factor), lambda x: x * 2.0, torch.randn(4096, 1024))

def alone():
    scaled(torch.ones(1024), 2.0)

def fault():
    scale[(1 << 20,)](torch.ones(1024), torch.ones(1024), 1 << 40, 2.0, 1024)
    torch.cuda.synchronize()

LAUNCHES = {
    "right": launch(twice, 2.0),
    "wrong": launch(twice, 2.5),
    "fault": launch(fault),
    "half": launch(twice, 2.0, torch.bfloat16),
    "in-place": launch(in_place),
    "gradient": launch(with_gradient, 2.0),
    "wrong-gradient": launch(with_gradient, 2.01),
    "alone": launch(alone),
}
