"""What stands around linear attention: short convolutions, gated norms, rotary embeddings, losses."""

import torch
from fla.modules.causal_conv1d.ops import causal_conv1d
from fla.modules.fused_cross_entropy.ops import cross_entropy_loss
from fla.modules.norm.fused_norm_gate import rms_norm_gated
from fla.modules.norm.l2norm import l2norm
from fla.modules.norm.layernorm import layer_norm, rms_norm
from fla.modules.rotary.ops import rotary_embedding
from fla.ops.attn import parallel_attn
from irdiff_corpus import launch

TOKENS = 512


def normal(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype).requires_grad_()


def train(result):
    out = result[0] if isinstance(result, tuple) else result
    out.backward(torch.ones_like(out))


def convolution(dim, width):
    train(causal_conv1d(normal(2, TOKENS, dim), normal(dim, width), normal(dim), activation="silu"))


def norm(function, dim):
    train(function(normal(TOKENS, dim), normal(dim), None))


def gated_norm(dim):
    train(rms_norm_gated(normal(TOKENS, dim), normal(TOKENS, dim), normal(dim), None))


def l2(dim):
    train(l2norm(normal(1, TOKENS, 4, dim)))


def rotary(dim):
    angles = [torch.zeros(TOKENS, dim // 2, dtype=torch.bfloat16) for _ in range(2)]
    train(rotary_embedding(normal(2, TOKENS, 8, dim), *angles))


def cross_entropy(vocabulary):
    train(cross_entropy_loss(normal(64, vocabulary), torch.zeros(64, dtype=torch.int64)))


def attention(dim):
    train(parallel_attn(normal(1, TOKENS, 8, dim), normal(1, TOKENS, 2, dim), normal(1, TOKENS, 2, dim)))


LAUNCHES = {
    "short-conv-2048-4": launch(convolution, 2048, 4, configs=1, tier="gate"),
    "layer-norm-2048": launch(norm, layer_norm, 2048, configs=1),
    "rms-norm-2048": launch(norm, rms_norm, 2048, configs=1),
    "rms-norm-gated-128": launch(gated_norm, 128, configs=1, tier="gate"),
    "l2norm-128": launch(l2, 128, configs=1),
    "rotary-128": launch(rotary, 128, configs=1),
    "cross-entropy-32000": launch(cross_entropy, 32000, configs=1),
    "attention-64": launch(attention, 64, configs=1),
}
