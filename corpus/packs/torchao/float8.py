"""Blockwise float8 training, forward and backward products and quantization, and the inference kernels."""

import functools

import torch
from _models import models
from _references import widened
from _tensors import integers, normal, positive
from irdiff_corpus import checked, launch
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


def gemm_forward(model, tokens):
    def reference(a, b, scales, of_b):
        return widened(a, scales, 1, 128) @ widened(b, of_b, 128, 128)

    def product(*inputs):
        return kernels.triton_fp8_gemm_1x128_128x128(*inputs, out_dtype=torch.bfloat16)

    *_, hidden, intermediate, _ = MODELS[model]
    a, b = normal(tokens, hidden, dtype=FP8), normal(intermediate, hidden, dtype=FP8).t()
    scales, of_b = positive(hidden // 128, tokens).t(), positive(intermediate // 128, hidden // 128).t()
    checked(product, reference, a, b, scales, of_b)


def gemm_weights(model, tokens):
    def reference(a, b, scales, of_b):
        return widened(a, scales, 1, 128) @ widened(b, of_b, 128, 1)

    *_, hidden, intermediate, _ = MODELS[model]
    a, b = normal(intermediate, tokens, dtype=FP8), normal(hidden, tokens, dtype=FP8).t()
    scales, of_b = positive(tokens // 128, intermediate).t(), positive(tokens // 128, hidden)
    checked(kernels.triton_fp8_gemm_1x128_128x1, reference, a, b, scales, of_b)


def quantized(x, rows, columns):
    """In blocks of this size, each with a scale."""
    blocks = x.unflatten(0, (-1, rows)).unflatten(-1, (-1, columns))
    scales = blocks.abs().amax((1, 3), keepdim=True).clamp_min(1e-12) / 448
    return (blocks / scales).to(FP8).view(x.shape), scales[:, 0, :, 0]


def quantized_transposed(x, rows, columns):
    return tuple(part.t() for part in quantized(x, rows, columns))


def quantize(model, tokens):
    *_, hidden, intermediate, _ = MODELS[model]
    x, weight = normal(tokens, hidden), normal(intermediate, hidden)
    for function, reference, tensor, *block in (
        (kernels.triton_fp8_blockwise_act_quant_lhs, quantized, x, 1, 128),
        (kernels.triton_fp8_blockwise_act_quant_rhs, quantized, x, 128, 1),
        (kernels.triton_fp8_blockwise_act_quant_transposed_lhs, quantized_transposed, x, 128, 1),
        (kernels.triton_fp8_blockwise_weight_quant_rhs, quantized, weight, 128, 128),
        (kernels.triton_fp8_blockwise_weight_quant_transposed_rhs, quantized_transposed, weight, 128, 128),
    ):
        checked(function, functools.partial(reference, rows=block[0], columns=block[1]), tensor)


def inference(model, tokens):
    def product(a, scales, weight, of_weight):
        return widened(a, scales, 1, 128) @ widened(weight, of_weight, 128, 128).t()

    *_, hidden, intermediate, _ = MODELS[model]
    x, weight = normal(tokens, hidden), normal(intermediate, hidden)
    q, s = checked(fp8_blockwise_act_quant, lambda x: quantized(x, 1, 128), x)
    of_weight, of_scale = checked(fp8_blockwise_weight_quant, lambda x: quantized(x, 128, 128), weight)
    checked(blockwise_fp8_gemm, product, q, s, of_weight, of_scale)
    checked(fp8_blockwise_weight_dequant, lambda x, scales: widened(x, scales, 128, 128), of_weight, of_scale)


def int8(model, tokens):
    def reference(a, b, rows, columns):
        return (a.float() @ b.float()) * rows[:, None] * columns

    *_, hidden, intermediate, _ = MODELS[model]
    a, b = integers(-128, 128, tokens, hidden), integers(-128, 128, hidden, intermediate)
    scales = (positive(n, dtype=torch.bfloat16) for n in (tokens, intermediate))
    checked(scaled_int8_mm_cuda, reference, a, b, *scales)


LAUNCHES = {
    f"{function.__name__.replace('_', '-')}-{model}-{tokens}": launch(function, model, tokens, configs=1)
    for function in (gemm_forward, gemm_weights, quantize, inference, int8)
    for model in MODELS
    for tokens in (128, 2048)
}
