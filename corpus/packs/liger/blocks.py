"""Larger blocks: multi-token and neighborhood attention, fused MLP and MoE, residual mixing (mHC)."""

import torch
from irdiff_corpus import launch
from liger._calls import normal, train
from liger_kernel.ops.attn_res import LigerAttnResFunction
from liger_kernel.ops.fused_moe import LigerFusedMoEFunction
from liger_kernel.ops.fused_neighborhood_attention import LigerFusedNeighborhoodAttentionFunction
from liger_kernel.ops.mhc import LigerMHCCoeffsFunction, LigerMHCPostResFunction, LigerMHCPreFunction
from liger_kernel.ops.mlp import LigerMLPFunction
from liger_kernel.ops.multi_token_attention import LigerMultiTokenAttentionFunction


def multi_token_attention(length, sparse):
    dtype = torch.float32 if sparse else torch.bfloat16
    scores, weight = normal(1, 4, length, length, dtype=dtype), normal(4, 4, 3, 3, dtype=dtype)
    train(LigerMultiTokenAttentionFunction, scores, weight, None, 1, 1, 1, 1, sparse)


def neighborhood_attention(length, dim):
    train(LigerFusedNeighborhoodAttentionFunction, *(normal(1, 4, length, dim) for _ in range(3)))


def attention_residual(blocks, hidden):
    train(LigerAttnResFunction, normal(blocks, 2, 128, hidden), normal(hidden), normal(hidden), 1e-6)


def moe(experts, hidden, intermediate):
    tokens, k = 256, 2
    x, up = normal(tokens, hidden), normal(experts, 2 * intermediate, hidden)
    index = torch.arange(tokens * k, dtype=torch.int32).reshape(tokens, k) % experts
    weights = normal(tokens, k, dtype=torch.float32)
    train(LigerFusedMoEFunction, x, up, normal(experts, hidden, intermediate), index, weights)


def mlp(hidden, intermediate):
    x = normal(1, 512, hidden)
    gate, up = normal(intermediate, hidden), normal(intermediate, hidden)
    train(LigerMLPFunction, x, gate, up, normal(hidden, intermediate))


def mhc_coefficients(streams, width):
    width_out = streams * streams + 2 * streams
    phi = normal(streams * width, width_out)
    bias, alphas = normal(width_out, dtype=torch.float32), [normal(1, dtype=torch.float32)[0] for _ in range(3)]
    train(LigerMHCCoeffsFunction, normal(256, streams, width), phi, bias, *alphas, False, 20, 1e-6, 0.0, 1e-6, 2.0)


def mhc_pre(streams, width):
    train(LigerMHCPreFunction, normal(256, streams, width), normal(256, streams, dtype=torch.float32))


def mhc_post(streams, width):
    x, f = normal(256, streams, width), normal(256, width)
    post, residual = normal(256, streams, dtype=torch.float32), normal(256, streams, streams, dtype=torch.float32)
    train(LigerMHCPostResFunction, x, f, post, residual)


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
