"""LoRA (punica): shrink and expand of several adapters in one batch, also in float8, and of experts."""

import itertools

import torch
import vllm_kernels._alone  # noqa: F401, I001
from _tensors import integers, normal, rows_by_expert
from irdiff_corpus import checked, launch
from vllm.lora.ops.triton_ops.fused_moe_lora_op import _fused_moe_lora
from vllm.lora.ops.triton_ops.lora_expand_op import _lora_expand
from vllm.lora.ops.triton_ops import utils
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
    """Of tokens whose adapters take turns; vLLM finds weights by address, and another launch's had them before."""
    utils._LORA_A_PTR_DICT.clear()
    utils._LORA_B_PTR_DICT.clear()
    made = LoRAKernelMeta.make(ADAPTERS, tokens, torch.get_default_device())
    made.prepare_tensors(torch.arange(tokens, dtype=torch.int32) % ADAPTERS)
    return made.meta_args(tokens, False)


def by_adapter(x, weights):
    out = torch.empty(len(x), weights.shape[1])
    for adapter in range(ADAPTERS):
        out[adapter::ADAPTERS] = x[adapter::ADAPTERS] @ weights[adapter].T
    return out


def shrink(layer, rank, tokens, dtype):
    inner, outer = LAYERS[layer]
    of_tokens = meta(tokens)

    def function(x, *weights):
        out = torch.zeros(len(outer), tokens, rank)
        _lora_shrink(x, list(weights), out, *of_tokens, 0.5)
        return out

    def reference(x, *weights):
        return torch.stack([by_adapter(x, of_slice) / 2 for of_slice in weights])

    weights = [normal(ADAPTERS, rank, inner, dtype=dtype) for _ in outer]
    checked(function, reference, normal(tokens, inner, dtype=dtype), *weights)


def expand(layer, rank, tokens, dtype):
    _, outer = LAYERS[layer]
    of_tokens = meta(tokens)

    def function(out, x, *weights):
        _lora_expand(x, list(weights), out, *of_tokens, add_inputs=True)
        return out

    def reference(out, x, *weights):
        return out + torch.cat([by_adapter(*pair) for pair in zip(x, weights)], -1)

    weights = [normal(ADAPTERS, size, rank, dtype=dtype) for size in outer]
    x = normal(len(outer), tokens, rank, dtype=torch.float32)
    checked(function, reference, normal(tokens, sum(outer), dtype=dtype), x, *weights)


def experts(model, rank, tokens):
    """Of the first product of experts: gate and up."""
    count, k, hidden, intermediate = EXPERTS[model]
    configs = [
        get_lora_op_configs(f"fused_moe_lora_w13_{name}", ADAPTERS, tokens, hidden, rank, 2, None, intermediate)
        for name in ("shrink", "expand")
    ]
    names = ("block_m", "block_n", "block_k", "group_size_m", "num_warps", "num_stages", "split_k")
    few = tokens * k * 8 <= count * ADAPTERS
    block = configs[0]["block_m"]
    padded = tokens * k + count * (block - 1)
    padded += -padded % block
    mapping, _, _, _, active_ids, _, active = meta(tokens)

    def function(out, x, weights, ids):
        rows, of_blocks, used = None, ids, None
        if not few:
            rows, of_blocks, used = map(torch.stack, zip(*(of_adapter(ids, adapter) for adapter in range(ADAPTERS))))
        _fused_moe_lora(
            out, x, [gate, up], [of_gate, of_up], weights, rows, of_blocks, used, mapping, rank, k, active_ids, active,
            torch.ones(ADAPTERS + 1, dtype=torch.int32), *(config[name] for config in configs for name in names),
        )
        return out

    def of_adapter(ids, adapter):
        """Rows of other adapters are of no expert, which comes last."""
        ids = torch.where(torch.arange(tokens).repeat_interleave(k) % ADAPTERS == adapter, ids, count)
        rows, of_blocks, used = rows_by_expert(ids, count + 1, block, padded, len(ids))
        return rows, torch.where(of_blocks == count, -1, of_blocks)[: padded // block], used[0]

    def reference(out, x, weights, ids):
        added, of_token = torch.zeros(tokens, k, 2, intermediate), torch.arange(tokens)[:, None] % ADAPTERS
        for adapter, expert in itertools.product(range(ADAPTERS), range(count)):
            token, place = ((ids.view(tokens, k) == expert) & (of_token == adapter)).nonzero(as_tuple=True)
            for slice_, pair in enumerate(((gate, of_gate), (up, of_up))):
                down, back = (weights[adapter, expert].float().T for weights in pair)
                added[token, place, slice_] = x[token] @ down @ back
        return out + added.flatten(2)

    gate, up = (normal(ADAPTERS, count, rank, hidden) for _ in range(2))  # of which few tokens read few
    of_gate, of_up = (normal(ADAPTERS, count, intermediate, rank) for _ in range(2))
    checked(
        function, reference, normal(tokens, k, 2 * intermediate), normal(tokens, hidden),
        normal(tokens, k, dtype=torch.float32), integers(0, count, tokens * k, dtype=torch.int32),
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
