"""Pointwise operators on activations: whole tensors, a part of each row, a row for all rows, numbers."""

import torch
from flaggems._alone import FLOATS, INTEGERS, call, shipped
from irdiff_corpus import launch

UNARY = (
    "abs acos angle arcsinh atan ceil celu cos cosh elu erf exp exp2 expm1 gelu hardsigmoid i0 isfinite isinf isnan isneginf log "
    "log10 log_sigmoid logical_not logit neg nan_to_num reciprocal relu relu6 rsqrt selu sigmoid signbit silu sin softplus "
    "softshrink special_i0e special_i1 sqrt square tan tanh abs_ atan_ cos_ digamma_ exp_ gelu_ hardswish_ log1p_ "
).split()
WHOLE = "arctanh_ round sinh_".split()
BINARY = (
    "add sub mul true_divide floor_divide remainder atan2 copysign eq ge greater hypot isclose le logaddexp lt maximum "
    "minimum fmin ne pow_tensor_tensor gelu_backward silu_backward sigmoid_backward tanh_backward reglu swiglu "
    "geglu gelu_and_mul silu_and_mul logical_and logical_or logical_xor add_ mul_ sub_"
).split()
WITH_NUMBER = (
    "add sub mul true_divide floor_divide remainder eq_scalar ge_scalar gt_scalar le_scalar lt_scalar ne_scalar pow_tensor_scalar "
    "clamp_min fill_scalar"
).split()
BITS = "bitwise_and_tensor bitwise_or_tensor".split()


def strided(name, dtype, count, inputs):
    """A part of each row of wider tensors."""
    call(name, dtype, *[(64, 3 * count)] * inputs, part=lambda x: x[:, count : 2 * count])


def as_shipped(name, dtype, *args):
    with shipped():
        call(name, dtype, *args)


LAUNCHES = {
    f"{name}-{word}{suffix}": launch(function, name, dtype, *args, configs=1)
    for names, types, calls in [
        (UNARY, FLOATS, [("", call, (64, 4096)), ("-part", strided, 4096, 1)]),
        (WHOLE, FLOATS, [("", call, (64, 4096))]),
        (BINARY, FLOATS, [("", call, (64, 4096), (64, 4096)), ("-part", strided, 4096, 2)]),
        (BINARY[:20], FLOATS, [("-row", call, (64, 4096), (4096,))]),
        (WITH_NUMBER, FLOATS, [("-number", call, (64, 4096), 2.0)]),
        (BINARY[:7] + BITS, INTEGERS, [("", call, (64, 4096), (64, 4096))]),
    ]
    for name in names
    for word, dtype in types.items()
    for suffix, function, *args in calls
} | {
    f"shipped-{name}": launch(as_shipped, name, torch.bfloat16, *[(64, 4096)] * count, configs=1)
    for count, name in [(1, "exp"), (1, "gelu"), (1, "silu"), (2, "add"), (2, "mul"), (2, "silu_and_mul")]
}
