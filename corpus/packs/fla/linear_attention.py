"""Chunked linear attention with gates and delta rules, forward and backward, and its decode steps."""

import torch
import torch.nn.functional as F
from fla.ops.delta_rule import chunk_delta_rule
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.hgrn import fused_recurrent_hgrn
from fla.ops.kda import chunk_kda, fused_recurrent_kda
from fla.ops.retention import chunk_retention
from fla.ops.rwkv7 import chunk_rwkv7
from fla.ops.simple_gla import chunk_simple_gla
from irdiff_corpus import launch

TOKENS, HEADS = 512, 4


def normal(*shape, dtype=torch.bfloat16):
    return torch.zeros(shape, dtype=dtype).requires_grad_()


def qkv(dim, tokens=TOKENS):
    return [normal(1, tokens, HEADS, dim) for _ in range(3)]


def gates(*dims, tokens=TOKENS):
    return F.logsigmoid(normal(1, tokens, HEADS, *dims, dtype=torch.float32))


def beta(tokens=TOKENS):
    return normal(1, tokens, HEADS).sigmoid()


def train(result):
    out = result[0] if isinstance(result, tuple) else result
    out.backward(torch.ones_like(out))


def packed(tokens):
    """Three sequences in one batch."""
    return torch.tensor([0, 100, 300, tokens], dtype=torch.int64)


def gated_delta(dim):
    train(chunk_gated_delta_rule(*qkv(dim), gates(), beta(), use_qk_l2norm_in_kernel=True))


def gated_delta_packed(dim):
    with torch.no_grad():
        chunk_gated_delta_rule(
            *qkv(dim), gates(), beta(), use_qk_l2norm_in_kernel=True, cu_seqlens=packed(TOKENS)
        )


def gated_delta_decode(dim):
    state = torch.zeros(1, HEADS, dim, dim)
    with torch.no_grad():
        fused_recurrent_gated_delta_rule(
            *qkv(dim, 1), gates(tokens=1), beta=beta(1), initial_state=state, output_final_state=True
        )


def delta(dim):
    train(chunk_delta_rule(*qkv(dim), beta()))


def gla(dim):
    train(chunk_gla(*qkv(dim), gates(dim)))


def gla_recurrent(dim):
    train(fused_recurrent_gla(*qkv(dim), gates(dim)))


def kda(dim):
    train(chunk_kda(*qkv(dim), gates(dim), beta()))


def kda_decode(dim):
    state = torch.zeros(1, HEADS, dim, dim)
    with torch.no_grad():
        fused_recurrent_kda(
            *qkv(dim, 1), gates(dim, tokens=1), beta(1), initial_state=state, output_final_state=True
        )


def simple_gla(dim):
    train(chunk_simple_gla(*qkv(dim), gates()))


def retention(dim):
    train(chunk_retention(*qkv(dim)))


def rwkv7(dim):
    r, k, v = qkv(dim)
    a, b = normal(1, TOKENS, HEADS, dim), normal(1, TOKENS, HEADS, dim)
    train(chunk_rwkv7(r, gates(dim).bfloat16(), k, v, a, b))


def hgrn(dim):
    x, g = normal(2, TOKENS, dim), F.logsigmoid(normal(2, TOKENS, dim))
    train(fused_recurrent_hgrn(x, g))


# the library refuses Triton 3.4.0 to 3.7.0 on Hopper: wrong results of the gated backward (its issue 640)
REFUSED = {"sm_90": "3.7.1"}

LAUNCHES = {
    "gated-delta-128": launch(gated_delta, 128, configs=1, since=REFUSED, tier="gate"),
    "gated-delta-packed-128": launch(gated_delta_packed, 128, configs=1),
    "gated-delta-decode-128": launch(gated_delta_decode, 128, configs=1, tier="gate"),
    "delta-64": launch(delta, 64, configs=1),
    "gla-64": launch(gla, 64, configs=1),
    "gla-recurrent-64": launch(gla_recurrent, 64, configs=1),
    "kda-128": launch(kda, 128, configs=1),
    "kda-decode-128": launch(kda_decode, 128, configs=1),
    "simple-gla-128": launch(simple_gla, 128, configs=1, since=REFUSED),
    "retention-128": launch(retention, 128, configs=1),
    "rwkv7-64": launch(rwkv7, 64, configs=1),
    "hgrn-1024": launch(hgrn, 1024, configs=1),
}
