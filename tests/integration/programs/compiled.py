"""A training step whose kernels torch.compile writes."""

import torch


class Block(torch.nn.Module):
    def __init__(self, size: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(size)
        self.linear = torch.nn.Linear(size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.nn.functional.gelu(self.linear(self.norm(x)))


block = torch.compile(Block(1024).cuda())
block(torch.randn(64, 1024, device="cuda")).sum().backward()
