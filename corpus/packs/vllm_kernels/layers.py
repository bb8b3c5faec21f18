"""Quantization, products of quantized weights, rotary embeddings, and kernels that give each batch the same result."""

import torch
import torch.nn.functional as F
from vllm_kernels._alone import FP8  # first: it makes `vllm` importable
from _models import models
from _references import rotated, widened
from _tensors import integers, normal, positive
from irdiff_corpus import checked, launch
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


def quantized(x, group, largest):
    """Before they are rounded to float8, and the scales of groups of a row."""
    scales = x.unflatten(-1, (-1, group)).abs().amax(-1) / largest
    return x / scales.repeat_interleave(group, -1), scales


ROUNDED = 0.05  # what three bits of a mantissa leave
LARGEST = torch.finfo(FP8).max


def quantize(model, tokens):
    def to_int8(x):
        rows, scales = quantized(x, hidden, 127)
        return rows.round(), scales

    def by_powers(x):
        _, scales = quantized(x, 32, LARGEST)
        exponents = scales.log2().ceil()
        return x / exponents.exp2().repeat_interleave(32, -1), exponents + 127

    def gated(x):
        gate, other = x.chunk(2, -1)
        return quantized(F.silu(gate) * other, 128, LARGEST)

    hidden = MODELS[model].hidden
    rows = normal(tokens, hidden)
    checked(per_token_quant_int8, to_int8, rows)
    checked(_mxfp8_e4m3_quantize_triton, by_powers, rows, error=ROUNDED)
    checked(silu_mul_per_token_group_quant_fp8_colmajor, gated, normal(tokens, 2 * hidden), error=ROUNDED)


def quantize_view(model, by_column):
    """Where rows are not contiguous; for others vLLM has a CUDA kernel."""
    hidden = MODELS[model].hidden
    checked(
        lambda x: per_token_group_quant_fp8(x[:, :hidden], 128, column_major_scales=by_column),
        lambda x: quantized(x[:, :hidden], 128, LARGEST), normal(512, 2 * hidden), error=ROUNDED,
    )


def block_product(name, tokens):
    def product(a, b, of_rows, of_blocks):
        return w8a8_triton_block_scaled_mm(a, b, of_rows, of_blocks, [128, 128], torch.bfloat16)

    def reference(a, b, of_rows, of_blocks):
        return widened(a, of_rows, 1, 128) @ widened(b, of_blocks, 128, 128).T

    outer, inner = BLOCKS[name]
    scales = positive(tokens, -(-inner // 128)), positive(-(-outer // 128), -(-inner // 128))
    checked(product, reference, normal(tokens, inner, dtype=FP8), normal(outer, inner, dtype=FP8), *scales)


def scaled_product(model, tokens, kind, per_token):
    def product(a, b, of_a, of_b):
        return triton_scaled_mm(a, b.t(), of_a, of_b, torch.bfloat16)

    hidden, outer = MODELS[model].hidden, MODELS[model].intermediate
    a, b = (
        normal(count, hidden, dtype=FP8) if kind == "fp8" else integers(-127, 128, count, hidden)
        for count in (tokens, outer)
    )
    scales = [positive(count if per_token else 1, 1) for count in (tokens, outer)]
    checked(product, lambda a, b, of_a, of_b: (a.float() * of_a) @ (b.float() * of_b).T, a, b, *scales)


def awq(model, tokens):
    def unpacked(packed):
        return torch.stack([(packed >> 4 * place) & 15 for place in (0, 4, 1, 5, 2, 6, 3, 7)], -1).flatten(-2)

    def wide(weights, scales, zeros):
        return (unpacked(weights) - unpacked(zeros).repeat_interleave(128, 0)) * scales.repeat_interleave(128, 0)

    hidden, outer = MODELS[model].hidden, MODELS[model].intermediate
    weights, zeros = (
        integers(-(2**31), 2**31, rows, outer // 8, dtype=torch.int32) for rows in (hidden, hidden // 128)
    )
    scales = positive(hidden // 128, outer, dtype=torch.float16)
    if not tokens:
        checked(awq_dequantize_triton, wide, weights, scales, zeros)
        return
    checked(
        lambda x, *packed: awq_gemm_triton(x, *packed, 8), lambda x, *packed: x @ wide(*packed),
        normal(tokens, hidden, dtype=torch.float16), weights, scales, zeros, error=0.02,  # it sums in fp16
    )


def mrope(heads, of_keys, interleaved):
    """Of Qwen's vision models."""

    def function(q, k, cos, sin):
        return triton_mrope(q, k, cos, sin, [24, 20, 20] if interleaved else [16, 24, 24], 128, 128, interleaved, True)

    def reference(q, k, cos, sin):
        place = torch.arange(64)
        of_time, of_height, of_width = place < 16, (place >= 16) & (place < 40), place >= 40
        if interleaved:
            of_height, of_width = (place % 3 == 1) & (place <= 60), (place % 3 == 2) & (place <= 60)
            of_time = ~of_height & ~of_width
        parts = torch.stack([of_time, of_height, of_width])[:, None]
        cos, sin = ((values * parts).sum(0)[:, None] for values in (cos, sin))
        return tuple(rotated(x.unflatten(-1, (-1, 128)), cos, sin).flatten(1) for x in (q, k))

    q, k = normal(512, heads * 128), normal(512, of_keys * 128)
    checked(function, reference, q, k, *(normal(3, 512, 64) for _ in range(2)))


def norm_and_rotate(heads, of_keys, tokens):
    """Of Qwen 3 Next: gate, norms of queries and keys, a quarter of each head rotated."""
    positions = torch.arange(tokens)

    def function(*inputs):
        return fused_qk_rmsnorm_rope_gate(*inputs, positions, 1e-6, heads, of_keys, 256, 64)

    def reference(q, k, of_q, of_k, cache):
        q, gate = q.unflatten(-1, (heads, 2, 256)).unbind(2)
        cos, sin = cache[positions, None].chunk(2, -1)
        out = []
        for x, weight in ((q, of_q), (k.unflatten(-1, (of_keys, 256)), of_k)):
            x = F.rms_norm(x, (256,), weight, 1e-6)
            out.append(torch.cat([rotated(x[..., :64], cos, sin), x[..., 64:]], -1).flatten(1))
        return *out, gate.flatten(1)

    q, k = normal(tokens, heads * 512), normal(tokens, of_keys * 256)
    checked(function, reference, q, k, normal(256), normal(256), normal(4096, 64))


def norms_of_latents(tokens):
    """Of DeepSeek V3."""

    def reference(q, kv, of_q, of_kv):
        return F.rms_norm(q, (1536,), of_q, 1e-6), F.rms_norm(kv[:, :512], (512,), of_kv, 1e-6)

    checked(
        lambda q, kv, *weights: fused_q_kv_rmsnorm(q, kv[:, :512], *weights, 1e-6), reference,
        normal(tokens, 1536), normal(tokens, 576), normal(1536), normal(512),
    )


def invariant(model, tokens, dtype):
    sizes = MODELS[model]
    rows, weights = normal(tokens, sizes.hidden, dtype=dtype), normal(sizes.intermediate, sizes.hidden, dtype=dtype)
    checked(lambda x, weights: matmul_persistent(x, weights.t()), lambda x, weights: x @ weights.T, rows, weights)
    pair = normal(16, tokens, 128, dtype=dtype), normal(16, 128, 512, dtype=dtype)
    checked(bmm_batch_invariant, torch.bmm, *pair)
    checked(log_softmax, lambda x: x.log_softmax(-1), normal(tokens, sizes.vocabulary, dtype=dtype))
    checked(lambda x: mean_dim(x, -1), lambda x: x.mean(-1), rows)


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
