"""What stands around linear attention: short convolutions, gated norms, rotary embeddings, losses."""

import torch
import torch.nn.functional as F
from _tensors import normal
from fla.modules.causal_conv1d.ops import causal_conv1d
from fla.modules.fused_cross_entropy.ops import cross_entropy_loss
from fla.modules.norm.fused_norm_gate import rms_norm_gated
from fla.modules.norm.l2norm import l2norm
from fla.modules.norm.layernorm import layer_norm, rms_norm
from fla.modules.rotary.ops import rotary_embedding, rotary_embedding_ref
from fla.ops.attn import parallel_attn
from irdiff_corpus import launch, trained

TOKENS = 512


def convolution(dim, width):
    def convolved(x, weight, bias):
        padded = F.pad(x.transpose(1, 2), (width - 1, 0))
        return F.silu(F.conv1d(padded, weight[:, None], bias, groups=dim)).transpose(1, 2)

    inputs = normal(2, TOKENS, dim), normal(dim, width), normal(dim)
    trained(lambda *inputs: causal_conv1d(*inputs, activation="silu")[0], convolved, *inputs)


def norm(function, dim):
    def reference(x, weight, _):
        return getattr(F, function.__name__)(x, (dim,), weight, eps=1e-5)

    trained(function, reference, normal(TOKENS, dim), normal(dim), None)


def gated_norm(dim):
    def reference(x, gate, weight, _):
        return F.rms_norm(x, (dim,), weight, 1e-6) * F.silu(gate)

    trained(rms_norm_gated, reference, normal(TOKENS, dim), normal(TOKENS, dim), normal(dim), None)


def l2(dim):
    trained(l2norm, lambda x: F.normalize(x, dim=-1), normal(1, TOKENS, 4, dim))


def rotary(dim):
    angles = [normal(TOKENS, dim // 2) for _ in range(2)]
    trained(rotary_embedding, rotary_embedding_ref, normal(2, TOKENS, 8, dim), *angles)


def cross_entropy(vocabulary):
    labels = torch.arange(64) * (vocabulary // 64)
    trained(
        lambda *inputs: cross_entropy_loss(*inputs)[0], lambda *inputs: F.cross_entropy(*inputs, reduction="none"),
        normal(64, vocabulary), labels,
    )


def attention(dim):
    def causal(*qkv):
        q, k, v = (value.transpose(1, 2) for value in qkv)
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True).transpose(1, 2)

    trained(parallel_attn, causal, *(normal(1, TOKENS, heads, dim) for heads in (8, 2, 2)))


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
