"""A layer of language models at decode, as Inductor cuts it into kernels. Products are those of a library: they launch
no kernel, and without a GPU they do not compute either.
"""

import copy

import torch
import torch.nn.functional as F
from _references import rotated
from _tensors import is_captured, normal
from irdiff_corpus import checked, launch
from torch import nn
from torch._inductor import kernel as _  # noqa: F401
from torch._inductor.select_algorithm import extern_kernels

DECODERS = {  # hidden, heads, heads of keys, elements of a head, intermediate, what stands around the products
    "llama3-8b": (4096, 32, 8, 128, 14336, F.silu, False),
    "llama3-70b-tp8": (8192, 8, 1, 128, 3584, F.silu, False),
    "qwen3-4b": (2560, 32, 8, 128, 9728, F.silu, True),
    "qwen3-32b-tp2": (5120, 32, 4, 128, 12800, F.silu, True),
    "mistral-7b": (4096, 32, 8, 128, 14336, F.silu, False),
    "gemma3-4b": (2560, 8, 4, 256, 10240, F.gelu, True),
    "llama4-scout-tp4": (5120, 10, 2, 128, 4096, F.silu, True),
}

if is_captured():
    for product in ("mm", "bmm", "addmm", "baddbmm"):
        setattr(extern_kernels, product, lambda *_, out, **__: out)


class RMSNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * self.weight


class Decoder(nn.Module):
    """A layer of a language model: rotary attention over a cache, gated MLP."""

    def __init__(self, hidden, heads, of_keys, width, intermediate, gate, norms_heads):
        super().__init__()
        self.heads, self.of_keys, self.width, self.gate = heads, of_keys, width, gate
        self.before, self.after = RMSNorm(hidden), RMSNorm(hidden)
        self.of_query, self.of_key = (RMSNorm(width) if norms_heads else nn.Identity() for _ in range(2))
        self.qkv = nn.Linear(hidden, (heads + 2 * of_keys) * width, bias=False)
        self.out = nn.Linear(heads * width, hidden, bias=False)
        self.up = nn.Linear(hidden, 2 * intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)

    def forward(self, x, cos, sin, keys, values):
        batch, length, _ = x.shape
        sizes = [count * self.width for count in (self.heads, self.of_keys, self.of_keys)]
        q, k, v = (
            part.view(batch, length, -1, self.width).transpose(1, 2)
            for part in self.qkv(self.before(x)).split(sizes, dim=-1)
        )
        q, k = (rotated(each.float(), cos, sin).to(x.dtype) for each in (self.of_query(q), self.of_key(k)))
        k, v = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
        k, v = (each.repeat_interleave(self.heads // self.of_keys, dim=1) for each in (k, v))
        scores = (q @ k.transpose(2, 3)).float() * self.width**-0.5
        allowed = torch.ones(length, k.shape[2], dtype=torch.bool, device=x.device).tril(k.shape[2] - length)
        mixed = scores.masked_fill(~allowed, -torch.inf).softmax(-1).to(x.dtype) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.up(self.after(x)).chunk(2, dim=-1)
        return x + self.down(self.gate(gate) * up)


def decode(model, batch, cached):
    hidden, _, of_keys, width, *_ = DECODERS[model]
    angles = [normal(1, width // 2, dtype=torch.float32) for _ in range(2)]
    cache = [normal(batch, of_keys, cached, width) for _ in range(2)]
    torch._dynamo.reset()
    with torch.device("meta"):
        module = Decoder(*DECODERS[model])
    weights = {
        name: normal(*value.shape, scale=value.shape[-1] ** -0.5 if value.dim() > 1 else 1.0)
        for name, value in module.state_dict().items()
    }
    module.load_state_dict(weights, assign=True)
    module.requires_grad_(False)
    compiled, wide = torch.compile(module), lambda *inputs: copy.deepcopy(module).float()(*inputs)
    checked(compiled, wide, normal(batch, 1, hidden), *angles, *cache)


LAUNCHES = {f"{model}-decode-16-2047": launch(decode, model, 16, 2047) for model in DECODERS}
