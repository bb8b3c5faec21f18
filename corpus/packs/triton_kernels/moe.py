"""Mixtures of experts: routing, both products with gather, scatter and swiglu, and what mxfp4 asks for.

The library has no package of its own; it is imported from where vLLM's wheel has it, without vLLM.
"""

import functools
import importlib.util
import linecache
import os
import sys

import torch
from _tensors import integers, is_captured, normal, positive
from irdiff_corpus import checked, launch

[_vllm] = importlib.util.find_spec("vllm").submodule_search_locations
sys.path.append(os.path.join(_vllm, "third_party"))

from triton_kernels import matmul_ogs, routing, specialize, swiglu, target_info, tensor  # noqa: E402
from triton_kernels.matmul_ogs_details import opt_flags  # noqa: E402
from triton_kernels.numerics import InFlexData, OutFlexData  # noqa: E402
from triton_kernels.numerics_details import mxfp  # noqa: E402
from triton_kernels.tensor_details import layout  # noqa: E402

# a product is specialized for its activation: its source is asked for, and has the place of this file's
linecache.lazycache(specialize.define_kernel.__code__.co_filename, vars(specialize))

MODELS = {  # experts, experts of a token, hidden, intermediate on one GPU, weights
    "gpt-oss-20b": (32, 4, 2880, 2880, "mxfp4"),
    "gpt-oss-120b": (128, 4, 2880, 2880, "mxfp4-whole"),
    "gpt-oss-120b-tp4": (128, 4, 2880, 768, "mxfp4-whole"),
    "gpt-oss-20b-bf16": (32, 4, 2880, 2880, "bf16"),
    "gpt-oss-20b-mxfp8": (32, 4, 2880, 2880, "mxfp8"),
    "qwen3-30b": (128, 8, 2048, 768, "bf16"),
    "qwen3-30b-fp8": (128, 8, 2048, 768, "fp8"),
    "deepseek-v3-tp8": (256, 8, 7168, 256, "bf16"),
    "deepseek-v3-fp8-tp8": (256, 8, 7168, 256, "fp8"),
}
TOKENS = {  # each gives another block of rows, or another split
    "gpt-oss-20b": (1, 16),
    "gpt-oss-120b": (1, 64, 1024, 2048, 4096),
    "gpt-oss-120b-tp4": (1024,),
    "gpt-oss-20b-bf16": (1, 64, 256, 1024),
    "gpt-oss-20b-mxfp8": (1, 256, 1024),
    "qwen3-30b": (1, 64, 512, 1024, 4096),
    "qwen3-30b-fp8": (1, 64, 512, 1024, 4096),
    "deepseek-v3-tp8": (1, 64, 4096),
    "deepseek-v3-fp8-tp8": (1, 64, 4096),
}
FP8 = torch.float8_e4m3fnuz if target_info.is_hip_cdna3() else torch.float8_e4m3fn
ALPHA, LIMIT = 1.702, 7.0
SWIGLU = matmul_ogs.FusedActivation(
    matmul_ogs.FnSpecs("swiglu", swiglu.swiglu_fn, ("alpha", "limit")), (ALPHA, LIMIT), 2
)


def routed(model, tokens):
    """As `routing` gives it, but nothing is launched."""
    count, k, *_ = MODELS[model]
    shares, ids = normal(tokens, count, dtype=torch.float32).softmax(-1).topk(k)
    order = ids.flatten().argsort(stable=True)
    back, sizes = order.argsort().int(), ids.flatten().bincount(minlength=count).int()
    data = routing.compute_expt_data_torch(sizes, count, tokens * k)
    shares, order = shares.flatten()[order].bfloat16(), order.int()
    found = routing.RoutingData(shares, sizes, count, k, data)
    return found, routing.GatherIndx(order, back), routing.ScatterIndx(back, order)


def made(make, count, *shape):
    """For each expert; on a CPU, where nothing computes, without memory."""
    return for_each(make(1, *shape), count) if is_captured() else make(count, *shape)


def for_each(one, count):
    shape, strides = (count, *one.shape[1:]), (one.numel(), *one.stride()[1:])
    return torch.empty_strided(shape, strides, dtype=one.dtype, device="meta")


def laid_out(data, dtype, kind, options):
    """As the target's products read it."""
    if not is_captured():
        return tensor.convert_layout(tensor.wrap_torch_tensor(data, dtype), kind, **options)
    one = tensor.convert_layout(tensor.wrap_torch_tensor(data[:1], dtype), kind, **options)
    storage = tensor.Storage(for_each(one.data, len(data)), kind(data.shape, **options))
    return tensor.Tensor(storage, dtype=one.dtype, shape=[len(data), *one.shape[1:]])


def weights(model, inner, outer):
    """What the kernel takes, its precision, what that is made of, and what makes a matrix of an expert's part."""
    count, _, _, _, kind = MODELS[model]
    opt_flags.reset_opt_flags_constraints()
    if kind == "bf16":
        data = made(normal, count, inner, outer)
        return data, matmul_ogs.PrecisionConfig(), [data], lambda data: data
    if kind == "fp8":
        data = made(functools.partial(normal, dtype=FP8), count, outer, inner)
        scales = [positive(1) for _ in range(2)]
        flex = matmul_ogs.FlexCtx(*(InFlexData(dtype=FP8, scale=scale) for scale in scales), OutFlexData())
        precision = matmul_ogs.PrecisionConfig(flex_ctx=flex, out_dtype=torch.bfloat16)
        return data.mT, precision, [data], lambda data: data.T * scales[0] * scales[1]
    is_blackwell, is_hopper = (target_info.cuda_capability_geq(major, 0) for major in (10, 9))
    whole = 8 if target_info.is_hip_cdna4() else 4 if is_hopper and not is_blackwell else 1  # what its layout asks for
    if is_blackwell:
        opt_flags.update_opt_flags_constraints({"is_persistent": True, "epilogue_subtile": 1})
    elif is_hopper and kind == "mxfp4-whole":  # vLLM does not let it split K
        opt_flags.update_opt_flags_constraints({"split_k": 1})
    scale = functools.partial(integers, 120, 128, dtype=torch.uint8)
    scales = made(scale, count, outer, -(-inner // 32 // whole) * whole)
    of_values, of_scales = (layout.StridedLayout, {}), (layout.StridedLayout, {})
    if kind == "mxfp8":
        dtype = torch.float8_e4m3fn
        values = made(functools.partial(normal, dtype=dtype), count, outer, inner)
    else:
        values = made(functools.partial(integers, 0, 256, dtype=torch.uint8), count, outer, inner // 2)
        dtype, of_values = tensor.FP4, layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
    if kind != "mxfp8" or is_blackwell:
        of_scales = layout.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1, num_warps=8)
    precision = matmul_ogs.PrecisionConfig(weight_scale=laid_out(scales.mT, torch.uint8, *of_scales))

    def matrix(values, scales):
        values, scales = values if dtype == tensor.FP4 else values.to(dtype), scales[:, : inner // 32]
        return mxfp.upcast_from_mxfp_torch(values, scales, torch.float32, axis=-1).T

    return laid_out(values.mT, dtype, *of_values), precision, [values, scales], matrix


def product(model, tokens, second):
    """Of the first, its gated activation with it, if the model's is the library's."""
    count, k, hidden, intermediate, kind = MODELS[model]
    is_gpt_oss = model.startswith("gpt-oss")
    inner, outer = (intermediate, hidden) if second else (hidden, 2 * intermediate)
    data, precision, parts, matrix = weights(model, inner, outer)
    found, gather, scatter = routed(model, tokens)
    bias = normal(count, outer, dtype=torch.float32) if is_gpt_oss else None
    active = found.expt_hist.nonzero()[:, 0]

    def function(x, *_):
        if second:
            return matmul_ogs.matmul_ogs(
                x, data, bias, found, scatter_indx=scatter, precision_config=precision, gammas=found.gate_scal
            )
        activation = SWIGLU if is_gpt_oss else None
        return matmul_ogs.matmul_ogs(x, data, bias, found, gather, None, precision, fused_activation=activation)

    def reference(x, *parts):
        of_rows = gather.src_indx // k
        rows = (x if second else x[of_rows]).split(found.expt_hist[active].tolist())
        out = torch.cat([part @ matrix(*(one[place] for one in parts)) for place, part in enumerate(rows)])
        out = out if bias is None else out + bias.repeat_interleave(found.expt_hist, 0)
        if second:
            return torch.zeros(tokens, outer).index_add(0, of_rows, out * found.gate_scal[:, None])
        return swiglu.swiglu_torch(out, ALPHA, swiglu.PrecisionConfig(LIMIT)) if is_gpt_oss else out

    x = normal(tokens * k if second else tokens, inner, dtype=FP8 if kind == "fp8" else torch.bfloat16)
    checked(function, reference, x, *(part if is_captured() else part[active] for part in parts))


def dense(batch, tokens, inner, outer):
    """Without experts; of a batch each has its own weights."""
    opt_flags.reset_opt_flags_constraints()
    x, w = normal(batch, tokens, inner), normal(batch, inner, outer)
    checked(lambda x, w: matmul_ogs.matmul_ogs(x, w, None), torch.bmm, x, w)


def route(model, tokens, parts=1):
    """`parts`: of how many GPUs this one has the first experts."""
    count, k, *_ = MODELS[model]

    def function(logits):
        found, gather, _ = routing.routing(logits, k, simulated_ep=parts)
        return found.gate_scal, found.expt_hist, gather.src_indx, found.expt_data.token_offs_raw

    def reference(logits):
        found, gather, _ = routing.routing_torch(logits, k)
        return found.gate_scal, found.expt_hist, gather.src_indx, found.expt_data.token_offs_raw

    logits = normal(tokens, count).argsort(-1).bfloat16() / 16  # none like another of its row
    if parts == 1:
        checked(function, reference, logits)
    else:
        function(logits)


def activate(model, tokens):
    _, k, _, intermediate, _ = MODELS[model]
    precision = swiglu.PrecisionConfig(LIMIT)
    checked(
        lambda x: swiglu.swiglu(x, ALPHA, precision), lambda x: swiglu.swiglu_torch(x, ALPHA, precision),
        normal(tokens * k, 2 * intermediate),
    )


def quantize(rows, columns, dtype):
    """To blocks of 32 with a power of two each."""

    def function(x):
        return mxfp.downcast_to_mxfp(x, dtype, axis=1)

    checked(function, lambda x: mxfp.downcast_to_mxfp_torch(x, dtype, axis=1), normal(rows, columns))


def widen(rows, columns, dtype):
    packed = 2 if dtype == torch.uint8 else 1
    make = functools.partial(integers, 0, 256) if packed == 2 else normal
    checked(
        lambda x, scales: mxfp.upcast_from_mxfp(x, scales, torch.bfloat16, axis=1),
        lambda x, scales: mxfp.upcast_from_mxfp_torch(x.to(dtype), scales, torch.float32, axis=1),
        make(rows, columns // packed, dtype=dtype), integers(120, 128, rows, columns // 32, dtype=torch.uint8),
    )


LAUNCHES = {
    f"{model}-{tokens}-{'down' if second else 'up'}": launch(product, model, tokens, second)
    for model in MODELS
    for tokens in TOKENS[model]
    for second in (False, True)
} | {
    f"{function.__name__}-{'-'.join(str(word).removeprefix('torch.') for word in words)}": launch(function, *words)
    for function, variants in [
        (route, [("gpt-oss-20b", tokens) for tokens in (1, 64, 4096)]),
        (route, [("gpt-oss-120b", 64), ("gpt-oss-120b", 64, 4), ("qwen3-30b", 1), ("qwen3-30b", 4096)]),
        (route, [("deepseek-v3-tp8", 64), ("deepseek-v3-tp8", 4096, 8)]),
        (dense, [(1, 1, 2880, 5120), (1, 64, 2880, 5120), (1, 4096, 4096, 2880), (128, 64, 128, 512)]),
        (activate, [("gpt-oss-20b", 1), ("gpt-oss-20b", 64)]),
        (quantize, [(5760, 2880, torch.uint8), (4096, 2880, torch.float8_e4m3fn), (4096, 2880, torch.float8_e5m2)]),
        (widen, [(5760, 2880, torch.uint8), (4096, 2880, torch.float8_e4m3fn)]),
    ]
    for words in variants
}
