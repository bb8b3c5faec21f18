"""Larger blocks: multi-token and neighborhood attention, fused MLP and MoE, residual mixing (mHC)."""

import torch
import torch.nn.functional as F
from _references import sparsemax, swiglu_experts
from _tensors import normal
from irdiff_corpus import launch, trained
from liger_kernel.ops.attn_res import LigerAttnResFunction
from liger_kernel.ops.fused_moe import LigerFusedMoEFunction
from liger_kernel.ops.fused_neighborhood_attention import LigerFusedNeighborhoodAttentionFunction
from liger_kernel.ops.mhc import LigerMHCCoeffsFunction, LigerMHCPostResFunction, LigerMHCPreFunction
from liger_kernel.ops.mlp import LigerMLPFunction
from liger_kernel.ops.multi_token_attention import LigerMultiTokenAttentionFunction


def multi_token_attention(length, sparse):
    def reference(scores, weight):
        later = torch.ones(length, length, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -1e9)
        shares = sparsemax(scores) if sparse else scores.softmax(-1)
        return F.conv2d(shares, weight, padding=1).masked_fill(later, 0)

    dtype = torch.float32 if sparse else torch.bfloat16
    inputs = normal(1, 4, length, length, dtype=dtype), normal(4, 4, 3, 3, dtype=dtype)
    trained(lambda *x: LigerMultiTokenAttentionFunction.apply(*x, None, 1, 1, 1, 1, sparse), reference, *inputs)


def neighborhood_attention(length, dim):
    def reference(*qkv):
        near = torch.ones(length, length, dtype=torch.bool).tril(3).triu(-3)
        return F.scaled_dot_product_attention(*qkv, attn_mask=near)

    trained(LigerFusedNeighborhoodAttentionFunction.apply, reference, *(normal(1, 4, length, dim) for _ in range(3)))


def attention_residual(blocks, hidden):
    def reference(x, query, weight):
        shares = (F.rms_norm(x, (hidden,), weight, 1e-6) @ query).softmax(0)
        return (shares[..., None] * x).sum(0)

    inputs = normal(blocks, 2, 128, hidden), normal(hidden, scale=hidden**-0.5), normal(hidden)
    trained(lambda *x: LigerAttnResFunction.apply(*x, 1e-6), reference, *inputs)


def moe(experts, hidden, intermediate):
    tokens, k = 256, 2
    index = torch.arange(tokens * k, dtype=torch.int32).reshape(tokens, k) % experts
    up = normal(experts, 2 * intermediate, hidden, scale=hidden**-0.5)
    down = normal(experts, hidden, intermediate, scale=intermediate**-0.5)
    inputs = normal(tokens, hidden), up, down, index, normal(tokens, k, dtype=torch.float32)
    trained(LigerFusedMoEFunction.apply, swiglu_experts, *inputs)


def mlp(hidden, intermediate):
    def reference(x, gate, up, down):
        return (F.silu(x @ gate.T) * (x @ up.T)) @ down.T

    gate, up = (normal(intermediate, hidden, scale=hidden**-0.5) for _ in range(2))
    down = normal(hidden, intermediate, scale=intermediate**-0.5)
    trained(LigerMLPFunction.apply, reference, normal(1, 512, hidden), gate, up, down)


def mhc_coefficients(streams, width):
    def reference(x, phi, bias, *alphas):
        parts = (F.rms_norm(x.flatten(1), (streams * width,), eps=1e-6) @ phi).split(sizes, -1)
        before, after, mixed = (a * part + b for a, part, b in zip(alphas, parts, bias.split(sizes)))
        mixed = mixed.unflatten(-1, (streams, streams)).softmax(-1) + 1e-6
        for step in range(39):  # columns and rows in turn
            mixed = mixed / (mixed.sum(-2 + step % 2, keepdim=True) + 1e-6)
        return before.sigmoid(), 2 * after.sigmoid(), mixed

    sizes = [streams, streams, streams * streams]
    phi = normal(streams * width, sum(sizes), scale=(streams * width) ** -0.5)
    bias, *alphas = (normal(*shape, dtype=torch.float32) for shape in ((sum(sizes),), (), (), ()))
    options = False, 20, 1e-6, 0.0, 1e-6, 2.0
    trained(lambda *x: LigerMHCCoeffsFunction.apply(*x, *options), reference, normal(256, streams, width), phi, bias, *alphas)


def mhc_pre(streams, width):
    def reference(x, weights):
        return (x * weights[..., None]).sum(1)

    trained(LigerMHCPreFunction.apply, reference, normal(256, streams, width), normal(256, streams, dtype=torch.float32))


def mhc_post(streams, width):
    def reference(x, f, post, residual):
        return post[..., None] * f[:, None] + residual @ x

    weights = (normal(256, *shape, dtype=torch.float32) for shape in ((streams,), (streams, streams)))
    trained(LigerMHCPostResFunction.apply, reference, normal(256, streams, width), normal(256, width), *weights)


LAUNCHES = {
    "multi-token-attention-128": launch(multi_token_attention, 128, False),
    "multi-token-attention-sparse-128": launch(multi_token_attention, 128, True),
    "neighborhood-attention-512-64": launch(neighborhood_attention, 512, 64),
    "attention-residual-8-1024": launch(attention_residual, 8, 1024),
    "moe-8-1024-512": launch(moe, 8, 1024, 512, configs=1),
    "mlp-1024-4096": launch(mlp, 1024, 4096, configs=1),
    "mhc-coefficients-4-1024": launch(mhc_coefficients, 4, 1024),
    "mhc-pre-4-1024": launch(mhc_pre, 4, 1024),
    "mhc-post-4-1024": launch(mhc_post, 4, 1024),
}
