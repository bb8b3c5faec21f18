"""Mamba 2, short convolutions, lightning attention, gated delta rule of Qwen 3 Next and Kimi: prefill and decode."""

import functools

import torch
import torch.nn.functional as F
import vllm_kernels._alone  # noqa: F401, I001
import _models
from _references import delta_rule, mamba_step
from _tensors import normal, numbers, positive
from irdiff_corpus import checked, launch
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


# state 0 is nobody's: the kernels leave it and the first sequence of a decode alone


def scan(model, tokens):
    """Two sequences, each of whole chunks."""
    heads, width, groups, state, chunk = MAMBA[model]
    chunks = tokens // chunk

    def function(x, dt, a, b, c, d, bias, states):
        out = torch.zeros_like(x)
        states = mamba_chunk_scan_combined_varlen(
            x, dt, a, b, c, chunk, numbers(0, tokens // 2, tokens), torch.arange(chunks + 1, dtype=torch.int32) * chunk,
            torch.tensor([chunks // 2 - 1, chunks - 1]), torch.arange(chunks, dtype=torch.int32) // (chunks // 2), out,
            D=d, dt_bias=bias, initial_states=states, dt_softplus=True, state_dtype=torch.float32,
        )
        return out, states

    def reference(x, dt, a, b, c, d, bias, states):
        outs, inputs = [], [value.unflatten(0, (2, -1)).unbind(1) for value in (x, F.softplus(dt + bias), b, c)]
        for x, dt, b, c in zip(*inputs):
            out, states = mamba_step(states, x, dt, a, b, c, d)
            outs.append(out)
        return torch.stack(outs, 1).flatten(0, 1), states

    x, dt = normal(tokens, heads, width), normal(tokens, heads)
    b, c = (normal(tokens, groups, state) for _ in range(2))
    d, bias = (normal(heads, dtype=torch.float32) for _ in range(2))
    states = normal(2, heads, width, state, dtype=torch.float32)
    checked(function, reference, x, dt, -positive(heads), b, c, d, bias, states)


def step(model, batch, dtype):
    heads, width, groups, state, _ = MAMBA[model]

    def function(states, x, dt, a, b, c, d):
        out, of_head = torch.zeros_like(x), d[:, None].expand(heads, width)
        selective_state_update(
            states, x, dt[..., None].expand_as(x), a[:, None, None].expand(heads, width, state), b, c, of_head, of_head,
            dt_softplus=True, state_batch_indices=torch.arange(batch, dtype=torch.int32), out=out,
        )
        return out[1:], states[1:]

    def reference(states, x, dt, a, b, c, d):
        out, states = mamba_step(states, x, F.softplus(dt + d), a, b, c, d)
        return out[1:], states[1:]

    b, c = (normal(batch, groups, state) for _ in range(2))
    x, dt, states = normal(batch, heads, width), normal(batch, heads), normal(batch, heads, width, state, dtype=dtype)
    checked(function, reference, states, x, dt, -positive(heads), b, c, normal(heads, dtype=torch.float32))


def convolution(model, tokens):
    heads, width, groups, state, _ = MAMBA[model]
    channels = heads * width + 2 * groups * state

    def one(x, weight, bias, states):
        of_batch = torch.arange(8, dtype=torch.int32)
        return causal_conv1d_update(x, states, weight, bias, "silu", conv_state_indices=of_batch)[1:], states[1:]

    def two(x, weight, bias, states):
        starts, without = numbers(0, tokens // 2, tokens), torch.zeros(2, dtype=torch.bool)
        return causal_conv1d_fn(x.t(), weight, bias, states, starts, numbers(1, 2), without).t(), states[1:3]

    def reference(x, weight, bias, states):
        if tokens == 1:
            joined = torch.cat([states, x[..., None]], -1)[1:]
        else:
            joined = F.pad(x.view(2, tokens // 2, channels).mT, (3, 0))
        out = F.silu(F.conv1d(joined, weight[:, None], bias, groups=channels)).mT
        return out.flatten(0, 1), joined[..., -3:]

    weight, bias, states = normal(channels, 4), normal(channels), normal(8, 3, channels).transpose(1, 2)
    checked(one if tokens == 1 else two, reference, normal(max(tokens, 8), channels), weight, bias, states)


def gated_norm(model, tokens):
    heads, width, groups, _, _ = MAMBA[model]

    def function(x, weight, z):
        return rms_norm_gated(x, weight, None, z, group_size=heads * width // groups, norm_before_gate=False)

    def reference(x, weight, z):
        x = (x * F.silu(z)).unflatten(-1, (groups, -1))
        return F.rms_norm(x, x.shape[-1:], eps=1e-6).flatten(1) * weight

    x, z = (normal(tokens, heads * width) for _ in range(2))
    checked(function, reference, x, normal(heads * width), z)


def gated(model, tokens):
    heads, of_value, width = DELTA[model]

    def one(q, k, v, g, beta, states):
        out, states = fused_recurrent_gated_delta_rule(
            q, k, v, g, beta, initial_state=states, cu_seqlens=torch.arange(tokens + 1, dtype=torch.int32),
            ssm_state_indices=torch.arange(tokens, dtype=torch.int32), use_qk_l2norm_in_kernel=True,
        )
        return out[0, 1:], states[1:]

    def two(*inputs):
        *inputs, states = inputs
        return chunk_gated_delta_rule(
            *inputs, initial_state=states[:2], output_final_state=True, cu_seqlens=numbers(0, tokens // 2, tokens),
            use_qk_l2norm_in_kernel=True,
        )

    q, k = (normal(1, tokens, heads, width) for _ in range(2))
    v, beta = normal(1, tokens, of_value, width), normal(1, tokens, of_value).sigmoid()
    g = F.logsigmoid(normal(1, tokens, of_value, dtype=torch.float32))
    states = normal(8, of_value, width, width, dtype=torch.float32)
    checked(one if tokens <= 8 else two, sequences(8 if tokens <= 8 else 2), q, k, v, g, beta, states)


def sequences(count):
    """The delta rule of `count` sequences in one batch, each token of its own when they are eight."""

    def reference(*inputs):
        *inputs, states = inputs
        out, states = by_token(*(value.view(count, -1, *value.shape[2:]) for value in inputs), states[:count])
        return (out[1:, 0], states[1:]) if count == 8 else (out.flatten(0, 1)[None], states)

    return reference


def by_token(q, k, v, g, beta, states):
    return delta_rule(q, k, v, g if g.ndim == 4 else g[..., None], beta, states)


def gates_of(a, b, log, bias):
    """Of Mamba's parameters: the logarithm of what stays of the state, and how much is new."""
    return -log.exp() * F.softplus(a + bias), b.sigmoid()


def parts_of(qkv, heads, width):
    """Queries, keys, values, each (sequences, heads, width)."""
    return qkv.unflatten(-1, (-1, width)).split([heads, heads, qkv.shape[-1] // width - 2 * heads], -2)


def of_gates(batch, of_value):
    return *(normal(batch, of_value) for _ in range(2)), normal(of_value, dtype=torch.float32), normal(of_value)


def packed(model, batch):
    heads, of_value, width = DELTA[model]

    def function(qkv, a, b, log, bias, states):
        out, of_batch = normal(batch, 1, of_value, width), torch.arange(batch, dtype=torch.int32)
        fused_recurrent_gated_delta_rule_packed_decode(
            qkv, a, b, log, bias, width**-0.5, states, out, of_batch, True
        )
        return out[1:], states[1:]

    def reference(qkv, a, b, log, bias, states):
        inputs = (value[1:, None] for value in (*parts_of(qkv, heads, width), *gates_of(a, b, log, bias)))
        return by_token(*inputs, states[1:])

    qkv = normal(batch, (2 * heads + of_value) * width)
    states = normal(batch, of_value, width, width, dtype=torch.float32)
    checked(function, reference, qkv, *of_gates(batch, of_value), states)


def sigmoid(model, batch):
    heads, of_value, width = DELTA[model]

    def function(q, k, v, a, b, log, bias, states):
        out, states = fused_sigmoid_gating_delta_rule_update(
            log, a, b, bias, q, k, v, initial_state=states, cu_seqlens=torch.arange(batch + 1, dtype=torch.int32),
            ssm_state_indices=torch.arange(batch, dtype=torch.int32), use_qk_l2norm_in_kernel=True,
        )
        return out[0, 1:], states[1:]

    def reference(q, k, v, a, b, log, bias, states):
        inputs = (value[1:, None] for value in (q[0], k[0], v[0], *gates_of(a, b, log, bias)))
        out, states = by_token(*inputs, states[1:])
        return out[:, 0], states

    q, k, v = (normal(1, batch, count, width) for count in (heads, heads, of_value))
    states = normal(batch, of_value, width, width, dtype=torch.float32)
    checked(function, reference, q, k, v, *of_gates(batch, of_value), states)


def prepare(model, tokens):
    heads, of_value, width = DELTA[model]

    def reference(qkv, a, b, log, bias):
        q, k, v = parts_of(qkv, heads, width)
        return F.normalize(q, dim=-1), F.normalize(k, dim=-1), v, *gates_of(a, b, log, bias)

    qkv = normal(tokens, (2 * heads + of_value) * width)
    function = functools.partial(fused_post_conv_prep, num_k_heads=heads, head_k_dim=width, head_v_dim=width)
    checked(function, reference, qkv, *of_gates(tokens, of_value))


def norm_of_value(model, tokens):
    _, of_value, width = DELTA[model]

    def reference(x, weight, _, z):
        return F.rms_norm(x, (width,), weight, 1e-6) * F.silu(z)

    x, z = (normal(tokens * of_value, width) for _ in range(2))
    checked(functools.partial(rmsnorm_fn, activation="swish"), reference, x, normal(width), None, z)


def kda(model, tokens):
    heads, _, width = KIMI[model]

    def one(q, k, v, g, beta, states):
        starts, own = torch.arange(tokens + 1, dtype=torch.int32), torch.arange(tokens, dtype=torch.int32)
        out, states = fused_recurrent_kda(
            q, k, v, g, beta, initial_state=states, cu_seqlens=starts, ssm_state_indices=own
        )
        return out[0, 1:], states[1:]

    def two(*inputs):
        *inputs, states = inputs
        starts = numbers(0, tokens // 2, tokens)
        return chunk_kda(*inputs, initial_state=states[:2], use_qk_l2norm_in_kernel=True, cu_seqlens=starts)

    q, k, v = (normal(1, tokens, heads, width) for _ in range(3))
    g = F.logsigmoid(normal(1, tokens, heads, width, dtype=torch.float32))
    beta = normal(1, tokens, heads, dtype=torch.float32).sigmoid()
    states = normal(8, heads, width, width, dtype=torch.float32)
    checked(one if tokens <= 8 else two, sequences(8 if tokens <= 8 else 2), q, k, v, g, beta, states)


def lightning(model, tokens):
    heads, width = LIGHTNING[model]

    def one(q, k, v, slopes, states):
        out = linear_decode_forward_triton(q, k, v, states, slopes, torch.arange(8, dtype=torch.int32))
        return out, states

    def of_one(q, k, v, slopes, states):
        states = (-slopes).exp() * states + k.mT @ v
        return (q @ states).flatten(1), states

    def all_(q, k, v, slopes, states):
        return lightning_attention(q, k, v, slopes.view(-1), kv_history=states)[0]

    def of_all(q, k, v, slopes, states):
        """What is before a block of 256 has decayed one step less than in a decode: so vLLM writes it."""
        place = torch.arange(tokens)
        back = place[:, None] - place - (place[:, None] // 256 > place // 256).int()
        decay = (-slopes * back).exp().tril()
        return (q @ k.mT * decay) @ v + (-slopes * place[:, None]).exp() * q @ states

    batch = 8 if tokens == 1 else 1
    q, k, v = (normal(batch, heads, tokens, width, dtype=torch.float32) for _ in range(3))
    states = normal(batch, heads, width, width, dtype=torch.float32)
    checked(*(one, of_one) if tokens == 1 else (all_, of_all), q, k, v, positive(heads, 1, 1), states)


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
