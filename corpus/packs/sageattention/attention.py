"""Attention with int8 scores: language and video models."""

import torch
import torch.nn.functional as F
from _tensors import normal
from irdiff_corpus import checked, launch
from sageattention import sageattn, sageattn_varlen

MODELS = {  # heads, heads of keys, elements of a head
    "llama3-8b": (32, 8, 128),
    "wan2-14b": (40, 40, 128),
    "cogvideox-2b": (30, 30, 64),
    "hunyuan": (24, 24, 128),
    "sd3": (24, 24, 64),
    "phi3-mini": (32, 32, 96),
}


OF_INT8 = 0.05
"""Error of a result: scores are of numbers of eight bits, and sums of products are of fp16."""


def attention(q, k, v, causal):
    """Of (heads, tokens, width). Without a mask the kernels take what follows in the last block of 64 keys for
    keys of zeros, after they have taken the mean from all keys.
    """
    k, v = (x if causal else F.pad(x, (0, 0, 0, -x.shape[-2] % 64)) for x in (k, v))
    return F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal, enable_gqa=True)[0]


def dense(model, length, causal, dtype):
    def reference(q, k, v):
        return attention(q[0], (k - k.mean(2, keepdim=True))[0], v[0], causal)[None]

    heads, of_keys, width = MODELS[model]
    q, k, v = (normal(1, count, length, width, dtype=dtype) for count in (heads, of_keys, of_keys))
    checked(lambda *qkv: sageattn(*qkv, is_causal=causal), reference, q, k, v, error=OF_INT8)


def packed(model, lengths, causal):
    def function(q, k, v, starts):
        return sageattn_varlen(q, k, v, starts, starts, max(lengths), max(lengths), is_causal=causal)

    def reference(q, k, v, starts):
        parts = zip(*(x.transpose(0, 1).split(lengths, 1) for x in (q, k - k.mean(0), v)))
        return torch.cat([attention(*part, causal) for part in parts], 1).transpose(0, 1)

    heads, of_keys, width = MODELS[model]
    starts = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).int()
    total = sum(lengths)
    q, k, v = (normal(total, count, width, dtype=torch.float16) for count in (heads, of_keys, of_keys))
    checked(function, reference, q, k, v, starts, error=OF_INT8)


LAUNCHES = {
    f"{model}-{length}-{'causal' if causal else 'full'}-{str(dtype)[6:]}": launch(
        dense, model, length, causal, dtype, configs=1
    )
    for model in MODELS
    for length in (1024, 1300)
    for causal in (False, True)
    for dtype in (torch.float16, torch.bfloat16)
} | {
    f"{model}-packed-{'causal' if causal else 'full'}": launch(packed, model, (300, 512, 212), causal, configs=1)
    for model in MODELS
    for causal in (False, True)
    if MODELS[model][2] != 96
}
