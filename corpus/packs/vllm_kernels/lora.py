"""LoRA (punica): shrink and expand of several adapters in one batch, also in float8, and of experts."""

import torch
import vllm_kernels._alone  # noqa: F401, I001
from _tensors import normal
from irdiff_corpus import launch
from vllm.lora.ops.triton_ops.fused_moe_lora_op import _fused_moe_lora
from vllm.lora.ops.triton_ops.lora_expand_op import _lora_expand
from vllm.lora.ops.triton_ops.lora_kernel_metadata import LoRAKernelMeta
from vllm.lora.ops.triton_ops.lora_shrink_op import _lora_shrink
from vllm.lora.ops.triton_ops.utils import get_lora_op_configs

ADAPTERS = 4
LAYERS = {  # elements that go in, that come out of each slice
    "llama3-8b-qkv": (4096, (4096, 1024, 1024)),
    "llama3-8b-gate-up": (4096, (14336, 14336)),
    "llama3-8b-down": (14336, (4096,)),
}
EXPERTS = {  # experts, experts of a token, hidden, intermediate
    "qwen3-30b": (128, 8, 2048, 768),
    "mixtral-8x7b-tp8": (8, 2, 4096, 1792),
}


def meta(tokens):
    made = LoRAKernelMeta.make(ADAPTERS, tokens, "cpu")
    made.prepare_tensors(torch.arange(tokens, dtype=torch.int32) % ADAPTERS)
    return made.meta_args(tokens, False)


def shrink(layer, rank, tokens, dtype):
    inner, outer = LAYERS[layer]
    weights = [normal(ADAPTERS, rank, inner, dtype=dtype) for _ in outer]
    out = normal(len(outer), tokens, rank, dtype=torch.float32)
    _lora_shrink(normal(tokens, inner, dtype=dtype), weights, out, *meta(tokens), 0.5)


def expand(layer, rank, tokens, dtype):
    _, outer = LAYERS[layer]
    weights = [normal(ADAPTERS, size, rank, dtype=dtype) for size in outer]
    inputs = normal(len(outer), tokens, rank, dtype=torch.float32)
    _lora_expand(inputs, weights, normal(tokens, sum(outer), dtype=dtype), *meta(tokens), add_inputs=True)


def experts(model, rank, tokens):
    """Of the first product of experts: gate and up."""
    count, k, hidden, intermediate = EXPERTS[model]
    configs = [
        get_lora_op_configs(f"fused_moe_lora_w13_{name}", ADAPTERS, tokens, hidden, rank, 2, None, intermediate)
        for name in ("shrink", "expand")
    ]
    names = ("block_m", "block_n", "block_k", "group_size_m", "num_warps", "num_stages", "split_k")
    few = tokens * k * 8 <= count * ADAPTERS
    padded = tokens * k + count * (configs[0]["block_m"] - 1)
    padded += -padded % configs[0]["block_m"]
    mapping, _, _, _, ids, _, active = meta(tokens)
    _fused_moe_lora(
        normal(tokens, k, 2 * intermediate), normal(tokens, hidden),
        [normal(ADAPTERS, count, rank, hidden) for _ in range(2)],
        [normal(ADAPTERS, count, intermediate, rank) for _ in range(2)], normal(tokens, k, dtype=torch.float32),
        None if few else torch.zeros(ADAPTERS, padded, dtype=torch.int32),
        torch.zeros(tokens * k, dtype=torch.int32) if few
        else torch.zeros(ADAPTERS, padded // configs[0]["block_m"], dtype=torch.int32),
        None if few else torch.zeros(ADAPTERS, dtype=torch.int32), mapping, rank, k, ids, active,
        torch.ones(ADAPTERS + 1, dtype=torch.int32), *(config[name] for config in configs for name in names),
    )


LAUNCHES = {
    f"{function.__name__}-{layer}-r{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(
        function, layer, *words
    )
    for layers, functions, variants in [
        (LAYERS, (shrink, expand), [(16, 1, torch.bfloat16), (16, 64, torch.bfloat16), (64, 1024, torch.bfloat16)]),
        (("llama3-8b-qkv", "llama3-8b-down"), (shrink, expand), [(8, 64, torch.float16)]),
        (EXPERTS, (experts,), [(16, 1), (16, 64), (64, 1024), (128, 1024)]),
    ]
    for layer in layers
    for function in functions
    for words in variants
}
