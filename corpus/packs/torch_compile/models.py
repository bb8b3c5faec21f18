"""Whole blocks of models, as Inductor cuts them into kernels: training steps and inference, prefill and decode.

Products are those of a library and launch no kernel; here they do not compute either.
"""

import torch
import torch.nn.functional as F
from irdiff_corpus import launch
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

    def rotated(self, x, cos, sin):
        a, b = x.float().chunk(2, dim=-1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)

    def forward(self, x, cos, sin, keys, values):
        batch, length, _ = x.shape
        sizes = [count * self.width for count in (self.heads, self.of_keys, self.of_keys)]
        q, k, v = (
            part.view(batch, length, -1, self.width).transpose(1, 2)
            for part in self.qkv(self.before(x)).split(sizes, dim=-1)
        )
        q, k = self.rotated(self.of_query(q), cos, sin), self.rotated(self.of_key(k), cos, sin)
        k, v = torch.cat((keys, k), dim=2), torch.cat((values, v), dim=2)
        k, v = (each.repeat_interleave(self.heads // self.of_keys, dim=1) for each in (k, v))
        scores = (q @ k.transpose(2, 3)).float() * self.width**-0.5
        allowed = torch.ones(length, k.shape[2], dtype=torch.bool).tril(k.shape[2] - length)
        mixed = scores.masked_fill(~allowed, -torch.inf).softmax(-1).to(x.dtype) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, -1))
        gate, up = self.up(self.after(x)).chunk(2, dim=-1)
        return x + self.down(self.gate(gate) * up)


class Latent(nn.Module):
    """DeepSeek V3's attention at decode, with absorbed products, and its router."""

    def __init__(self, hidden=7168, heads=16, latent=512, rotary=64, experts=256):
        super().__init__()
        self.heads, self.latent, self.rotary = heads, latent, rotary
        self.before, self.of_latent, self.after = RMSNorm(hidden), RMSNorm(latent), RMSNorm(hidden)
        self.q = nn.Linear(hidden, heads * (latent + rotary), bias=False)
        self.kv = nn.Linear(hidden, latent + rotary, bias=False)
        self.out = nn.Linear(heads * latent, hidden, bias=False)
        self.router = nn.Linear(hidden, experts, bias=False)
        self.bias = nn.Parameter(torch.zeros(experts))

    def forward(self, x, cache):
        h = self.before(x)
        q = self.q(h).view(x.shape[0], self.heads, self.latent + self.rotary)
        latent, rotary = self.kv(h).split([self.latent, self.rotary], dim=-1)
        keys = torch.cat((cache, torch.cat((self.of_latent(latent), rotary), dim=-1)[:, None]), dim=1)
        scores = (q @ keys.transpose(1, 2)).float() * 192**-0.5
        mixed = scores.softmax(-1).to(x.dtype) @ keys[..., : self.latent]
        x = x + self.out(mixed.flatten(1))
        gates = self.router(self.after(x)).float().sigmoid()
        groups = (gates + self.bias).view(x.shape[0], 8, -1).topk(2, dim=-1).values.sum(-1)
        masked = torch.zeros_like(groups).scatter(1, groups.topk(4, dim=-1).indices, 1).repeat_interleave(32, dim=1)
        chosen = ((gates + self.bias) * masked).topk(8, dim=-1).indices
        weights = gates.gather(1, chosen)
        return x, chosen, 2.5 * weights / weights.sum(-1, keepdim=True)


class Mamba2(nn.Module):
    """One step of Mamba 2 and its gated norm."""

    def forward(self, x, z, state, dt, a, b, c, d, weight):
        step = F.softplus(dt)
        state = state * (step * a).exp()[..., None, None] + (step[..., None] * x)[..., None] * b[:, None, None]
        y = ((state * c[:, None, None]).sum(-1) + d[:, None] * x).flatten(1) * F.silu(z)
        return F.rms_norm(y, y.shape[1:], weight), state


class Residual(nn.Module):
    """ResNet's bottleneck."""

    def __init__(self, channels):
        super().__init__()
        inner = channels // 4
        self.convolutions = nn.ModuleList(
            nn.Conv2d(*sizes, padding=sizes[2] // 2, bias=False)
            for sizes in ((channels, inner, 1), (inner, inner, 3), (inner, channels, 1))
        )
        self.norms = nn.ModuleList(nn.BatchNorm2d(count) for count in (inner, inner, channels))

    def forward(self, x):
        y = x
        for place, (convolution, norm) in enumerate(zip(self.convolutions, self.norms)):
            y = norm(convolution(y))
            y = F.relu(y) if place < 2 else F.relu(x + y)
        return y


class Diffusion(nn.Module):
    """A residual block of a diffusion model's U-Net with its time embedding."""

    def __init__(self, channels):
        super().__init__()
        self.norms = nn.ModuleList(nn.GroupNorm(32, channels) for _ in range(2))
        self.convolutions = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(2))
        self.time = nn.Linear(1280, channels)

    def forward(self, x, time):
        y = self.convolutions[0](F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        return x + self.convolutions[1](F.silu(self.norms[1](y)))


class Modulated(nn.Module):
    """A block of a diffusion transformer: the time shifts, scales and gates."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.time, self.qkv, self.out = nn.Linear(hidden, 6 * hidden), nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def forward(self, x, time):
        shift, scale, gate, *rest = self.time(F.silu(time))[:, None].chunk(6, dim=-1)
        y = F.layer_norm(x, x.shape[-1:]) * (1 + scale) + shift
        q, k, v = self.qkv(y).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        mixed = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5).softmax(-1) @ v
        x = x + gate * self.out(mixed.transpose(1, 2).flatten(2))
        y = F.layer_norm(x, x.shape[-1:]) * (1 + rest[1]) + rest[0]
        return x + rest[2] * self.down(F.gelu(self.up(y), approximate="tanh"))


def normal(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype)


def run(module, *inputs, trains=False, dtype=torch.bfloat16):
    torch._dynamo.reset()
    module = module.to(dtype).requires_grad_(trains)
    result = torch.compile(module)(*inputs)
    if trains:
        result.backward(torch.ones_like(result))


def decoder(model, batch, new, cached, trains=False):
    _, _, of_keys, width, *_ = DECODERS[model]
    angles = [normal(new, width // 2, dtype=torch.float32) for _ in range(2)]
    cache = [normal(batch, of_keys, cached, width) for _ in range(2)]
    with torch.device("meta"):
        module = Decoder(*DECODERS[model])
    run(module.to_empty(device="cpu"), normal(batch, new, DECODERS[model][0]), *angles, *cache, trains=trains)


def latent(batch, cached):
    run(Latent(), normal(batch, 7168), normal(batch, cached, 576))


def mamba(batch, heads, width, states):
    f32 = torch.float32
    x, z = normal(batch, heads, width), normal(batch, heads * width)
    b, c = (normal(batch, states) for _ in range(2))
    dt, a, d = normal(batch, heads), normal(heads, dtype=f32), normal(heads, dtype=f32)
    state = normal(batch, heads, width, states, dtype=f32)
    run(Mamba2(), x, z, state, dt, a, b, c, d, normal(heads * width))


def image(module, *inputs, trains):
    run(module, *(each.requires_grad_(trains) for each in inputs), trains=trains)


def step(name, **options):
    """An optimizer's step over the weights of a small layer, all at once."""
    torch._dynamo.reset()
    weights = [torch.zeros(shape).requires_grad_() for shape in ((1024, 1024), (4096, 1024), (1024,), (50304, 64))]
    optimizer = getattr(torch.optim, name)(weights, lr=1e-3, foreach=True, **options)
    for weight in weights:
        weight.grad = torch.zeros_like(weight)
    torch.compile(optimizer.step)()


LAUNCHES = {
    f"{model}-{name}": launch(decoder, model, *sizes, **options)
    for model in DECODERS
    for name, sizes, options in [
        ("train-512", (1, 512, 0), {"trains": True}),
        ("prefill-1024", (1, 1024, 0), {}),
        ("decode-16-2047", (16, 1, 2047), {}),
    ]
} | {
    "deepseek-v3-decode-1": launch(latent, 1, 1023),
    "deepseek-v3-decode-64": launch(latent, 64, 1023),
    "mamba2-2.7b-decode-16": launch(mamba, 16, 80, 64, 128),
    "zamba2-7b-decode-1": launch(mamba, 1, 112, 64, 64),
    **{
        f"{name}-{'train' if trains else 'infer'}": launch(image, make(), *shapes, trains=trains)
        for name, make, shapes in [
            ("resnet50-256", lambda: Residual(256), [normal(8, 256, 56, 56)]),
            ("resnet50-1024", lambda: Residual(1024), [normal(8, 1024, 14, 14)]),
            ("sdxl-320", lambda: Diffusion(320), [normal(2, 320, 64, 64), normal(2, 1280)]),
            ("sdxl-1280", lambda: Diffusion(1280), [normal(2, 1280, 16, 16), normal(2, 1280)]),
            ("dit-xl-2", lambda: Modulated(1152, 16), [normal(2, 256, 1152), normal(2, 1152)]),
        ]
        for trains in (False, True)
    },
    "adamw": launch(step, "AdamW", weight_decay=0.1),
    "adam-amsgrad": launch(step, "Adam", amsgrad=True),
    "sgd-momentum": launch(step, "SGD", momentum=0.9, nesterov=True),
    "rmsprop": launch(step, "RMSprop", centered=True),
}
