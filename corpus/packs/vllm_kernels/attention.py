"""Attention over vLLM's paged cache: unified (split over keys at decode), MLA at decode, prefill, and writes."""

import torch
from vllm_kernels._alone import FP8  # first: it makes `vllm` importable
from _tensors import normal, numbers
from irdiff_corpus import launch
from vllm.v1.attention.ops.prefix_prefill import context_attention_fwd as prefix_attention
from vllm.v1.attention.ops.triton_decode_attention import decode_attention_fwd
from vllm.v1.attention.ops.triton_merge_attn_states import merge_attn_states
from vllm.v1.attention.ops.triton_prefill_attention import context_attention_fwd
from vllm.v1.attention.ops.triton_reshape_and_cache_flash import (
    triton_reshape_and_cache_flash,
    triton_reshape_and_cache_flash_per_token_head_quant,
)
from vllm.v1.attention.ops.triton_unified_attention import unified_attention
from vllm.v1.kv_cache_interface import KVQuantMode

MODELS = {  # heads, heads of keys, elements of a head; on one GPU
    "llama3-8b": (32, 8, 128),
    "llama3-70b-tp8": (8, 1, 128),
    "qwen2.5-7b": (28, 4, 128),
    "gemma3-4b": (8, 4, 256),
    "phi3-mini": (32, 32, 96),
    "gpt-oss-120b-tp8": (8, 1, 64),
}
GROUPED = [model for model, (heads, of_keys, _) in MODELS.items() if heads != of_keys]
WIDTHS = ("llama3-8b", "gemma3-4b", "phi3-mini", "gpt-oss-120b-tp8")
MLA = {"deepseek-v3-tp8": 16, "deepseek-v3-tp4": 32, "deepseek-v3-dp": 128}
SPLITS, BLOCK = 16, 16


def unified(model, queries, cache, softcap=0.0, window=-1, sinks=False):
    """Eight sequences of `queries` new tokens over a cache of 1,024."""
    heads, of_keys, width = MODELS[model]
    sequences, length = 8, 1024
    tokens, pages = sequences * queries, length // BLOCK
    kind, dtype = CACHES[cache]
    q = normal(tokens, heads, width)
    keys, values = (normal(sequences * pages, BLOCK, of_keys, width, dtype=dtype) for _ in range(2))
    scale = torch.ones(1, dtype=torch.float32)
    per_head = {}
    if kind > KVQuantMode.FP8_PER_TENSOR:
        names = ("k_scale_cache", "v_scale_cache")
        per_head = {name: normal(sequences * pages, BLOCK, of_keys, dtype=torch.float32) for name in names}
    limit, padded = 128 // of_keys, 1 << (width - 1).bit_length()
    partial = normal(max(limit, tokens), heads, SPLITS, padded, dtype=torch.float32)
    sums = [normal(max(limit, tokens), heads, SPLITS, dtype=torch.float32) for _ in range(2)]
    unified_attention(
        q, keys, values, torch.zeros_like(q), torch.arange(sequences + 1, dtype=torch.int32) * queries, queries,
        torch.full((sequences,), length, dtype=torch.int32), length, width**-0.5, True,
        (window, 0 if window > 0 else -1), torch.zeros(sequences, pages, dtype=torch.int32), softcap, None,
        scale, scale, limit, SPLITS, partial, *sums, sinks=normal(heads) if sinks else None, kv_quant_mode=kind,
        **per_head,
    )


CACHES = {
    "bf16": (KVQuantMode.NONE, torch.bfloat16),
    "fp8": (KVQuantMode.FP8_PER_TENSOR, FP8),
    "fp8-per-head": (KVQuantMode.FP8_PER_TOKEN_HEAD, FP8),
    "int8-per-head": (KVQuantMode.INT8_PER_TOKEN_HEAD, torch.int8),
}


def decode(model, batch, cache, softcap=0.0):
    heads, of_keys, width = MODELS[model]
    pages, splits = batch * 1024 // BLOCK, 8
    keys, values = (normal(pages, BLOCK, of_keys, width, dtype=CACHES[cache][1]) for _ in range(2))
    decode_attention_fwd(
        normal(batch, heads, width), keys, values, normal(batch, heads, width),
        normal(batch, heads, dtype=torch.float32),
        torch.zeros(batch, 1024 // BLOCK, dtype=torch.int32), torch.full((batch,), 1024, dtype=torch.int32),
        normal(batch, heads, splits, width + 1, dtype=torch.float32), splits, width**-0.5, BLOCK, softcap,
    )


def decode_mla(model, batch, cache):
    heads, splits = MLA[model], 4
    latents = normal(batch * 1024 // 64, 64, 1, 576, dtype=CACHES[cache][1])
    decode_attention_fwd(
        normal(batch, heads, 576), latents, latents[..., :512], normal(batch, heads, 512),
        normal(batch, heads, dtype=torch.float32), torch.zeros(batch, 1024 // 64, dtype=torch.int32),
        torch.full((batch,), 1024, dtype=torch.int32), normal(batch, heads, splits, 513, dtype=torch.float32), splits,
        576**-0.5, 64, is_mla=True,
    )


def prefill(model, causal, dtype=torch.bfloat16, window=0):
    heads, of_keys, width = MODELS[model]
    q, k, v = (normal(1024, count, width, dtype=dtype) for count in (heads, of_keys, of_keys))
    context_attention_fwd(
        q, k, v, torch.zeros_like(q), numbers(0, 512), numbers(512, 512), 512, causal, sliding_window_q=window
    )


def prefix(model, cache, window=None):
    """New tokens over a cache in the layout of AMD's kernels: keys by groups of sixteen bytes."""
    heads, of_keys, width = MODELS[model]
    new, pages = 256, 64
    _, dtype = CACHES[cache]
    group = 16 // dtype.itemsize
    q, k, v = (normal(2 * new, count, width) for count in (heads, of_keys, of_keys))
    scale = torch.ones(1, dtype=torch.float32)
    prefix_attention(
        q, k, v, torch.zeros_like(q), "fp8" if cache == "fp8" else "auto",
        normal(2 * pages, of_keys, width // group, BLOCK, group, dtype=dtype),
        normal(2 * pages, of_keys, width, BLOCK, dtype=dtype), torch.zeros(2, pages, dtype=torch.int32),
        numbers(0, new, 2 * new), numbers(768, 768), 768, new, scale, scale, sliding_window=window,
    )


def write(model, cache):
    _, of_keys, width = MODELS[model]
    kind, dtype = CACHES[cache]
    key, value = (normal(512, of_keys, width) for _ in range(2))
    pages = [normal(64, BLOCK, of_keys, width, dtype=dtype) for _ in range(2)]
    slots, scale = torch.arange(512), torch.ones(1, dtype=torch.float32)
    if kind > KVQuantMode.FP8_PER_TENSOR:
        scales = [normal(64, BLOCK, of_keys, dtype=torch.float32) for _ in range(2)]
        triton_reshape_and_cache_flash_per_token_head_quant(key, value, *pages, *scales, slots, kind)
        return
    triton_reshape_and_cache_flash(key, value, *pages, slots, "fp8" if cache == "fp8" else "auto", scale, scale)


def merge(model):
    heads, _, width = MODELS[model]
    one, other = ((normal(256, heads, width), normal(heads, 256, dtype=torch.float32)) for _ in range(2))
    merge_attn_states(torch.zeros_like(one[0]), *one, *other)


LAUNCHES = {
    f"{function.__name__.replace('_', '-')}-{model}-"
    f"{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(function, model, *words, configs=1)
    for models, function, variants in [
        (MODELS, unified, [(1, "bf16"), (256, "fp8")]),
        (GROUPED, unified, [(256, "bf16"), (1, "fp8")]),
        (("llama3-8b", "llama3-70b-tp8"), unified, [(1, "fp8-per-head"), (256, "int8-per-head")]),
        (("gemma3-4b",), unified, [(1, "bf16", 0.0, 1023), (256, "bf16", 0.0, 1023), (1, "bf16", 50.0)]),
        (("gpt-oss-120b-tp8",), unified, [(1, "bf16", 0.0, 127, True), (256, "bf16", 0.0, 127, True)]),
        (MODELS, decode, [(64, "bf16")]),
        (("llama3-8b", "phi3-mini"), decode, [(64, "fp8"), (64, "bf16", 30.0)]),
        (MLA, decode_mla, [(64, "bf16"), (64, "fp8")]),
        (MODELS, prefill, [(True,), (False,)]),
        (("llama3-8b", "gemma3-4b"), prefill, [(True, torch.float32), (True, torch.bfloat16, 512)]),
        (MODELS, prefix, [("bf16",), ("fp8",)]),
        (("gemma3-4b",), prefix, [("bf16", 1024)]),
        (MODELS, write, [("bf16",), ("fp8",)]),
        (WIDTHS, write, [("int8-per-head",)]),
        (WIDTHS, merge, [()]),
    ]
    for model in models
    for words in variants
}
