"""Attention with int8 scores: language and video models."""

import torch
from irdiff_corpus import launch
from sageattention import sageattn, sageattn_varlen

MODELS = {  # heads, heads of keys, elements of a head
    "llama3-8b": (32, 8, 128),
    "wan2-14b": (40, 40, 128),
    "cogvideox-2b": (30, 30, 64),
    "hunyuan": (24, 24, 128),
    "sd3": (24, 24, 64),
    "phi3-mini": (32, 32, 96),
}


def dense(model, length, causal, dtype):
    heads, of_keys, width = MODELS[model]

    q, k, v = (torch.zeros(1, count, length, width, dtype=dtype) for count in (heads, of_keys, of_keys))
    sageattn(q, k, v, is_causal=causal)


def packed(model, lengths, causal):
    heads, of_keys, width = MODELS[model]
    starts = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0).int()
    total = sum(lengths)
    q, k, v = (torch.zeros(total, count, width, dtype=torch.float16) for count in (heads, of_keys, of_keys))
    sageattn_varlen(q, k, v, starts, starts, max(lengths), max(lengths), is_causal=causal)


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
