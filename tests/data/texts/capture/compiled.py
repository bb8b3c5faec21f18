"""A training step whose kernels torch.compile writes, but for one that it passes a float to."""

import torch
import triton
import triton.language as tl


@triton.jit
def scaled(x, out, factor, n: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * factor, mask=at < n)


@triton.jit
def shifted(x, by, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + tl.load(by))


@torch.compile(fullgraph=True)
def halved(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    assert torch.cuda.get_device_properties(0).multi_processor_count
    scaled[(1,)](x, out, 0.5, x.numel(), BLOCK=64)
    return out


@torch.compile
def moved(x: torch.Tensor, by: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    shifted[(1,)](x, by, out, BLOCK=64)
    return out


class Block(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(size)
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.gelu(self.linear(self.norm(x)))


block = torch.compile(Block(1024).cuda())
block(torch.randn(64, 1024, device="cuda")).sum().backward()
halved(torch.randn(64, device="cuda"))
moved(torch.randn(64, device="cuda"), torch.tensor(1.0, device="cuda"))
x, count = torch.zeros(64, device="cuda"), torch.empty((), device="cuda")  # a count that a kernel would write
shifted[(int(1 / count.item()),)](x, x, torch.empty_like(x), BLOCK=64)
