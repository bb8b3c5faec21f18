"""Kernels in Helion's language at shapes of models. What is compiled is the Triton that Helion generates, for static shapes
and a few configs that its tuner would try, as pointers and as tensor descriptors.

Helion generates from tensors on the CPU: its tracing takes no answer of irdiff's. The name that it gives to one of Triton's
functions, for older torch, is taken back.
"""

import math

import torch
import torch.nn.functional as F
from irdiff_corpus import checked, launch
from torch.overrides import _pop_mode_temporarily
from triton.backends.compiler import BaseBackend

triton_s_own = set(vars(BaseBackend))
import helion
import helion.language as hl
from _models import MODELS
from _tensors import normal

for name in set(vars(BaseBackend)) - triton_s_own:
    delattr(BaseBackend, name)


def softmax(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile, :] = torch.softmax(x[tile, :], dim=1)
    return out


def rms_norm(x, weight):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        row = x[tile, :].to(torch.float32)
        scale = torch.rsqrt((row * row).mean(dim=-1) + 1e-6)
        out[tile, :] = (row * scale[:, None] * weight[:].to(torch.float32)).to(out.dtype)
    return out


def layer_norm(x, weight):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        row = x[tile, :].to(torch.float32)
        centered = row - row.mean(dim=-1)[:, None]
        scale = torch.rsqrt((centered * centered).mean(dim=-1) + 1e-5)
        out[tile, :] = (centered * scale[:, None] * weight[:].to(torch.float32)).to(out.dtype)
    return out


def swiglu(gate, up):
    out = torch.empty_like(gate)
    for tile in hl.tile(gate.size()):
        wide = gate[tile].to(torch.float32)
        out[tile] = (wide * torch.sigmoid(wide)).to(out.dtype) * up[tile]
    return out


def matmul(x, y):
    m, k = x.size()
    n = y.size(1)
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for tile_m, tile_n in hl.tile([m, n]):
        acc = hl.zeros([tile_m, tile_n], dtype=torch.float32)
        for tile_k in hl.tile(k):
            acc = torch.addmm(acc, x[tile_m, tile_k], y[tile_k, tile_n])
        out[tile_m, tile_n] = acc.to(x.dtype)
    return out


def attention(q, k, v):
    length, width = q.size(1), hl.specialize(q.size(2))
    out = torch.empty_like(q)
    scale = 1.4426950408889634 / math.sqrt(width)
    for tile_b, tile_m in hl.tile([q.size(0), length]):
        largest = hl.full([tile_b, tile_m], float("-inf"), dtype=torch.float32)
        total = torch.full_like(largest, 1.0)
        acc = hl.zeros([tile_b, tile_m, width], dtype=torch.float32)
        queries = q[tile_b, tile_m, :]
        for tile_n in hl.tile(length):
            scores = torch.bmm(queries, k[tile_b, tile_n, :].transpose(1, 2))
            grown = torch.maximum(largest, torch.amax(scores, -1) * scale)
            shares = torch.exp2(scores * scale - grown[:, :, None])
            shrink = torch.exp2(largest - grown)
            total = total * shrink + torch.sum(shares, -1)
            acc = torch.baddbmm(acc * shrink[:, :, None], shares.to(v.dtype), v[tile_b, tile_n, :])
            largest = grown
        out[tile_b, tile_m, :] = (acc / total[:, :, None]).to(out.dtype)
    return out


REFERENCES = {
    softmax: lambda x: x.softmax(-1),
    rms_norm: lambda x, weight: F.rms_norm(x, weight.shape, weight, 1e-6),
    layer_norm: lambda x, weight: F.layer_norm(x, weight.shape, weight),
    swiglu: lambda gate, up: F.silu(gate) * up,
    matmul: torch.matmul,
    attention: F.scaled_dot_product_attention,
}


def run(function, config, dtype, *shapes):
    inputs = [normal(*shape, dtype=dtype) for shape in shapes]
    kernel = helion.kernel(function, config=config, static_shapes=True)
    with _pop_mode_temporarily():
        compiled = kernel.bind(tuple(inputs)).compile_config(config)
    checked(compiled, REFERENCES[function], *inputs)


def configs(*rows):
    return [helion.Config(block_sizes=sizes, num_warps=warps, **more) for sizes, warps, more in rows]


DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
DESCRIPTORS = {"indexing": "tensor_descriptor"}
ROWS = configs(([1], 4, {}), ([1], 8, {"reduction_loops": [1024]}), ([4], 8, {}))
FLAT = configs(([1, 1024], 4, {}), ([32, 64], 4, {}))
TILES = configs(
    ([128, 128, 64], 4, {"num_stages": 3}),
    ([64, 128, 32], 4, {"num_stages": 4, "l2_groupings": [8]}),
    ([128, 256, 64], 8, {"num_stages": 3, **DESCRIPTORS}),
    ([64, 64, 64], 4, {"num_stages": 2, "pid_type": "persistent_interleaved"}),
)
HEADS = configs(([1, 128, 64], 4, {"num_stages": 2}), ([1, 64, 64], 4, {"num_stages": 3, **DESCRIPTORS}))
CALLS = [
    (function, model, found, shapes)
    for model, m in MODELS.items()
    for function, found, shapes in [
        (rms_norm, ROWS, [(1024, m.hidden), (m.hidden,)]),
        (layer_norm, ROWS[:1], [(1024, m.hidden), (m.hidden,)]),
        (swiglu, FLAT, [(1024, m.intermediate)] * 2),
        (matmul, TILES, [(1024, m.hidden), (m.hidden, (m.heads + 2 * m.of_keys) * m.width)]),
    ]
]
CALLS += [(attention, f"{width}-{length}", HEADS, [(32, length, width)] * 3) for width in (64, 128) for length in (512, 2000)]
CALLS += [(softmax, str(width), ROWS, [(1024, width)]) for width in (256, 1000, 4096, 16384)]
LAUNCHES = {
    f"{function.__name__}-{name}-{number}-{word}": launch(run, function, config, DTYPES[word], *shapes)
    for function, name, found, shapes in CALLS
    for number, config in enumerate(found)
    for word in (("bf16", "fp16") if function in (matmul, attention) else DTYPES)
}
