"""Attention over a paged cache, quantized products, norms, activations and rotary embeddings, as vLLM calls them."""

import functools

import torch
import torch.nn.functional as F
from _models import models
from _references import attention, pages_of, rotated, widened
from _tensors import integers, normal, pages, positive
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
from irdiff_corpus import checked, launch

BLOCK = 16
MODELS = models("llama3-8b", "llama3-70b", "qwen3-32b", "qwen3-4b", "gemma3-4b")


def cache(model, blocks):
    _, heads, width, *_ = MODELS[model]
    return [normal(blocks, BLOCK, heads, width) for _ in range(2)]


def of_pages(queries, keys, values, table, lengths):
    """Attention of the last tokens of each sequence; all are of one length."""
    queries = queries.unflatten(0, (len(table), -1)).transpose(1, 2)
    return attention(queries, pages_of(keys, table), pages_of(values, table)).transpose(1, 2).flatten(0, 1)


def decode(model, batch, length):
    heads, _, width, *_ = MODELS[model]
    blocks, lengths = length // BLOCK, torch.full((batch,), length, dtype=torch.int32)
    inputs = normal(batch, heads, width), *cache(model, batch * blocks), pages(batch, blocks), lengths
    checked(paged_attention, of_pages, *inputs)


def prefill(model, batch, length):
    def varlen(queries, keys, values, table, lengths):
        return varlen_attention(queries, keys, values, starts, length, lengths, length, table, causal=True)

    heads, _, width, *_ = MODELS[model]
    blocks, lengths = length // BLOCK, torch.full((batch,), length, dtype=torch.int32)
    starts = torch.arange(batch + 1, dtype=torch.int32) * length
    inputs = normal(batch * length, heads, width), *cache(model, batch * blocks), pages(batch, blocks), lengths
    checked(varlen, of_pages, *inputs)


def norms(model, tokens):
    def rms(x, weight, epsilon):
        return F.rms_norm(x, (hidden,), weight, epsilon)

    def fused(x, residual, weight, epsilon):
        return rms(x + residual, weight, epsilon), x + residual

    def gemma(x, weight, epsilon, residual):
        return rms(x + residual, 1 + weight, epsilon), None  # the norm is written over the new residual

    hidden = MODELS[model].hidden
    x, weight = normal(tokens, hidden), normal(hidden)
    checked(rms_norm, rms, x, weight, 1e-6)
    checked(fused_add_rms_norm, fused, x, normal(tokens, hidden), weight, 1e-6)
    checked(gemma_rms_norm, gemma, x, weight, 1e-6, normal(tokens, hidden))


def activations(model, tokens):
    def gated(act, x):
        gate, up = x.chunk(2, -1)
        return act(gate) * up

    intermediate = MODELS[model].intermediate
    gelu = functools.partial(F.gelu, approximate="tanh")
    for function, act in ((silu_and_mul, F.silu), (gelu_tanh_and_mul, gelu)):
        checked(function, functools.partial(gated, act), normal(tokens, 2 * intermediate))


def rotary(model, tokens):
    def rotate(positions, queries, keys, table):
        return rotary_embedding(positions, queries, keys, width, table)

    def reference(positions, queries, keys, table):
        cos, sin = table[positions][:, None].chunk(2, -1)
        return tuple(rotated(x.unflatten(1, (-1, width)), cos, sin).flatten(1) for x in (queries, keys))

    heads, of_keys, width, *_ = MODELS[model]
    queries, keys, table = normal(tokens, heads * width), normal(tokens, of_keys * width), normal(8192, width)
    checked(rotate, reference, torch.arange(tokens), queries, keys, table)


def quantize(model, tokens):
    def reference(low, high, dtype, x, scale):
        return (x * scale.reciprocal()).clamp(low, high).to(dtype), scale

    hidden = MODELS[model].hidden
    for function, *kind in ((scaled_fp8_quant, -448, 448, FP8), (scaled_int8_quant, -128, 127, torch.int8)):
        checked(function, functools.partial(reference, *kind), normal(tokens, hidden, scale=50), positive(1))


def weights_of(bits, model, tokens):
    middle = 1 << (bits - 1)

    def product(x, packed, scales):
        return mixed_precision_gemm(x, packed, scales, None, bits, middle, 128)

    def reference(x, packed, scales):
        weights = packed[:, None] >> torch.arange(0, 32, bits)[:, None] & (1 << bits) - 1
        return x @ widened(weights.flatten(0, 1) - middle, scales, 128, 1)

    *_, hidden, intermediate, _ = MODELS[model]
    packed = integers(-(2**31), 2**31, hidden * bits // 32, intermediate, dtype=torch.int32)
    scales = positive(hidden // 128, intermediate, dtype=torch.float16)
    checked(product, reference, normal(tokens, hidden, dtype=torch.float16), packed, scales)


def scaled(dtype, model, tokens):
    def product(*inputs):
        return scaled_gemm(*inputs, torch.bfloat16)

    def reference(a, b, rows, columns):
        return (a.float() @ b.float()) * rows * columns.T

    *_, hidden, intermediate, _ = MODELS[model]
    shapes = (tokens, hidden), (hidden, intermediate)
    a, b = (normal(*shape, dtype=FP8) if dtype == FP8 else integers(-128, 128, *shape) for shape in shapes)
    checked(product, reference, a, b, positive(tokens, 1), positive(intermediate, 1), error=0.02)  # of bf16


def store(model, tokens):
    def write(*inputs):
        reshape_and_cache(*inputs, "auto", None, None)
        return inputs[2:4]

    def reference(keys, values, *rest):
        *caches, slots = rest
        pairs = zip(caches, (keys, values))
        return tuple(x.flatten(0, 1).index_copy(0, slots, new).view_as(x) for x, new in pairs)

    _, heads, width, *_ = MODELS[model]
    key_value = [normal(tokens, heads, width) for _ in range(2)]
    checked(write, reference, *key_value, *cache(model, 128), torch.arange(tokens) * 3)


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
