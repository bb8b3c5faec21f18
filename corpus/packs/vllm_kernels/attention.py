"""Attention over vLLM's paged cache: unified (split over keys at decode), MLA at decode, prefill, and writes."""

import torch
from vllm_kernels._alone import FP8  # first: it makes `vllm` importable
from _references import attention, pages_of, scores
from _tensors import normal, numbers, pages
from irdiff_corpus import checked, launch
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
    tokens, count = sequences * queries, length // BLOCK
    kind, dtype = CACHES[cache]
    scale = torch.ones(1, dtype=torch.float32)
    limit, padded = 128 // of_keys, 1 << (width - 1).bit_length()
    partial = normal(max(limit, tokens), heads, SPLITS, padded, dtype=torch.float32)
    sums = [normal(max(limit, tokens), heads, SPLITS, dtype=torch.float32) for _ in range(2)]

    def attend(q, keys, values, table, sinks, of_keys=None, of_values=None):
        out = torch.zeros_like(q)
        unified_attention(
            q, keys, values, out, torch.arange(sequences + 1, dtype=torch.int32) * queries, queries,
            torch.full((sequences,), length, dtype=torch.int32), length, width**-0.5, True,
            (window, 0 if window > 0 else -1), table, softcap, None, scale, scale, limit, SPLITS, partial, *sums,
            sinks=sinks, kv_quant_mode=kind, k_scale_cache=of_keys, v_scale_cache=of_values,
        )
        return out

    def reference(q, keys, values, table, sinks, of_keys=None, of_values=None):
        q = q.unflatten(0, (sequences, queries)).transpose(1, 2)
        keys, values = pages_of(keys, table, of_keys), pages_of(values, table, of_values)
        out = attention(q, keys, values, window=window if window > 0 else None, softcap=softcap, sinks=sinks)
        return out.transpose(1, 2).flatten(0, 1)

    caches = [normal(sequences * count, BLOCK, of_keys, width, dtype=dtype) for _ in range(2)]
    scales = []
    if kind > KVQuantMode.FP8_PER_TENSOR:
        scales = [normal(*caches[0].shape[:-1], dtype=torch.float32).abs() for _ in range(2)]
    with_sinks = normal(heads) if sinks else None
    checked(attend, reference, normal(tokens, heads, width), *caches, pages(sequences, count), with_sinks, *scales)


CACHES = {
    "bf16": (KVQuantMode.NONE, torch.bfloat16),
    "fp8": (KVQuantMode.FP8_PER_TENSOR, FP8),
    "fp8-per-head": (KVQuantMode.FP8_PER_TOKEN_HEAD, FP8),
    "int8-per-head": (KVQuantMode.INT8_PER_TOKEN_HEAD, torch.int8),
}


def decode(model, batch, cache, softcap=0.0):
    heads, of_keys, width = MODELS[model]
    keys, values = (normal(batch * 1024 // BLOCK, BLOCK, of_keys, width, dtype=CACHES[cache][1]) for _ in range(2))
    step(normal(batch, heads, width), keys, values, 8, softcap)


def decode_mla(model, batch, cache):
    latents = normal(batch * 1024 // 64, 64, 1, 576, dtype=CACHES[cache][1])
    step(normal(batch, MLA[model], 576), latents, latents[..., :512], 4, is_mla=True)


def step(q, keys, values, splits, softcap=0.0, **options):
    """One token of each sequence over a cache of 1,024."""
    (batch, heads, width), block, of_value = q.shape, keys.shape[1], values.shape[-1]
    lengths = torch.full((batch,), 1024, dtype=torch.int32)

    def attend(q, keys, values, table):
        out, sums = normal(batch, heads, of_value), normal(batch, heads, dtype=torch.float32)
        partial = normal(batch, heads, splits, of_value + 1, dtype=torch.float32)
        decode_attention_fwd(
            q, keys, values, out, sums, table, lengths, partial, splits, width**-0.5, block, softcap, **options
        )
        return out, sums

    def reference(q, keys, values, table):
        q, keys, values = q[:, :, None], pages_of(keys, table), pages_of(values, table)
        sums = scores(q, keys, softcap=softcap).logsumexp(-1)
        return attention(q, keys, values, softcap=softcap)[:, :, 0], sums[:, :, 0]

    checked(attend, reference, q, keys, values, pages(batch, 1024 // block))


def prefill(model, causal, dtype=torch.bfloat16, window=0):
    """Two sequences."""
    heads, of_keys, width = MODELS[model]

    def attend(q, k, v):
        out = torch.zeros_like(q)
        starts, lengths = numbers(0, 512), numbers(512, 512)
        context_attention_fwd(q, k, v, out, starts, lengths, 512, causal, sliding_window_q=window)
        return out

    def reference(*qkv):
        q, k, v = (value.unflatten(0, (2, 512)).transpose(1, 2) for value in qkv)
        return attention(q, k, v, causal=causal, window=window or None).transpose(1, 2).flatten(0, 1)

    checked(attend, reference, *(normal(1024, count, width, dtype=dtype) for count in (heads, of_keys, of_keys)))


def prefix(model, cache, window=None):
    """New tokens over a cache in the layout of AMD's kernels: keys by groups of sixteen bytes."""
    heads, of_keys, width = MODELS[model]
    new, count = 256, 64
    _, dtype = CACHES[cache]
    group = 16 // dtype.itemsize
    scale = torch.ones(1, dtype=torch.float32)

    def attend(q, k, v, keys, values, table):
        out = torch.zeros_like(q)
        prefix_attention(
            q, k, v, out, "fp8" if cache == "fp8" else "auto", keys, values, table, numbers(0, new, 2 * new),
            numbers(768, 768), 768, new, scale, scale, sliding_window=window,
        )
        return out

    def reference(q, k, v, keys, values, table):
        q, k, v = (value.unflatten(0, (2, new)).transpose(1, 2) for value in (q, k, v))
        keys = keys.permute(0, 3, 1, 2, 4).flatten(3)
        cached = (pages_of(value, table)[:, :, :512] for value in (keys, values.permute(0, 3, 1, 2)))
        k, v = (torch.cat(pair, 2) for pair in zip(cached, (k, v)))
        return attention(q, k, v, window=window and window - 1).transpose(1, 2).flatten(0, 1)

    checked(
        attend, reference, *(normal(2 * new, heads, width) for heads in (heads, of_keys, of_keys)),
        normal(2 * count, of_keys, width // group, BLOCK, group, dtype=dtype),
        normal(2 * count, of_keys, width, BLOCK, dtype=dtype), pages(2, count),
    )


def write(model, cache):
    _, of_keys, width = MODELS[model]
    kind, dtype = CACHES[cache]
    slots, scale = torch.arange(512), torch.ones(1, dtype=torch.float32)
    per_head = kind > KVQuantMode.FP8_PER_TENSOR

    def store(key, value, *caches):
        if per_head:
            triton_reshape_and_cache_flash_per_token_head_quant(key, value, *caches, slots, kind)
        else:
            kind_of_cache = "fp8" if cache == "fp8" else "auto"
            triton_reshape_and_cache_flash(key, value, *caches, slots, kind_of_cache, scale, scale)
        return tuple(cache.flatten(0, 1)[:512] for cache in caches)

    def reference(*written_and_caches):
        written = written_and_caches[:2]
        if not per_head:
            return written
        scales = [value.abs().amax(-1) / 127 for value in written]
        return (*((value / scale[..., None]).round() for value, scale in zip(written, scales)), *scales)

    caches = [normal(64, BLOCK, of_keys, width, dtype=dtype) for _ in range(2)]
    if per_head:
        caches += [normal(64, BLOCK, of_keys, dtype=torch.float32) for _ in range(2)]
    checked(store, reference, *(normal(512, of_keys, width) for _ in range(2)), *caches)


def merge(model):
    heads, _, width = MODELS[model]

    def merged(*inputs):
        out = torch.zeros_like(inputs[0])
        merge_attn_states(out, *inputs)
        return out

    def reference(one, of_one, other, of_other):
        share = torch.sigmoid(of_one - of_other).T[..., None]
        return one * share + other * (1 - share)

    one, other = ((normal(256, heads, width), normal(heads, 256, dtype=torch.float32)) for _ in range(2))
    checked(merged, reference, *one, *other)


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
