"""Shapes of models that packs share. A dense layer, on one GPU; experts by what one token takes."""

from typing import NamedTuple


class Model(NamedTuple):
    heads: int
    of_keys: int
    """Heads of keys."""
    width: int
    """Elements of a head."""
    hidden: int
    intermediate: int
    vocabulary: int


MODELS = {
    "llama3-8b": Model(32, 8, 128, 4096, 14336, 128256),
    "llama3-70b": Model(64, 8, 128, 8192, 28672, 128256),
    "qwen3-4b": Model(32, 8, 128, 2560, 9728, 151936),
    "qwen3-32b": Model(64, 8, 128, 5120, 25600, 151936),
    "mistral-7b": Model(32, 8, 128, 4096, 14336, 32768),
    "gemma3-4b": Model(8, 4, 256, 2560, 10240, 262208),
    "deepseek-v3": Model(128, 128, 192, 7168, 18432, 129280),
}

MAMBA = {  # heads, elements of a head, groups, elements of the state, chunk
    "mamba2-2.7b": (80, 64, 1, 128, 256),
    "nemotron-h-8b": (128, 64, 8, 128, 128),
    "granite4-tiny": (48, 64, 1, 128, 256),
    "zamba2-7b": (112, 64, 2, 64, 256),
    "mamba2-130m": (24, 64, 1, 128, 256),
    "falcon-h1-34b": (32, 128, 2, 256, 128),
    "codestral-mamba-tp2": (64, 64, 4, 128, 256),
}


def models(*names):
    return {name: MODELS[name] for name in names}
