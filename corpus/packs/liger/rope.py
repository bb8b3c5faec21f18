"""Rotary embeddings of Llama, Llama 4 and Qwen2-VL, and the embedding table: forward and backward."""

import torch
import torch.nn.functional as F
from _references import rotated
from _tensors import normal
from irdiff_corpus import launch, trained
from liger._calls import DTYPES
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction
from liger_kernel.ops.llama4_rope import LigerLlama4RopeFunction
from liger_kernel.ops.qwen2vl_mrope import LigerQwen2VLMRopeFunction
from liger_kernel.ops.rope import LigerRopeFunction

TOKENS = 512


def rope(heads, kv_heads, dim, dtype=torch.bfloat16):
    def reference(q, k, *tables):
        halves = [table[:, None, :, : dim // 2] for table in tables]
        return rotated(q, *halves), rotated(k, *halves)

    q_k = (normal(2, count, TOKENS, dim, dtype=dtype) for count in (heads, kv_heads))
    trained(LigerRopeFunction.apply, reference, *q_k, *(normal(1, TOKENS, dim, dtype=dtype) for _ in range(2)))


def llama4(heads, kv_heads, dim):
    def reference(*q_k_angles):
        *q_k, angles = q_k_angles
        pairs = (torch.view_as_complex(x.unflatten(-1, (-1, 2))) * angles[:, None] for x in q_k)
        return tuple(torch.view_as_real(x).flatten(-2) for x in pairs)

    angles = normal(TOKENS, dim // 2, dtype=torch.float32)
    q_k = (normal(2, TOKENS, count, dim) for count in (heads, kv_heads))
    trained(LigerLlama4RopeFunction.apply, reference, *q_k, torch.polar(torch.ones_like(angles), angles))


def mrope(heads, kv_heads, dim):
    sections = [16, 24, 24]

    def reference(q, k, *tables):
        parts = (table[..., : dim // 2].split(sections, -1) for table in tables)
        halves = [torch.cat([part[place][place] for place in range(3)], -1)[:, None] for part in parts]
        return rotated(q, *halves), rotated(k, *halves)

    q_k = (normal(2, count, TOKENS, dim) for count in (heads, kv_heads))
    tables = (normal(3, 2, TOKENS, dim) for _ in range(2))
    trained(lambda *x: LigerQwen2VLMRopeFunction.apply(*x, sections), reference, *q_k, *tables)


def embedding(vocabulary, dim):
    tokens = torch.randint(vocabulary, (4, TOKENS))
    trained(LigerEmbeddingFunction.apply, lambda table, x: F.embedding(x, table), normal(vocabulary, dim), tokens)


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
