"""Attention over a paged cache, quantized products, norms, activations and rotary embeddings, as vLLM calls them."""

import torch
from _models import models
from _tensors import normal
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.attention.paged_attention import paged_attention
from conch.ops.attention.varlen_attention import varlen_attention
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vllm.reshape_and_cache import reshape_and_cache
from irdiff_corpus import launch

BLOCK = 16
MODELS = models("llama3-8b", "llama3-70b", "qwen3-32b", "qwen3-4b", "gemma3-4b")


def cache(model, blocks):
    _, heads, width, *_ = MODELS[model]
    return [normal(blocks, BLOCK, heads, width) for _ in range(2)]


def decode(model, batch, length):
    heads, _, width, *_ = MODELS[model]
    blocks = length // BLOCK
    table = torch.arange(batch * blocks, dtype=torch.int32).reshape(batch, blocks)
    lengths = torch.full((batch,), length, dtype=torch.int32)
    paged_attention(normal(batch, heads, width), *cache(model, batch * blocks), table, lengths)


def prefill(model, batch, length):
    heads, _, width, *_ = MODELS[model]
    blocks = length // BLOCK
    table = torch.arange(batch * blocks, dtype=torch.int32).reshape(batch, blocks)
    lengths = torch.full((batch,), length, dtype=torch.int32)
    starts = torch.arange(batch + 1, dtype=torch.int32) * length
    queries = normal(batch * length, heads, width)
    varlen_attention(
        queries, *cache(model, batch * blocks), starts, length, lengths, length, table, causal=True
    )


def norms(model, tokens):
    hidden = MODELS[model].hidden
    x, weight = normal(tokens, hidden), normal(hidden)
    rms_norm(x, weight, 1e-6)
    fused_add_rms_norm(x, normal(tokens, hidden), weight, 1e-6)
    gemma_rms_norm(x, weight, 1e-6, normal(tokens, hidden))


def activations(model, tokens):
    intermediate = MODELS[model].intermediate
    silu_and_mul(normal(tokens, 2 * intermediate))
    gelu_tanh_and_mul(normal(tokens, 2 * intermediate))


def rotary(model, tokens):
    heads, of_keys, width, *_ = MODELS[model]
    positions = torch.arange(tokens)
    table = normal(8192, width)
    rotary_embedding(positions, normal(tokens, heads * width), normal(tokens, of_keys * width), width, table)


def quantize(model, tokens):
    hidden = MODELS[model].hidden
    scaled_fp8_quant(normal(tokens, hidden), normal(1, dtype=torch.float32))
    scaled_int8_quant(normal(tokens, hidden), normal(1, dtype=torch.float32))


def weights_of(bits, model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    packed = torch.zeros(hidden * bits // 32, intermediate, dtype=torch.int32)
    scales = normal(hidden // 128, intermediate, dtype=torch.float16)
    x = normal(tokens, hidden, dtype=torch.float16)
    mixed_precision_gemm(x, packed, scales, None, bits, 1 << (bits - 1), 128)


def scaled(dtype, model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    a = torch.zeros(tokens, hidden, dtype=dtype)
    b = torch.zeros(hidden, intermediate, dtype=dtype)
    scaled_gemm(a, b, normal(tokens, 1, dtype=torch.float32), normal(intermediate, 1, dtype=torch.float32), torch.bfloat16)


def store(model, tokens):
    _, heads, width, *_ = MODELS[model]
    key_value = [normal(tokens, heads, width) for _ in range(2)]
    reshape_and_cache(*key_value, *cache(model, 128), torch.arange(tokens), "auto", None, None)


FP8 = torch.float8_e4m3fn
LAUNCHES = {
    f"{name}-{model}-{'-'.join(map(str, shape))}": launch(function, *before, model, *shape, configs=1)
    for model in MODELS
    for name, function, before, shapes in [
        ("decode", decode, (), [(1, 2048), (32, 8192)]),
        ("prefill", prefill, (), [(2, 1024)]),
        ("norms", norms, (), [(1,), (4096,)]),
        ("activations", activations, (), [(4096,)]),
        ("rotary", rotary, (), [(4096,)]),
        ("quantize", quantize, (), [(4096,)]),
        ("int4", weights_of, (4,), [(1,), (512,)]),
        ("int8-weights", weights_of, (8,), [(16,)]),
        ("fp8", scaled, (FP8,), [(16,), (2048,)]),
        ("int8", scaled, (torch.int8,), [(2048,)]),
        ("store", store, (), [(512,)]),
    ]
    for shape in shapes
}
