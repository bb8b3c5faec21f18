"""Mamba 2, short convolutions, and the gated delta rule of Qwen 3 Next and Kimi: prefill and decode."""

import torch
import sglang_kernels._alone  # noqa: F401, I001
from _models import MAMBA
from _tensors import normal
from irdiff_corpus import launch
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


def scan(model, tokens):
    heads, width, groups, state, chunk = MAMBA[model]
    x, dt = normal(1, tokens, heads, width), normal(1, tokens, heads)
    b, c = (normal(1, tokens, groups, state) for _ in range(2))
    a, d, bias = (normal(heads, dtype=torch.float32) for _ in range(3))
    mamba_chunk_scan_combined(
        x, dt, a, b, c, chunk, D=d, dt_bias=bias, dt_softplus=True, out=torch.zeros_like(x), return_final_states=True
    )


def step(model, batch, dtype):
    heads, width, groups, state, _ = MAMBA[model]
    x, of_head = normal(batch, heads, width), normal(heads, dtype=torch.float32)[:, None].expand(heads, width)
    b, c = (normal(batch, groups, state) for _ in range(2))
    a = normal(heads, dtype=torch.float32)[:, None, None].expand(heads, width, state)
    dt = normal(batch, heads)[:, :, None].expand(batch, heads, width)
    selective_state_update(
        normal(batch, heads, width, state, dtype=dtype), x, dt, a, b, c, of_head, dt_bias=of_head, dt_softplus=True,
        out=torch.zeros_like(x),
    )


def convolution(model, tokens):
    heads, width, groups, state, _ = MAMBA[model]
    channels = heads * width + 2 * groups * state
    weight, bias, states = normal(channels, 4), normal(channels), normal(8, 3, channels).transpose(1, 2)
    if tokens == 1:
        causal_conv1d_update(normal(8, channels), states, weight, bias, "silu", None, torch.arange(8, dtype=torch.int32))
        return
    starts = torch.tensor([0, tokens // 2, tokens], dtype=torch.int32)
    causal_conv1d_fn(
        normal(tokens, channels).t(), weight, bias, states, starts, [tokens // 2] * 2,
        torch.arange(2, dtype=torch.int32), torch.zeros(2, dtype=torch.bool),
    )


def gated(model, tokens):
    heads, of_value, width = DELTA[model]
    q, k = (normal(1, tokens, heads, width) for _ in range(2))
    v, beta = normal(1, tokens, of_value, width), normal(1, tokens, of_value)
    g = normal(1, tokens, of_value, dtype=torch.float32)
    state = normal(4, of_value, width, width, dtype=torch.float32)
    if tokens <= 4:
        fused_recurrent_gated_delta_rule(q, k, v, g, beta, initial_state=state[:1], use_qk_l2norm_in_kernel=True)
        return
    chunk_gated_delta_rule(
        q, k, v, g, beta, initial_state=state, initial_state_indices=torch.arange(1, dtype=torch.int32),
        cu_seqlens=torch.tensor([0, tokens]), use_qk_l2norm_in_kernel=True,
    )


def packed(model, batch):
    heads, of_value, width = DELTA[model]
    f32 = torch.float32
    a, b = (normal(batch, of_value) for _ in range(2))
    fused_recurrent_gated_delta_rule_packed_decode(
        normal(batch, (2 * heads + of_value) * width), a, b, normal(of_value, dtype=f32), normal(of_value, dtype=f32),
        width**-0.5, normal(batch, of_value, width, width, dtype=f32), normal(batch, 1, of_value, width),
        torch.arange(batch, dtype=torch.int32), True,
    )


def kda(model, tokens):
    heads, _, width = DELTA[model]
    q, k, v = (normal(1, tokens, heads, width) for _ in range(3))
    g, state = normal(1, tokens, heads, width, dtype=torch.float32), normal(4, heads, width, width, dtype=torch.float32)
    chunk_kda(
        q, k, v, g, normal(1, tokens, heads), initial_state=state, use_qk_l2norm_in_kernel=True,
        initial_state_indices=torch.arange(1, dtype=torch.int32), cu_seqlens=torch.tensor([0, tokens]),
    )


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
