"""Quantization, products of quantized weights, rotary embeddings, and kernels that give each batch the same result."""

import torch
from vllm_kernels._alone import FP8  # first: it makes `vllm` importable
from _models import models
from _tensors import normal
from irdiff_corpus import launch
from vllm.model_executor.determinism.batch_invariant import (
    bmm_batch_invariant,
    log_softmax,
    matmul_persistent,
    mean_dim,
)
from vllm.model_executor.layers.fused_qk_norm_rope import fused_qk_rmsnorm_rope_gate
from vllm.model_executor.layers.quantization.awq_triton import awq_dequantize_triton, awq_gemm_triton
from vllm.model_executor.layers.quantization.compressed_tensors.triton_scaled_mm import triton_scaled_mm
from vllm.model_executor.layers.quantization.utils.fp8_utils import (
    per_token_group_quant_fp8,
    silu_mul_per_token_group_quant_fp8_colmajor,
    w8a8_triton_block_scaled_mm,
)
from vllm.model_executor.layers.quantization.utils.int8_utils import per_token_quant_int8
from vllm.model_executor.layers.quantization.utils.mxfp8_utils import _mxfp8_e4m3_quantize_triton
from vllm.model_executor.layers.rotary_embedding.mrope import triton_mrope
from vllm.models.common.ops.fused_qk_rmsnorm import fused_q_kv_rmsnorm

MODELS = models("llama3-8b", "llama3-70b", "qwen3-4b", "deepseek-v3")
BLOCKS = {  # outputs, inputs; for float8 blocks, where vLLM has tuned configs
    "deepseek-v3-kv-b": (32768, 512),
    "deepseek-v3-o": (7168, 16384),
    "deepseek-v3-tp8-gate-up": (4608, 7168),
    "deepseek-v3-tp8-down": (7168, 2304),
    "deepseek-v3-tp8-q-b": (3072, 1536),
    "qwen3-4b-o": (2560, 4096),
}


def quantize(model, tokens):
    hidden = MODELS[model].hidden
    rows = normal(tokens, hidden)
    per_token_quant_int8(rows)
    _mxfp8_e4m3_quantize_triton(rows)
    silu_mul_per_token_group_quant_fp8_colmajor(normal(tokens, 2 * hidden))


def quantize_view(model, by_column):
    """Where rows are not contiguous; for others vLLM has a CUDA kernel."""
    hidden = MODELS[model].hidden
    per_token_group_quant_fp8(normal(512, 2 * hidden)[:, :hidden], 128, column_major_scales=by_column)


def block_product(name, tokens):
    outer, inner = BLOCKS[name]
    w8a8_triton_block_scaled_mm(
        normal(tokens, inner, dtype=FP8), normal(outer, inner, dtype=FP8), torch.zeros(tokens, -(-inner // 128)),
        torch.zeros(-(-outer // 128), -(-inner // 128)), [128, 128], torch.bfloat16,
    )


def scaled_product(model, tokens, kind, per_token):
    hidden, outer = MODELS[model].hidden, MODELS[model].intermediate
    dtype = FP8 if kind == "fp8" else torch.int8
    a, b = normal(tokens, hidden, dtype=dtype), normal(outer, hidden, dtype=dtype).t()
    scales = [torch.zeros(count if per_token else 1, 1) for count in (tokens, outer)]
    triton_scaled_mm(a, b, *scales, torch.bfloat16)


def awq(model, tokens):
    hidden, outer = MODELS[model].hidden, MODELS[model].intermediate
    weights, zeros = (torch.zeros(rows, outer // 8, dtype=torch.int32) for rows in (hidden, hidden // 128))
    scales = normal(hidden // 128, outer, dtype=torch.float16)
    if tokens:
        awq_gemm_triton(normal(tokens, hidden, dtype=torch.float16), weights, scales, zeros, 8)
    else:
        awq_dequantize_triton(weights, scales, zeros)


def mrope(heads, of_keys, interleaved):
    """Of Qwen's vision models."""
    q, k = normal(512, heads * 128), normal(512, of_keys * 128)
    cos, sin = (normal(3, 512, 64) for _ in range(2))
    triton_mrope(q, k, cos, sin, [24, 20, 20] if interleaved else [16, 24, 24], 128, 128, interleaved, True)


def norm_and_rotate(heads, of_keys, tokens):
    """Of Qwen 3 Next: gate, norms of queries and keys, a quarter of each head rotated."""
    cache, positions = normal(4096, 64), torch.zeros(tokens, dtype=torch.int64)
    fused_qk_rmsnorm_rope_gate(
        normal(tokens, heads * 512), normal(tokens, of_keys * 256), normal(256), normal(256), cache, positions, 1e-6,
        heads, of_keys, 256, 64,
    )


def norms_of_latents(tokens):
    """Of DeepSeek V3."""
    fused_q_kv_rmsnorm(normal(tokens, 1536), normal(tokens, 576)[:, :512], normal(1536), normal(512), 1e-6)


def invariant(model, tokens, dtype):
    sizes = MODELS[model]
    rows = normal(tokens, sizes.hidden, dtype=dtype)
    matmul_persistent(rows, normal(sizes.intermediate, sizes.hidden, dtype=dtype).t())
    bmm_batch_invariant(normal(16, tokens, 128, dtype=dtype), normal(16, 128, 512, dtype=dtype))
    log_softmax(normal(tokens, sizes.vocabulary, dtype=dtype))
    mean_dim(rows, -1)


LAUNCHES = {
    f"{function.__name__.replace('_', '-')}-{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(
        function, *words, configs=1
    )
    for function, variants in [
        (quantize, [("llama3-8b", 512), ("llama3-70b", 512)]),
        (quantize_view, [("deepseek-v3", False), ("deepseek-v3", True)]),
        (block_product, [(name, tokens) for name in BLOCKS for tokens in (1, 64)]),
        (block_product, [(f"deepseek-v3-{name}", tokens) for name in ("o", "tp8-gate-up") for tokens in (512, 4096)]),
        (scaled_product, [("llama3-8b", tokens, "int8", True) for tokens in (1, 64, 512)]),
        (scaled_product, [("llama3-8b", tokens, "fp8", True) for tokens in (1, 64, 512)]),
        (scaled_product, [("llama3-8b", 512, "int8", False), ("qwen3-4b", 64, "fp8", False)]),
        (awq, [("llama3-8b", 0), ("llama3-8b", 1), ("llama3-8b", 64)]),
        (mrope, [(28, 4, False), (16, 2, False), (32, 8, True), (64, 4, True)]),
        (norm_and_rotate, [(16, 2, 512), (4, 1, 512)]),
        (norms_of_latents, [(512,)]),
        (invariant, [("llama3-8b", 512, dtype) for dtype in (torch.bfloat16, torch.float32)]),
        (invariant, [("qwen3-4b", 1, torch.bfloat16)]),
    ]
    for words in variants
}
