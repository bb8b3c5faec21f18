"""The fused MoE kernel, with each config that SGLang ships as tuned for a model on an H100, and what stands around it."""

import json
from pathlib import Path

import torch
import triton.language as tl
import sglang_kernels._alone  # noqa: F401, I001
from irdiff_corpus import launch
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


def experts(model, tokens, config, second):
    count, k, hidden, intermediate, block, _ = MODELS[model]
    rows, inner, outer = (tokens * k, intermediate, hidden) if second else (tokens, hidden, 2 * intermediate)
    dtype = torch.float8_e4m3fn if block else torch.bfloat16
    a, b = torch.zeros(rows, inner, dtype=dtype), torch.zeros(count, outer, inner, dtype=dtype)
    scales = (None, None)
    if block:
        scales = torch.zeros(rows, inner // block), torch.zeros(count, outer // block, inner // block)
    size = config["BLOCK_SIZE_M"]
    padded = tokens * k + count * size
    ids = torch.zeros(tokens, k, dtype=torch.int32)
    invoke_fused_moe_kernel(
        a, b, None, torch.zeros(tokens, k, outer, dtype=torch.bfloat16), *scales, None, torch.zeros(tokens, k), ids,
        torch.zeros(padded, dtype=torch.int32), torch.zeros(padded // size, dtype=torch.int32),
        torch.zeros(1, dtype=torch.int32), second, 1 if second else k, dict(config), tl.bfloat16, bool(block), False,
        False, False, False, [block, block] if block else None,
    )


def experts_int4(config, second):
    """Kimi K2.5 on one of eight GPUs: weights of four bits, one scale for 32."""
    count, k, hidden, intermediate, group, tokens = 384, 8, 7168, 256, 32, 4096 if config["BLOCK_SIZE_M"] > 16 else 16
    rows, inner, outer = (tokens * k, intermediate, hidden) if second else (tokens, hidden, 2 * intermediate)
    padded = tokens * k + count * config["BLOCK_SIZE_M"]
    invoke_fused_moe_kernel(
        torch.zeros(rows, inner, dtype=torch.bfloat16), torch.zeros(count, outer, inner // 2, dtype=torch.uint8), None,
        torch.zeros(tokens, k, outer, dtype=torch.bfloat16), None,
        torch.zeros(count, outer, inner // group, dtype=torch.bfloat16), None, torch.zeros(tokens, k),
        torch.zeros(tokens, k, dtype=torch.int32), torch.zeros(padded, dtype=torch.int32),
        torch.zeros(padded // config["BLOCK_SIZE_M"], dtype=torch.int32), torch.zeros(1, dtype=torch.int32), second,
        1 if second else k, dict(config), tl.bfloat16, False, False, False, True, False, [0, group],
    )


def around(model, tokens):
    _, k, hidden, intermediate, *_ = MODELS[model]
    gate_up = torch.zeros(tokens * k, 2 * intermediate, dtype=torch.bfloat16)
    ids = torch.zeros(tokens * k, dtype=torch.int32)
    act_and_mul_triton(gate_up, gate_up[:, :intermediate].contiguous(), {"BLOCK_SIZE_M": 64}, ids, ids)
    per_expert = torch.zeros(tokens, k, hidden, dtype=torch.bfloat16)
    moe_sum_reduce_triton(per_expert, per_expert[:, 0].contiguous(), 2.5)
    per_token_quant_int8(per_expert[:, 0].contiguous())
    per_token_group_quant_int8(per_expert[:, 0].contiguous(), 128)


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
