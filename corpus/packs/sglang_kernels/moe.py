"""The fused MoE kernel, with each config that SGLang ships as tuned for a model on an H100, and what stands around it."""

import json
from pathlib import Path

import torch
import torch.nn.functional as F
import triton.language as tl
import sglang_kernels._alone  # noqa: F401, I001
from _references import widened
from _tensors import integers, normal, positive, read, rows_by_expert
from irdiff_corpus import checked, launch
import sglang
from sglang.kernels.ops.moe.fused_moe_triton_kernels import (
    act_and_mul_triton,
    invoke_fused_moe_kernel,
    moe_sum_reduce_triton,
)
from sglang.kernels.ops.quantization.int8_kernel import per_token_group_quant_int8, per_token_quant_int8

MODELS = {  # experts, experts of a token, hidden, intermediate on one GPU, block of float8 scales, file of configs
    "deepseek-v3-tp16": (256, 8, 7168, 128, 128, "E=256,N=128,*H100*HBM3,dtype=fp8_w8a8,block_shape=?128, 128?.json"),
    "qwen3-30b-fp8-tp2": (128, 8, 2048, 384, 128, "E=128,N=384,*H100*HBM3,dtype=fp8_w8a8,block_shape=?128, 128?.json"),
    "qwen3-30b": (128, 8, 2048, 768, None, "E=128,N=768,*H100*HBM3.json"),
    "mixtral-8x7b-tp8": (8, 2, 4096, 1792, None, "E=8,N=1792,*H100*HBM3.json"),
}
DEFAULTS = {  # what is taken where no config is tuned
    name: dict(zip(("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M"), sizes))
    for name, sizes in [("decode", (16, 32, 64, 1)), ("prefill", (64, 64, 32, 8))]
}
CONFIGS = Path(sglang.__path__[0]) / "srt/layers/moe/moe_runner/triton_utils/configs"


def configs(pattern):
    """{tokens: config}, each config once; of the newest release of Triton that has them."""
    return of_file(max(CONFIGS.glob(f"*/{pattern}"), key=lambda path: path.parent.name))


def of_file(path):
    first = {}
    for tokens, config in json.loads(path.read_text(encoding="utf-8")).items():
        if tokens.isdigit():
            config.pop("USE_TMA", None)  # the wrapper's own
            first.setdefault(json.dumps(config), int(tokens))
    return {tokens: json.loads(text) for text, tokens in first.items()}


def shares(*shape):
    return normal(*shape, dtype=torch.float32).sigmoid()


def routed(tokens, k, count, size):
    """Experts of each token; its places by expert, each expert's padded to whole blocks; expert of a block; their length."""
    ids = torch.arange(tokens * k).view(tokens, k) % count
    padded = tokens * k + count * size
    return ids.int(), *rows_by_expert(ids.flatten(), count, size, padded, padded // size)


def multiplied(a, table, weights, ids, second):
    """Each token, or each token's row of an expert, times the table of the expert."""
    rows = ids.flatten()
    out = torch.empty(len(rows), len(table(0)))
    for expert in rows.unique():
        place = (rows == expert).nonzero()[:, 0]
        out[place] = a[place if second else place // ids.shape[1]] @ table(expert).T
    out = out.view(*ids.shape, -1)
    return out * weights[..., None] if second else out


def experts(model, tokens, config, second):
    count, k, hidden, intermediate, block, _ = MODELS[model]
    count = read(count, tokens * k)
    rows, inner, outer = (tokens * k, intermediate, hidden) if second else (tokens, hidden, 2 * intermediate)
    dtype = torch.float8_e4m3fn if block else torch.bfloat16
    a, b = normal(rows, inner, dtype=dtype), normal(count, outer, inner, dtype=dtype)
    scales = (None, None)
    if block:
        scales = positive(rows, inner // block), positive(count, outer // block, inner // block)
    out = torch.zeros(tokens, k, outer, dtype=torch.bfloat16)
    ids, *routing = routed(tokens, k, count, config["BLOCK_SIZE_M"])

    def function(a, b, of_a, of_b, weights, ids):
        invoke_fused_moe_kernel(
            a, b, None, out, of_a, of_b, None, weights, ids, *routing, second, 1 if second else k, dict(config),
            tl.bfloat16, bool(block), False, False, False, False, [block, block] if block else None,
        )
        return out

    def reference(a, b, of_a, of_b, weights, ids):
        def table(expert):
            return widened(b[expert], of_b[expert], block, block) if block else b[expert]

        return multiplied(widened(a, of_a, 1, block) if block else a, table, weights, ids, second)

    checked(function, reference, a, b, *scales, shares(tokens, k), ids)


def experts_int4(config, second):
    """Kimi K2.5 on one of eight GPUs: weights of four bits, one scale for 32."""
    count, k, hidden, intermediate, group, tokens = 384, 8, 7168, 256, 32, 4096 if config["BLOCK_SIZE_M"] > 16 else 16
    count = read(count, tokens * k)
    rows, inner, outer = (tokens * k, intermediate, hidden) if second else (tokens, hidden, 2 * intermediate)
    a, b = normal(rows, inner), integers(0, 256, count, outer, inner // 2, dtype=torch.uint8)
    out = torch.zeros(tokens, k, outer, dtype=torch.bfloat16)
    ids, *routing = routed(tokens, k, count, config["BLOCK_SIZE_M"])

    def function(a, b, scales, weights, ids):
        invoke_fused_moe_kernel(
            a, b, None, out, None, scales, None, weights, ids, *routing, second, 1 if second else k, dict(config),
            tl.bfloat16, False, False, False, True, False, [0, group],
        )
        return out

    def reference(a, b, scales, weights, ids):
        def table(expert):
            pairs = torch.stack([b[expert] & 15, b[expert] >> 4], -1)
            return widened(pairs.flatten(-2).float() - 8, scales[expert], 1, group)

        return multiplied(a, table, weights, ids, second)

    checked(function, reference, a, b, normal(count, outer, inner // group), shares(tokens, k), ids)


def around(model, tokens):
    def activate(x, out):
        act_and_mul_triton(x, out, {"BLOCK_SIZE_M": 64}, ids, ids)
        return out

    def activated(x, _):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    def reduce(x, out):
        moe_sum_reduce_triton(x, out, 2.5)
        return out

    def quantized(x):
        scales = x.abs().amax(-1, keepdim=True) / 127
        return (x / scales).round(), scales

    def quantized_groups(x, size):
        groups = x.unflatten(-1, (-1, size))
        scales = groups.abs().amax(-1) / 127
        return (groups / scales[..., None]).trunc().flatten(-2), scales

    _, k, hidden, intermediate, *_ = MODELS[model]
    gate_up = normal(tokens * k, 2 * intermediate)
    ids = torch.zeros(tokens * k, dtype=torch.int32)
    checked(activate, activated, gate_up, gate_up[:, :intermediate].contiguous())
    per_expert = normal(tokens, k, hidden)
    checked(reduce, lambda x, _: 2.5 * x.sum(1), per_expert, per_expert[:, 0].contiguous())
    checked(per_token_quant_int8, quantized, per_expert[:, 0].contiguous())
    checked(per_token_group_quant_int8, quantized_groups, per_expert[:, 0].contiguous(), 128)


LAUNCHES = {
    f"{model}-{tokens}-{'down' if second else 'up'}": launch(experts, model, tokens, config, second)
    for model, row in MODELS.items()
    for tokens, config in configs(row[-1]).items()
    for second in (False, True)
} | {
    f"kimi-k2.5-int4-tp8-{name}-{'down' if second else 'up'}": launch(experts_int4, config, second)
    for name, config in DEFAULTS.items()
    for second in (False, True)
} | {f"{model}-around-512": launch(around, model, 512, configs=1) for model in MODELS}
