"""Mamba 2, short convolutions, lightning attention, gated delta rule of Qwen 3 Next and Kimi: prefill and decode."""

import torch
import vllm_kernels._alone  # noqa: F401, I001
import _models
from _tensors import normal, numbers
from irdiff_corpus import launch
from vllm.model_executor.layers.lightning_attn import lightning_attention, linear_decode_forward_triton
from vllm.model_executor.layers.mamba.ops.causal_conv1d import causal_conv1d_fn, causal_conv1d_update
from vllm.model_executor.layers.mamba.ops.layernorm_gated import rms_norm_gated
from vllm.model_executor.layers.mamba.ops.mamba_ssm import selective_state_update
from vllm.model_executor.layers.mamba.ops.ssd_combined import mamba_chunk_scan_combined_varlen
from vllm.third_party.flash_linear_attention.ops.chunk import chunk_gated_delta_rule
from vllm.third_party.flash_linear_attention.ops.fused_gdn_prefill_post_conv import fused_post_conv_prep
from vllm.third_party.flash_linear_attention.ops.fused_recurrent import (
    fused_recurrent_gated_delta_rule,
    fused_recurrent_gated_delta_rule_packed_decode,
)
from vllm.third_party.flash_linear_attention.ops.fused_sigmoid_gating import fused_sigmoid_gating_delta_rule_update
from vllm.third_party.flash_linear_attention.ops.kda import chunk_kda, fused_recurrent_kda
from vllm.third_party.flash_linear_attention.ops.layernorm_guard import rmsnorm_fn

MAMBA = {name: _models.MAMBA[name] for name in ("mamba2-2.7b", "nemotron-h-8b", "zamba2-7b", "falcon-h1-34b")}
DELTA = {"qwen3-next-80b-tp2": (8, 16, 128)}  # heads, heads of values, elements of a head
KIMI = {"kimi-linear-48b-tp4": (8, 8, 128)}
LIGHTNING = {"minimax-text-tp8": (8, 128)}


def scan(model, tokens):
    """Two sequences, each of whole chunks."""
    heads, width, groups, state, chunk = MAMBA[model]
    x, dt = normal(tokens, heads, width), normal(tokens, heads)
    b, c = (normal(tokens, groups, state) for _ in range(2))
    a, d, bias = (normal(heads, dtype=torch.float32) for _ in range(3))
    chunks = tokens // chunk
    mamba_chunk_scan_combined_varlen(
        x, dt, a, b, c, chunk, numbers(0, tokens // 2, tokens), torch.arange(chunks + 1, dtype=torch.int32) * chunk,
        torch.tensor([chunks // 2 - 1, chunks - 1]), torch.arange(chunks, dtype=torch.int32) // (chunks // 2),
        torch.zeros_like(x), D=d, dt_bias=bias, initial_states=normal(2, heads, width, state, dtype=torch.float32),
        dt_softplus=True, state_dtype=torch.float32,
    )


def step(model, batch, dtype):
    heads, width, groups, state, _ = MAMBA[model]
    x, of_head = normal(batch, heads, width), normal(heads, dtype=torch.float32)[:, None].expand(heads, width)
    b, c = (normal(batch, groups, state) for _ in range(2))
    a = normal(heads, dtype=torch.float32)[:, None, None].expand(heads, width, state)
    dt = normal(batch, heads)[:, :, None].expand(batch, heads, width)
    selective_state_update(
        normal(batch, heads, width, state, dtype=dtype), x, dt, a, b, c, of_head, of_head, dt_softplus=True,
        state_batch_indices=torch.arange(batch, dtype=torch.int32), out=torch.zeros_like(x),
    )


def convolution(model, tokens):
    heads, width, groups, state, _ = MAMBA[model]
    channels = heads * width + 2 * groups * state
    weight, bias, states = normal(channels, 4), normal(channels), normal(8, 3, channels).transpose(1, 2)
    if tokens == 1:
        of_batch = torch.arange(8, dtype=torch.int32)
        causal_conv1d_update(normal(8, channels), states, weight, bias, "silu", conv_state_indices=of_batch)
        return
    causal_conv1d_fn(
        normal(tokens, channels).t(), weight, bias, states, numbers(0, tokens // 2, tokens), numbers(0, 1),
        torch.zeros(2, dtype=torch.bool),
    )


def gated_norm(model, tokens):
    heads, width, groups, _, _ = MAMBA[model]
    x, z = (normal(tokens, heads * width) for _ in range(2))
    rms_norm_gated(x, normal(heads * width), None, z, group_size=heads * width // groups, norm_before_gate=False)


def gated(model, tokens):
    heads, of_value, width = DELTA[model]
    q, k = (normal(1, tokens, heads, width) for _ in range(2))
    v, beta = normal(1, tokens, of_value, width), normal(1, tokens, of_value)
    g, state = normal(1, tokens, of_value, dtype=torch.float32), normal(8, of_value, width, width, dtype=torch.float32)
    if tokens <= 8:
        fused_recurrent_gated_delta_rule(
            q, k, v, g, beta, initial_state=state, cu_seqlens=torch.arange(tokens + 1, dtype=torch.int32),
            ssm_state_indices=torch.arange(tokens, dtype=torch.int32), use_qk_l2norm_in_kernel=True,
        )
        return
    chunk_gated_delta_rule(
        q, k, v, g, beta, initial_state=state[:2], output_final_state=True,
        cu_seqlens=numbers(0, tokens // 2, tokens), use_qk_l2norm_in_kernel=True,
    )


def packed(model, batch):
    heads, of_value, width = DELTA[model]
    a, b = (normal(batch, of_value) for _ in range(2))
    fused_recurrent_gated_delta_rule_packed_decode(
        normal(batch, (2 * heads + of_value) * width), a, b, normal(of_value, dtype=torch.float32), normal(of_value),
        width**-0.5, normal(batch, of_value, width, width, dtype=torch.float32), normal(batch, 1, of_value, width),
        torch.arange(batch, dtype=torch.int32), True,
    )


def sigmoid(model, batch):
    heads, of_value, width = DELTA[model]
    q, k = (normal(1, batch, heads, width) for _ in range(2))
    a, b = (normal(batch, of_value) for _ in range(2))
    fused_sigmoid_gating_delta_rule_update(
        normal(of_value, dtype=torch.float32), a, b, normal(of_value), q, k, normal(1, batch, of_value, width),
        initial_state=normal(batch, of_value, width, width, dtype=torch.float32),
        cu_seqlens=torch.arange(batch + 1, dtype=torch.int32),
        ssm_state_indices=torch.arange(batch, dtype=torch.int32), use_qk_l2norm_in_kernel=True,
    )


def prepare(model, tokens):
    heads, of_value, width = DELTA[model]
    a, b = (normal(tokens, of_value) for _ in range(2))
    qkv = normal(tokens, (2 * heads + of_value) * width)
    fused_post_conv_prep(qkv, a, b, normal(of_value, dtype=torch.float32), normal(of_value), heads, width, width)


def norm_of_value(model, tokens):
    _, of_value, width = DELTA[model]
    x, z = (normal(tokens * of_value, width) for _ in range(2))
    rmsnorm_fn(x, normal(width), None, z, activation="swish")


def kda(model, tokens):
    heads, _, width = KIMI[model]
    q, k, v = (normal(1, tokens, heads, width) for _ in range(3))
    g, state = normal(1, tokens, heads, width, dtype=torch.float32), normal(8, heads, width, width, dtype=torch.float32)
    beta = normal(1, tokens, heads, dtype=torch.float32)
    if tokens <= 8:
        starts, own = torch.arange(tokens + 1, dtype=torch.int32), torch.arange(tokens, dtype=torch.int32)
        fused_recurrent_kda(q, k, v, g, beta, initial_state=state, cu_seqlens=starts, ssm_state_indices=own)
        return
    starts = numbers(0, tokens // 2, tokens)
    chunk_kda(q, k, v, g, beta, initial_state=state[:2], use_qk_l2norm_in_kernel=True, cu_seqlens=starts)


def lightning(model, tokens):
    heads, width = LIGHTNING[model]
    slopes = normal(heads, 1, 1, dtype=torch.float32)
    if tokens == 1:
        q, k, v = (normal(8, heads, 1, width, dtype=torch.float32) for _ in range(3))
        cache = normal(8, heads, width, width, dtype=torch.float32)
        linear_decode_forward_triton(q, k, v, cache, slopes, torch.arange(8, dtype=torch.int32))
        return
    q, k, v = (normal(1, heads, tokens, width, dtype=torch.float32) for _ in range(3))
    lightning_attention(q, k, v, slopes.view(-1), kv_history=normal(1, heads, width, width, dtype=torch.float32))


LAUNCHES = {
    f"{function.__name__.replace('_', '-')}-{model}-"
    f"{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(function, model, *words, configs=1)
    for models, function, variants in [
        (MAMBA, scan, [(1024,)]),
        (MAMBA, step, [(64, torch.float32), (64, torch.bfloat16)]),
        (MAMBA, convolution, [(1,), (1024,)]),
        (MAMBA, gated_norm, [(512,)]),
        (DELTA, gated, [(8,), (1024,)]),
        (DELTA, packed, [(64,)]),
        (DELTA, sigmoid, [(64,)]),
        (DELTA, prepare, [(512,)]),
        (DELTA, norm_of_value, [(512,)]),
        (KIMI, kda, [(8,), (1024,)]),
        (LIGHTNING, lightning, [(1,), (1024,)]),
    ]
    for model in models
    for words in variants
}
