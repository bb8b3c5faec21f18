"""Mamba 2, short convolutions, and the gated delta rule of Qwen 3 Next and Kimi: prefill and decode."""

import torch
import torch.nn.functional as F
import sglang_kernels._alone  # noqa: F401, I001
from _models import MAMBA
from _references import delta_rule, mamba_scan, mamba_step
from _tensors import normal, numbers
from irdiff_corpus import checked, launch
from sglang.kernels.ops.attention.fla.chunk import chunk_gated_delta_rule
from sglang.kernels.ops.attention.fla.fused_recurrent import (
    fused_recurrent_gated_delta_rule,
    fused_recurrent_gated_delta_rule_packed_decode,
)
from sglang.kernels.ops.attention.fla.kda import chunk_kda
from sglang.kernels.ops.mamba.causal_conv1d_triton import causal_conv1d_fn, causal_conv1d_update
from sglang.kernels.ops.mamba.triton_ops.mamba_ssm import selective_state_update
from sglang.kernels.ops.mamba.triton_ops.ssd_combined import mamba_chunk_scan_combined

DELTA = {"qwen3-next-80b": (16, 32, 128), "qwen3-next-80b-tp4": (4, 8, 128), "small-64": (8, 8, 64)}


def decays(*shape):
    return F.logsigmoid(normal(*shape, dtype=torch.float32)) / 16


def shares(*shape):
    return normal(*shape).sigmoid()


def scan(model, tokens):
    heads, width, groups, state, chunk = MAMBA[model]
    x, dt = normal(1, tokens, heads, width), normal(1, tokens, heads)
    b, c = (normal(1, tokens, groups, state) for _ in range(2))
    a, d, bias = (normal(heads, dtype=torch.float32) for _ in range(3))
    out = torch.zeros_like(x)

    def function(x, dt, a, b, c, d, bias):
        last = mamba_chunk_scan_combined(
            x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True, out=out, return_final_states=True
        )
        return out, last

    def reference(x, dt, a, b, c, d, bias):
        found = mamba_scan(x[0], F.softplus(dt[0] + bias), a, b[0], c[0], d)
        return tuple(part[None] for part in found)

    checked(function, reference, x, dt, -a.exp(), b, c, d, bias)


def step(model, batch, dtype):
    heads, width, groups, state, _ = MAMBA[model]
    x, of_head = normal(batch, heads, width), normal(heads, dtype=torch.float32)
    b, c = (normal(batch, groups, state) for _ in range(2))
    a = normal(heads, dtype=torch.float32)
    dt = normal(batch, heads)
    out = torch.zeros_like(x)

    def function(state, x, dt, a, b, c, of_head):
        of_head, dt = of_head[:, None].expand(*x.shape[1:]), dt[..., None].expand(x.shape)
        a = a[:, None, None].expand(state.shape[1:])
        selective_state_update(state, x, dt, a, b, c, of_head, dt_bias=of_head, dt_softplus=True, out=out)
        return out, state

    def reference(state, x, dt, a, b, c, of_head):
        return mamba_step(state, x, F.softplus(dt + of_head), a, b, c, of_head)

    checked(function, reference, normal(batch, heads, width, state, dtype=dtype), x, dt, -a.exp(), b, c, of_head)


def convolution(model, tokens):
    def update(x, states, weight, bias):
        return causal_conv1d_update(x, states, weight, bias, "silu", None, every), states

    def update_reference(x, states, weight, bias):
        states = torch.cat([states, x[..., None]], -1)
        return F.silu((states * weight).sum(-1) + bias), states[..., 1:]

    def whole(x, states, weight, bias):
        return causal_conv1d_fn(x, weight, bias, states, starts, [tokens // 2] * 2, every, of_state), states

    def whole_reference(x, states, weight, bias):
        halves = x.unflatten(1, (2, -1)).transpose(0, 1)
        mixed = F.conv1d(F.pad(halves, (3, 0)), weight[:, None], bias, groups=len(x))
        return F.silu(mixed).transpose(0, 1).flatten(1), torch.cat([halves[..., -3:], states[2:]])

    heads, width, groups, state, _ = MAMBA[model]
    channels = heads * width + 2 * groups * state
    weight, bias, states = normal(channels, 4), normal(channels), normal(8, 3, channels).transpose(1, 2)
    if tokens == 1:
        every = torch.arange(8, dtype=torch.int32)
        checked(update, update_reference, normal(8, channels), states, weight, bias)
        return
    starts, every, of_state = numbers(0, tokens // 2, tokens), numbers(0, 1), torch.zeros(2, dtype=torch.bool)
    checked(whole, whole_reference, normal(tokens, channels).t(), states, weight, bias)


def gated(model, tokens):
    heads, of_value, width = DELTA[model]
    q, k = (normal(1, tokens, heads, width) for _ in range(2))
    v, beta = normal(1, tokens, of_value, width), shares(1, tokens, of_value)
    g, state = decays(1, tokens, of_value), normal(4, of_value, width, width, dtype=torch.float32)
    places, starts = torch.arange(1, dtype=torch.int32), torch.tensor([0, tokens])

    def recurrent(q, k, v, g, beta, state):
        return fused_recurrent_gated_delta_rule(
            q, k, v, g, beta, initial_state=state[:1], use_qk_l2norm_in_kernel=True
        )[0]

    def chunks(q, k, v, g, beta, state):
        return chunk_gated_delta_rule(
            q, k, v, g, beta, initial_state=state, initial_state_indices=places, cu_seqlens=starts,
            use_qk_l2norm_in_kernel=True,
        )[0]

    def reference(q, k, v, g, beta, state):
        return delta_rule(q, k, v, g[..., None], beta, state[:1])[0]

    checked(recurrent if tokens <= 4 else chunks, reference, q, k, v, g, beta, state)


def packed(model, batch):
    heads, of_value, width = DELTA[model]
    f32 = torch.float32
    a, b = (normal(batch, of_value) for _ in range(2))
    mixed, of_heads = normal(batch, (2 * heads + of_value) * width), [normal(of_value, dtype=f32) for _ in range(2)]
    state, out = normal(batch, of_value, width, width, dtype=f32), normal(batch, 1, of_value, width)
    every = torch.arange(batch, dtype=torch.int32)

    def function(mixed, a, b, logarithm, bias, state):
        return fused_recurrent_gated_delta_rule_packed_decode(
            mixed, a, b, logarithm, bias, width**-0.5, state, out, every, True
        )

    def reference(mixed, a, b, logarithm, bias, state):
        parts = mixed.unflatten(1, (-1, width))[:, None].split([heads, heads, of_value], 2)
        gate = -logarithm.exp() * F.softplus(a + bias)
        return delta_rule(*parts, gate[:, None, :, None], b.sigmoid()[:, None], state)

    checked(function, reference, mixed, a, b, *of_heads, state)


def kda(model, tokens):
    heads, _, width = DELTA[model]
    q, k, v = (normal(1, tokens, heads, width) for _ in range(3))
    g, state = decays(1, tokens, heads, width), normal(4, heads, width, width, dtype=torch.float32)
    places, starts = torch.arange(1, dtype=torch.int32), torch.tensor([0, tokens])

    def function(q, k, v, g, beta, state):
        return chunk_kda(
            q, k, v, g, beta, initial_state=state, use_qk_l2norm_in_kernel=True,
            initial_state_indices=places, cu_seqlens=starts,
        )

    def reference(q, k, v, g, beta, state):
        return delta_rule(q, k, v, g, beta, state[:1])[0]

    checked(function, reference, q, k, v, g, shares(1, tokens, heads), state)


LAUNCHES = {
    f"{function.__name__}-{model}-{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(
        function, model, *words, configs=1
    )
    for models, function, variants in [
        (MAMBA, scan, [(1024,)]),
        (MAMBA, step, [(64, torch.float32), (64, torch.bfloat16)]),
        (MAMBA, convolution, [(1,), (1024,)]),
        (DELTA, gated, [(1,), (1024,)]),
        (DELTA, packed, [(64,)]),
        (DELTA, kda, [(1024,)]),
    ]
    for model in models
    for words in variants
}
