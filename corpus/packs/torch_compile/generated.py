"""Kernels that Inductor writes for parts of models: pointwise, reductions, their backward."""

import torch
import torch.nn.functional as F
from _references import rotated as rotary
from _tensors import normal
from irdiff_corpus import launch, trained


def train(function, *inputs, of_first=False):
    """Forward and backward; `of_first`: no input but the first has a gradient."""
    torch._dynamo.reset()
    compiled = torch.compile(function)

    def call(first, *rest):
        return compiled(first, *(value.detach() if of_first else value for value in rest))

    trained(call, function, *inputs)


def layer_norm_gelu(x, weight, bias):
    return F.gelu(F.layer_norm(x, x.shape[-1:], weight, bias))


def rms_norm_residual(x, residual, weight):
    y = (x + residual).float()
    return (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * weight


def swiglu(x):
    gate, up = x.chunk(2, dim=-1)
    return F.silu(gate) * up


def softmax_scaled(x):
    return torch.softmax(x * 0.125, dim=-1)


def cross_entropy(logits, labels):
    return F.cross_entropy(logits.float(), labels)


def embedding_norm(index, table, weight):
    return F.rms_norm(F.embedding(index, table), table.shape[-1:], weight)


def batch_norm_relu(x, weight, bias):
    return F.relu(F.batch_norm(x, None, None, weight, bias, training=True))


LAUNCHES = {
    "layer-norm-gelu-1024": launch(train, layer_norm_gelu, normal(2048, 1024), normal(1024), normal(1024)),
    "rms-norm-residual-4096": launch(
        train, rms_norm_residual, normal(1024, 4096), normal(1024, 4096), normal(4096), tier="gate"
    ),
    "swiglu-14336": launch(train, swiglu, normal(512, 28672)),
    "softmax-2048": launch(train, softmax_scaled, normal(512, 2048), tier="gate"),
    "cross-entropy-32000": launch(train, cross_entropy, normal(128, 32000), torch.randint(32000, (128,))),
    "rotary-128": launch(
        train, rotary, normal(2, 32, 512, 128), *(normal(512, 64, dtype=torch.float32) for _ in range(2)), of_first=True
    ),
    "embedding-norm-2048": launch(train, embedding_norm, torch.randint(32000, (4, 256)), normal(32000, 2048), normal(2048)),
    "batch-norm-relu-64": launch(
        train, batch_norm_relu, normal(8, 64, 56, 56), normal(64, dtype=torch.float32), normal(64, dtype=torch.float32)
    ),
}
