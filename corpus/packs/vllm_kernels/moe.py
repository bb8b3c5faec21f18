"""The fused MoE kernel as vLLM configures it for an H100 (tuned, or by its rule), and what stands around."""

import torch
import triton.language as tl
from vllm_kernels._alone import FP8  # first: it makes `vllm` importable
from _references import widened
from _tensors import integers, normal, numbers, positive, read, rows_by_expert
from irdiff_corpus import checked, launch
from vllm.model_executor.layers.fused_moe.experts.fused_batched_moe import invoke_moe_batched_triton_kernel
from vllm.model_executor.layers.fused_moe.fused_moe import dispatch_fused_moe_kernel, try_get_optimal_moe_config
from vllm.model_executor.layers.fused_moe.moe_fused_mul_sum import moe_fused_mul_sum

MODELS = {  # experts, experts of a token, hidden, intermediate on one GPU, kind of weights
    "mixtral-8x7b-tp8": (8, 2, 4096, 1792, "bf16"),
    "qwen3-30b-tp4": (128, 8, 2048, 192, "bf16"),
    "qwen3-next-tp4": (512, 10, 2048, 128, "bf16"),
    "gpt-oss-120b": (128, 4, 2880, 2880, "bf16"),
    "deepseek-v3-tp16": (256, 8, 7168, 128, "fp8_block"),
    "qwen3-next-fp8-tp2": (512, 10, 2048, 256, "fp8_block"),
    "mixtral-8x7b-fp8-tp4": (8, 2, 4096, 3584, "fp8"),
    "llama4-scout-fp8-tp8": (16, 1, 5120, 1024, "fp8"),
    "mixtral-8x7b-int8-tp8": (8, 2, 4096, 1792, "int8"),
    "dbrx-int8-tp8": (16, 4, 6144, 1344, "int8_w8a16"),
    "mixtral-8x7b-int8-groups-tp8": (8, 2, 4096, 1792, "int8_w8a16_groups"),
    "kimi-k2-int4-tp8": (384, 8, 7168, 256, "int4"),
}
KINDS = {  # type of activations, of weights; the name of the kind in files of configs; blocks of scales
    "bf16": (torch.bfloat16, torch.bfloat16, None, None),
    "fp8": (FP8, FP8, "fp8_w8a8", None),
    "fp8_block": (FP8, FP8, "fp8_w8a8", [128, 128]),
    "int8": (torch.int8, torch.int8, "int8_w8a8", None),
    "int8_w8a16": (torch.bfloat16, torch.int8, "int8_w8a16", None),
    "int8_w8a16_groups": (torch.bfloat16, torch.uint8, "int8_w8a16", [0, 128]),
    "int4": (torch.bfloat16, torch.uint8, "int4_w4a16", [0, 32]),
}
TOKENS = {  # of int4, fewer are CUDA's
    "bf16": (1, 64, 512, 4096),
    "fp8_block": (1, 64, 512, 4096),
    "int8_w8a16_groups": (1, 64),
    "int4": (512,),
}


def experts(model, tokens, second):
    """Weights of eight experts stand for those of all: how many there are is no argument of the kernel."""
    count, k, hidden, intermediate, kind = MODELS[model]
    of_a, of_b, name, block = KINDS[kind]
    rows, inner, outer = (tokens * k, intermediate, hidden) if second else (tokens, hidden, 2 * intermediate)
    packed = 2 if kind == "int4" else 1
    gate_up, down = (count, 2 * intermediate, hidden // packed), (count, hidden, intermediate // packed)
    config = try_get_optimal_moe_config(gate_up, down, k, name, tokens, block)
    padded = tokens * k + count * (config["BLOCK_SIZE_M"] - 1)
    few = tokens * k * 4 <= count and name not in ("int8_w8a16", "int4_w4a16")

    def function(a, b, of_rows, of_weights, weights, ids):
        out = torch.zeros(tokens, k, outer, dtype=torch.bfloat16)
        if few:
            sorted_rows, of_blocks, used = None, ids, numbers(tokens * k * config["BLOCK_SIZE_M"])
        else:
            sorted_rows, of_blocks, used = rows_by_expert(ids, len(b), config["BLOCK_SIZE_M"], padded, len(ids))
        dispatch_fused_moe_kernel(
            a, b, out, of_rows, of_weights, None, weights, sorted_rows, of_blocks, used, second, 1 if second else k,
            config, tl.bfloat16, name == "fp8_w8a8", name == "int8_w8a8", name == "int8_w8a16", name == "int4_w4a16",
            kind == "int8", block,
        )
        return out

    def reference(a, b, of_rows, of_weights, weights, ids):
        a, b = wide(a, of_rows, block, 1).repeat_interleave(1 if second else k, 0), wide(b, of_weights, block)
        out = torch.empty(len(ids), outer)
        for expert in range(len(b)):
            out[ids == expert] = a[ids == expert] @ b[expert].T
        return (out * weights.view(-1, 1) if second else out).view(tokens, k, outer)

    used = read(8, tokens * k)
    inputs = values(rows, inner, dtype=of_a), values(used, *(down if second else gate_up)[1:], dtype=of_b)
    ids = torch.arange(tokens * k, dtype=torch.int32) * 5 % used
    checked(function, reference, *inputs, *scales(kind, block, rows, used, inner, outer), positive(tokens, k), ids)


def values(*shape, dtype):
    return normal(*shape, dtype=dtype) if dtype.is_floating_point else integers(*RANGES[dtype], *shape, dtype=dtype)


RANGES = {torch.int8: (-127, 128), torch.uint8: (0, 256)}


def wide(x, scales, block, rows=None):
    """In float32; of unsigned integers the middle is zero, and two of four bits may share a byte."""
    if x.dtype == torch.uint8:
        four = block[1] == 32
        x = (torch.stack([x & 15, x >> 4], -1).flatten(-2) if four else x).float() - (8 if four else 128)
    if block and scales is not None:
        return widened(x, scales, rows or block[0] or 1, block[1])
    return x.float() if scales is None else x.float() * scales.view(*scales.shape, *(1,) * (x.ndim - scales.ndim))


def scales(kind, block, rows, count, inner, outer):
    """Of the activations, and of the weights."""
    if kind == "fp8_block":
        return positive(rows, inner // 128), positive(count, -(-outer // 128), inner // 128)
    if block:
        return None, positive(count, outer, inner // block[1], dtype=torch.bfloat16)
    if kind == "fp8":
        return positive(1), positive(count)
    if kind == "int8":
        return positive(rows, 1), positive(count, outer, 1)
    return None, positive(count, outer) if kind == "int8_w8a16" else None


def batched(model, tokens):
    """Experts on other GPUs: each takes its tokens from a batch of its own."""
    count, k, hidden, intermediate, kind = MODELS[model]
    of_a, of_b, name, block = KINDS[kind]
    config = try_get_optimal_moe_config(
        (count, 2 * intermediate, hidden), (count, hidden, intermediate), k, name, tokens, block
    )
    count = 8

    def function(a, b, of_rows, of_weights):
        out = torch.zeros(count, tokens, 2 * intermediate, dtype=torch.bfloat16)
        of_rows = None if of_rows is None else of_rows.view(count, tokens, -1)
        invoke_moe_batched_triton_kernel(
            a, b, out, torch.full((count,), tokens, dtype=torch.int32), tl.bfloat16, of_rows, of_weights, None,
            name == "fp8_w8a8", False, False, config, False, block,
        )
        return out

    def reference(a, b, of_rows, of_weights):
        return wide(a.flatten(0, 1), of_rows, block, 1).view(a.shape) @ wide(b, of_weights, block).mT

    a, b = normal(count, tokens, hidden, dtype=of_a), normal(count, 2 * intermediate, hidden, dtype=of_b)
    checked(function, reference, a, b, *scales(kind, block, count * tokens, count, hidden, 2 * intermediate))


def weigh(model, tokens):
    _, k, hidden, _, _ = MODELS[model]
    x, weights = normal(tokens, k, hidden), positive(tokens, k)
    checked(moe_fused_mul_sum, lambda x, weights: (x * weights[..., None]).sum(1), x, weights)


LAUNCHES = {
    f"{model}-{tokens}-{'down' if second else 'up'}": launch(experts, model, tokens, second)
    for model in MODELS
    for tokens in TOKENS.get(MODELS[model][-1], (1, 64, 512))
    for second in (False, True)
} | {
    f"{function.__name__}-{model}-{tokens}": launch(function, model, tokens)
    for function, models, tokens in [
        (batched, ("qwen3-30b-tp4", "deepseek-v3-tp16", "qwen3-next-fp8-tp2"), 64),
        (weigh, ("mixtral-8x7b-tp8", "qwen3-next-tp4", "gpt-oss-120b", "llama4-scout-fp8-tp8"), 512),
        (weigh, ("deepseek-v3-tp16",), 512),
    ]
    for model in models
}
