"""Attention over SGLang's cache: decode (grouped heads and MLA) and extend, for models that it serves."""

import torch
import sglang_kernels._alone  # noqa: F401, I001
from _references import attention
from _tensors import normal, numbers
from irdiff_corpus import checked, launch
from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd
from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd
from sglang.kernels.ops.attention.merge_state import merge_state_triton
from sglang.kernels.ops.attention.prefill_attention import context_attention_fwd

MODELS = {  # heads, heads of keys, elements of a key, of a value; on one GPU
    "llama3-8b": (32, 8, 128, 128),
    "llama3-70b-tp8": (8, 1, 128, 128),
    "qwen3-32b-tp2": (32, 4, 128, 128),
    "mixtral-8x7b-tp2": (16, 4, 128, 128),
    "gemma3-4b": (8, 4, 256, 256),
    "phi3-mini": (32, 32, 96, 96),
    "gpt-neo-mha": (16, 16, 64, 64),
    "qwen2.5-7b": (28, 4, 128, 128),
    "gemma3-27b-tp2": (16, 8, 128, 128),
    "llama4-scout-tp8": (5, 1, 128, 128),
    "gpt-oss-120b-tp8": (8, 1, 64, 64),
    "gemma2-9b": (16, 8, 256, 256),
    "deepseek-v3-tp8": (16, 1, 576, 512),
    "deepseek-v3-tp4": (32, 1, 576, 512),
    "deepseek-v3-dp": (128, 1, 576, 512),
}
SPLITS = 8


def attended(q, k, v, **options):
    """Of (tokens, heads, width): tokens are the last ones that have keys."""
    return attention(*(x.transpose(0, 1)[None] for x in (q, k, v)), **options)[0].transpose(0, 1)


def decode(model, batch, softcap, dtype):
    heads, of_keys, width, of_value = MODELS[model]
    length = 1024
    q, keys = normal(batch, heads, width), normal(batch * length, of_keys, width, dtype=dtype)
    is_part = of_keys == 1 and width != of_value
    values = keys[..., :of_value] if is_part else normal(batch * length, of_keys, width, dtype=dtype)
    starts = torch.arange(batch + 1, dtype=torch.int32) * length
    partial = normal(batch, heads, SPLITS, of_value, dtype=torch.float32)
    sums = normal(batch, heads, SPLITS, dtype=torch.float32)
    splits = torch.full((batch,), SPLITS, dtype=torch.int32)
    out, places = normal(batch, heads, of_value), torch.randperm(batch * length)

    def function(q, keys, values):
        decode_attention_fwd(
            q, keys, values, out, starts, places, partial, sums, splits, SPLITS, width**-0.5, 1.0, 1.0,
            logit_cap=softcap, has_mla=width != of_value,
        )
        return out

    def reference(q, keys, values):
        each = zip(q.split(1), places.split(length))
        return torch.cat([attended(one, keys[of], values[of], softcap=softcap) for one, of in each])

    checked(function, reference, q, keys, values)


def extend(model, window, softcap):
    heads, of_keys, width, of_value = MODELS[model]
    prefix, new = 512, 256
    q, k, v = normal(2 * new, heads, width), normal(2 * new, of_keys, width), normal(2 * new, of_keys, of_value)
    cache = [normal(2 * prefix, of_keys, size) for size in (width, of_value)]
    out, places = normal(2 * new, heads, of_value), torch.randperm(2 * prefix)
    starts = numbers(0, new, 2 * new), numbers(0, prefix, 2 * prefix)

    def function(q, k, v, keys, values):
        extend_attention_fwd(
            q, k, v, out, keys, values, *starts, places, None, True, None, new, 1.0, 1.0,
            sliding_window_size=window, logit_cap=softcap,
        )
        return out

    def reference(q, k, v, keys, values):
        options = {"window": window if window > 0 else None, "softcap": softcap}
        parts = [
            attended(q, torch.cat([keys[of], k]), torch.cat([values[of], v]), **options)
            for q, k, v, of in zip(q.split(new), k.split(new), v.split(new), places.split(prefix))
        ]
        return torch.cat(parts)

    checked(function, reference, q, k, v, *cache)


def prefill(model, causal):
    heads, of_keys, width, _ = MODELS[model]
    q, k, v = (normal(1024, count, width) for count in (heads, of_keys, of_keys))
    out, starts, lengths = torch.zeros_like(q), numbers(0, 512), numbers(512, 512)

    def function(q, k, v):
        context_attention_fwd(q, k, v, out, starts, lengths, 512, causal)
        return out

    def reference(q, k, v):
        return torch.cat([attended(*each, causal=causal) for each in zip(q.split(512), k.split(512), v.split(512))])

    checked(function, reference, q, k, v)


def merge(model):
    def reference(one, of_one, other, of_other):
        share = torch.sigmoid(of_one - of_other)[..., None]
        return one * share + other * (1 - share), torch.logaddexp(of_one, of_other)

    heads, _, _, of_value = MODELS[model]
    one, other = ((normal(256, heads, of_value), normal(256, heads, dtype=torch.float32)) for _ in range(2))
    checked(merge_state_triton, reference, *one, *other)


LAUNCHES = {
    f"{name}-{model}-{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(
        function, model, *words, configs=1
    )
    for model in MODELS
    for name, function, variants in [
        ("decode", decode, [(1, 0.0, torch.bfloat16), (64, 0.0, torch.bfloat16), (64, 30.0, torch.bfloat16)]),
        ("decode", decode, [(64, 0.0, torch.float8_e4m3fn)]),
        ("extend", extend, [(-1, 0.0), (128, 0.0), (-1, 30.0)]),
        ("prefill", prefill, [(True,), (False,)] if MODELS[model][2] == MODELS[model][3] else []),
        ("merge", merge, [()]),
    ]
    for words in variants
}
