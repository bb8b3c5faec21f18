"""RMS norm and its relatives, layer norm, group norm, DyT, poly norm: forward and backward."""

from irdiff_corpus import launch, trained
from _tensors import normal
from liger._calls import DTYPES
from liger_kernel.ops.dyt import LigerDyTFunction
from liger_kernel.ops.fused_add_rms_norm import LigerFusedAddRMSNormFunction
from liger_kernel.ops.group_norm import LigerGroupNormFunction
from liger_kernel.ops.layer_norm import LigerLayerNormFunction
from liger_kernel.ops.modulated_rms_norm import LigerModulatedRMSNormFunction
from liger_kernel.ops.poly_norm import LigerPolyNormFunction
from liger_kernel.ops.rms_norm import LigerRMSNormFunction
import torch
import torch.nn.functional as F

ROWS = 2048


def rms(n, casting, offset=0.0, rows=ROWS, row_mode=None, dtype=torch.bfloat16):
    def rms_norm(x, weight):
        return LigerRMSNormFunction.apply(x, weight, 1e-6, offset, casting, False, row_mode)

    x, weight = normal(rows, n, dtype=dtype), normal(n, dtype=dtype)
    trained(rms_norm, lambda x, weight: F.rms_norm(x, (n,), weight + offset, 1e-6), x, weight)


def layer(n, dtype=torch.bfloat16):
    def layer_norm(x, weight, bias):
        return LigerLayerNormFunction.apply(x, weight, bias, 1e-5)

    inputs = (normal(*shape, dtype=dtype) for shape in ((ROWS, n), (n,), (n,)))
    trained(layer_norm, lambda x, weight, bias: F.layer_norm(x, (n,), weight, bias, 1e-5), *inputs)


def group(channels, groups):
    def group_norm(x, weight, bias):
        return LigerGroupNormFunction.apply(x, weight, bias, channels, groups, 1e-5)

    inputs = (normal(*shape, dtype=torch.float32) for shape in ((8, channels, 1024), (channels,), (channels,)))
    trained(group_norm, lambda x, weight, bias: F.group_norm(x, groups, weight, bias, 1e-5), *inputs)


def add_rms(n, dtype=torch.bfloat16):
    def reference(x, residual, weight):
        total = x + residual
        return F.rms_norm(total, (n,), weight, 1e-6), total

    inputs = (normal(*shape, dtype=dtype) for shape in ((ROWS, n), (ROWS, n), (n,)))
    trained(lambda *x: LigerFusedAddRMSNormFunction.apply(*x, 1e-6), reference, *inputs)


def modulated_rms(n):
    def reference(x, weight, scale, shift):
        return (1 + scale[:, None]) * F.rms_norm(x, (n,), weight, 1e-6) + shift[:, None]

    inputs = normal(4, 512, n), normal(n), normal(4, n), normal(4, n)
    trained(lambda *x: LigerModulatedRMSNormFunction.apply(*x, 1e-6), reference, *inputs)


def dyt(n):
    def reference(x, alpha, gamma, beta):
        return torch.tanh(alpha * x) * gamma + beta

    trained(LigerDyTFunction.apply, reference, normal(ROWS, n), normal(1), normal(n), normal(n))


def poly(n):
    def reference(x, weights, bias):
        return bias + sum(w * F.rms_norm(x**power, (n,), eps=1e-6) for w, power in zip(weights, (3, 2, 1)))

    trained(LigerPolyNormFunction.apply, reference, normal(ROWS, n), normal(3), normal())


LAUNCHES = {
    "rms-llama-4096": launch(rms, 4096, "llama", tier="gate"),
    "rms-gemma-3072": launch(rms, 3072, "gemma", 1.0),
    "rms-none-8192": launch(rms, 8192, "none"),
    "rms-block-128": launch(rms, 128, "llama", rows=65536),
    "layer-4096": launch(layer, 4096, tier="gate"),
    "layer-768": launch(layer, 768),
    "group-320-32": launch(group, 320, 32),
    "add-rms-4096": launch(add_rms, 4096),
    "modulated-rms-1152": launch(modulated_rms, 1152),
    "dyt-4096": launch(dyt, 4096, configs=1),
    "poly-4096": launch(poly, 4096),
} | {  # rows of Qwen 3, Llama 3, Mistral, Gemma, DeepSeek V3, Llama 3 405B, by the block that they take
    f"{name}-{n}-{word}": launch(function, n, *rest, dtype=dtype)
    for n in (1024, 2048, 4096, 7168, 16384)
    for word, dtype in DTYPES.items()
    for name, function, rest in [
        *((f"rms-{casting}", rms, (casting, float(casting == "gemma"))) for casting in ("llama", "gemma", "none")),
        ("layer", layer, ()),
        ("add-rms", add_rms, ()),
    ]
}
