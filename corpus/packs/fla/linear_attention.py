"""Chunked linear attention with gates and delta rules, forward and backward, and its decode steps."""

import torch
import torch.nn.functional as F
from _tensors import normal
from fla.ops.delta_rule import chunk_delta_rule
from fla.ops.gated_delta_rule import chunk_gated_delta_rule, fused_recurrent_gated_delta_rule
from fla.ops.gated_delta_rule.naive import naive_recurrent_gated_delta_rule
from fla.ops.generalized_delta_rule.dplr.naive import dplr_recurrence
from fla.ops.gla import chunk_gla, fused_recurrent_gla
from fla.ops.gla.naive import naive_recurrent_gla
from fla.ops.hgrn import fused_recurrent_hgrn
from fla.ops.hgrn.naive import naive_recurrent_hgrn
from fla.ops.kda import chunk_kda, fused_recurrent_kda
from fla.ops.kda.naive import naive_recurrent_kda
from fla.ops.retention import chunk_retention
from fla.ops.retention.naive import naive_retention
from fla.ops.rwkv7 import chunk_rwkv7
from fla.ops.simple_gla import chunk_simple_gla
from fla.ops.simple_gla.naive import naive_recurrent_simple_gla
from irdiff_corpus import checked, launch, trained

TOKENS, HEADS = 512, 4


def qkv(dim, tokens=TOKENS, unit=False):
    """`unit`: keys of length 1, without which a delta rule's state grows with each token."""
    q, k, v = (normal(1, tokens, HEADS, dim) for _ in range(3))
    return q, F.normalize(k, dim=-1) if unit else k, v


def gates(*dims, tokens=TOKENS):
    return F.logsigmoid(normal(1, tokens, HEADS, *dims, dtype=torch.float32))


def beta(tokens=TOKENS):
    return normal(1, tokens, HEADS).sigmoid()


def state(dim):
    return normal(1, HEADS, dim, dim, dtype=torch.float32)


def first(function, **options):
    """Without its final state, which is none."""
    return lambda *inputs: function(*inputs, **options)[0]


def naive_gated_delta(q, k, v, g, beta, **options):
    return naive_recurrent_gated_delta_rule(F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, beta, g, **options)


def gated_delta(dim):
    function = first(chunk_gated_delta_rule, use_qk_l2norm_in_kernel=True)
    trained(function, first(naive_gated_delta), *qkv(dim), gates(), beta())


def gated_delta_packed(dim):
    """Three sequences in one batch."""
    sizes = (100, 200, TOKENS - 300)
    starts = torch.tensor([0, 100, 300, TOKENS], dtype=torch.int64)

    def naive(*inputs):
        parts = zip(*(value.split(sizes, 1) for value in inputs))
        return torch.cat([naive_gated_delta(*part)[0] for part in parts], 1)

    function = first(chunk_gated_delta_rule, use_qk_l2norm_in_kernel=True, cu_seqlens=starts)
    checked(function, naive, *qkv(dim), gates(), beta())


def gated_delta_decode(dim):
    def function(q, k, v, g, beta, state):
        return fused_recurrent_gated_delta_rule(q, k, v, g, beta=beta, initial_state=state, output_final_state=True)

    def naive(*inputs):
        return naive_recurrent_gated_delta_rule(*inputs[:3], *inputs[4:2:-1], None, inputs[5], True)

    checked(function, naive, *qkv(dim, 1, unit=True), gates(tokens=1), beta(1), state(dim))


def delta(dim):
    def naive(q, k, v, beta):
        return naive_recurrent_gated_delta_rule(q, k, v, beta, torch.zeros_like(beta))[0]

    trained(first(chunk_delta_rule), naive, *qkv(dim, unit=True), beta())


def gla(dim):
    trained(first(chunk_gla), first(naive_recurrent_gla), *qkv(dim), gates(dim))


def gla_recurrent(dim):
    trained(first(fused_recurrent_gla), first(naive_recurrent_gla), *qkv(dim), gates(dim))


def kda(dim):
    trained(first(chunk_kda), first(naive_recurrent_kda), *qkv(dim, unit=True), gates(dim), beta())


def kda_decode(dim):
    function, naive = (
        lambda *inputs, call=call: call(*inputs[:-1], initial_state=inputs[-1], output_final_state=True)
        for call in (fused_recurrent_kda, naive_recurrent_kda)
    )
    checked(function, naive, *qkv(dim, 1, unit=True), gates(dim, tokens=1), beta(1), state(dim))


def simple_gla(dim):
    trained(first(chunk_simple_gla), first(naive_recurrent_simple_gla), *qkv(dim), gates())


def retention(dim):
    def naive(*inputs):
        return naive_retention(*(value.transpose(1, 2) for value in inputs)).transpose(1, 2)

    trained(first(chunk_retention), naive, *qkv(dim))


def rwkv7(dim):
    def naive(r, w, k, v, a, b):
        r, k, v, a, b, w = (value.transpose(1, 2) for value in (r * dim**0.5, k, v, a, b, w))
        return dplr_recurrence(r, k, v, a, b, w)[0].transpose(1, 2)

    r, k, v = qkv(dim)
    removed = F.normalize(normal(1, TOKENS, HEADS, dim), dim=-1)
    trained(first(chunk_rwkv7), naive, r, gates(dim).bfloat16(), k, v, -removed, removed / 2)


def hgrn(dim):
    x, g = normal(2, TOKENS, dim), F.logsigmoid(normal(2, TOKENS, dim))
    trained(first(fused_recurrent_hgrn), first(naive_recurrent_hgrn), x, g)


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
