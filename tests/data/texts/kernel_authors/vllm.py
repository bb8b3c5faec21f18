"""A benchmark that checks what it measures."""

import sys

import torch
from vllm.ops.gate import gate
from vllm.ops.norm import norm

for size in (1024,) if "--small" in sys.argv else (1024, 8192):
    x = torch.randn(64, size, device="cuda", dtype=torch.bfloat16)
    gated = gate(x, x + 1, torch.empty_like(x))
    torch.testing.assert_close(gated, torch.nn.functional.silu(x) * (x + 1))
    norm(gated, x)
