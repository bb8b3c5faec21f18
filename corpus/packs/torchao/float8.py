"""Blockwise float8 training, forward and backward products and quantization, and the inference kernels."""

import torch
from _models import models
from irdiff_corpus import launch
from torchao.kernel.blockwise_quantization import (
    blockwise_fp8_gemm,
    fp8_blockwise_act_quant,
    fp8_blockwise_weight_dequant,
    fp8_blockwise_weight_quant,
)
from torchao.prototype.blockwise_fp8_training import kernels
from torchao.prototype.quantized_training.int8_mm import scaled_int8_mm_cuda

MODELS = models("llama3-8b", "llama3-70b", "qwen3-4b", "deepseek-v3")
FP8 = torch.float8_e4m3fn


def column_major(*shape, dtype):
    return torch.zeros(*reversed(shape), dtype=dtype).t()


def gemm_forward(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    a, b = torch.zeros(tokens, hidden, dtype=FP8), column_major(hidden, intermediate, dtype=FP8)
    scales = column_major(tokens, hidden // 128, dtype=torch.float32)
    of_b = column_major(hidden // 128, intermediate // 128, dtype=torch.float32)
    kernels.triton_fp8_gemm_1x128_128x128(a, b, scales, of_b, out_dtype=torch.bfloat16)


def gemm_weights(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    a, b = torch.zeros(intermediate, tokens, dtype=FP8), torch.zeros(tokens, hidden, dtype=FP8)
    scales = column_major(intermediate, tokens // 128, dtype=torch.float32)
    kernels.triton_fp8_gemm_1x128_128x1(a, column_major(tokens, hidden, dtype=FP8), scales, torch.zeros(tokens // 128, hidden))


def quantize(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    x, weight = torch.zeros(tokens, hidden, dtype=torch.bfloat16), torch.zeros(intermediate, hidden, dtype=torch.bfloat16)
    kernels.triton_fp8_blockwise_act_quant_lhs(x)
    kernels.triton_fp8_blockwise_act_quant_rhs(x)
    kernels.triton_fp8_blockwise_act_quant_transposed_lhs(x)
    kernels.triton_fp8_blockwise_weight_quant_rhs(weight)
    kernels.triton_fp8_blockwise_weight_quant_transposed_rhs(weight)


def inference(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    x, weight = torch.zeros(tokens, hidden, dtype=torch.bfloat16), torch.zeros(intermediate, hidden, dtype=torch.bfloat16)
    q, s = fp8_blockwise_act_quant(x)
    of_weight, of_scale = fp8_blockwise_weight_quant(weight)
    blockwise_fp8_gemm(q, s, of_weight, of_scale)
    fp8_blockwise_weight_dequant(of_weight, of_scale)


def int8(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    a, b = torch.zeros(tokens, hidden, dtype=torch.int8), torch.zeros(hidden, intermediate, dtype=torch.int8)
    scaled_int8_mm_cuda(a, b, torch.zeros(tokens, dtype=torch.bfloat16), torch.zeros(intermediate, dtype=torch.bfloat16))


LAUNCHES = {
    f"{function.__name__.replace('_', '-')}-{model}-{tokens}": launch(function, model, tokens, configs=1)
    for function in (gemm_forward, gemm_weights, quantize, inference, int8)
    for model in MODELS
    for tokens in (128, 2048)
}
