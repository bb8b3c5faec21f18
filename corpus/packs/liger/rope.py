"""Rotary embeddings of Llama, Llama 4 and Qwen2-VL, and the embedding table: forward and backward."""

import torch
from irdiff_corpus import launch
from liger._calls import DTYPES, normal, train
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction
from liger_kernel.ops.llama4_rope import LigerLlama4RopeFunction
from liger_kernel.ops.qwen2vl_mrope import LigerQwen2VLMRopeFunction
from liger_kernel.ops.rope import LigerRopeFunction

TOKENS = 512


def rope(heads, kv_heads, dim, dtype=torch.bfloat16):
    q, k = (normal(2, count, TOKENS, dim, dtype=dtype) for count in (heads, kv_heads))
    angles = [torch.zeros(1, TOKENS, dim, dtype=dtype) for _ in range(2)]
    train(LigerRopeFunction, q, k, *angles)


def llama4(heads, kv_heads, dim):
    q, k = normal(2, TOKENS, heads, dim), normal(2, TOKENS, kv_heads, dim)
    train(LigerLlama4RopeFunction, q, k, torch.zeros(TOKENS, dim // 2, dtype=torch.complex64))


def mrope(heads, kv_heads, dim):
    q, k = normal(2, heads, TOKENS, dim), normal(2, kv_heads, TOKENS, dim)
    angles = [torch.zeros(3, 2, TOKENS, dim, dtype=torch.bfloat16) for _ in range(2)]
    train(LigerQwen2VLMRopeFunction, q, k, *angles, [16, 24, 24])


def embedding(vocabulary, dim):
    train(LigerEmbeddingFunction, normal(vocabulary, dim), torch.zeros(4, TOKENS, dtype=torch.int64))


LAUNCHES = {
    "llama-32-8-128": launch(rope, 32, 8, 128, tier="gate"),
    "gemma-8-4-256": launch(rope, 8, 4, 256),
    "llama4-40-8-128": launch(llama4, 40, 8, 128),
    "qwen2vl-28-4-128": launch(mrope, 28, 4, 128),
    "embedding-32000-4096": launch(embedding, 32000, 4096),
} | {
    f"{model}-{word}": launch(rope, *shape, dtype=dtype)
    for model, shape in {
        "llama3-70b": (64, 8, 128),
        "llama3-405b": (128, 8, 128),
        "llama3-1b": (32, 8, 64),
        "qwen3-0.6b": (16, 8, 128),
        "qwen2.5-7b": (28, 4, 128),
        "qwen3-30b": (32, 4, 128),
        "mistral-nemo": (32, 8, 128),
        "gemma3-27b": (32, 16, 128),
        "gemma2-9b": (16, 8, 256),
        "phi3-mini": (32, 32, 96),
    }.items()
    for word, dtype in DTYPES.items()
}
