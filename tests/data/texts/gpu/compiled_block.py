"""A block with a hand-written SwiGLU, and an autotuned kernel before a softmax, in torch.compile."""

import torch
import triton
import triton.language as tl


@triton.jit
def swiglu_forward(gate, up, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(gate + at, mask=at < n)
    tl.store(out + at, x * tl.sigmoid(x) * tl.load(up + at, mask=at < n), mask=at < n)


@triton.jit
def swiglu_backward(grad, gate, up, to_gate, to_up, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    g, x = tl.load(grad + at, mask=at < n), tl.load(gate + at, mask=at < n)
    u = tl.load(up + at, mask=at < n)
    s = tl.sigmoid(x)
    tl.store(to_up + at, g * x * s, mask=at < n)
    tl.store(to_gate + at, g * u * s * (1 + x * (1 - s)), mask=at < n)


@triton.autotune([triton.Config({"BLOCK": size}) for size in (256, 512)], key=["n"])
@triton.jit
def scaled(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * 0.125, mask=at < n)


class SwiGLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, gate, up):
        ctx.save_for_backward(gate, up)
        out = torch.empty_like(gate)
        swiglu_forward[(triton.cdiv(gate.numel(), 1024),)](gate, up, out, gate.numel(), BLOCK=1024)
        return out

    @staticmethod
    def backward(ctx, grad):
        gate, up = ctx.saved_tensors
        made = torch.empty_like(gate), torch.empty_like(up)
        grid = (triton.cdiv(gate.numel(), 1024),)
        swiglu_backward[grid](grad.contiguous(), gate, up, *made, gate.numel(), BLOCK=1024)
        return made


class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.down = torch.nn.LayerNorm(512), torch.nn.Linear(1024, 512)
        self.gate, self.up = torch.nn.Linear(512, 1024), torch.nn.Linear(512, 1024)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(SwiGLU.apply(self.gate(y), self.up(y)))


@torch.compile
def attention(x):
    out = torch.empty_like(x)
    scaled[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, out, x.numel())
    return out.softmax(-1)


torch.compile(Block().cuda())(torch.randn(256, 512, device="cuda")).square().mean().backward()
attention(torch.randn(256, 2048, device="cuda"))
