"""SwiGLU, GEGLU, squared ReLU: forward and backward."""

import torch
from irdiff_corpus import launch
from liger._calls import DTYPES, normal, train
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction, LigerSiLUMulFunction

ROWS = 1024


def swiglu(n, dtype=torch.bfloat16):
    train(LigerSiLUMulFunction, *(normal(ROWS, n, dtype=dtype) for _ in range(2)))


def fused_gate_up(n):
    train(LigerFusedGateUpSiLUMulFunction, normal(ROWS, 2 * n))


def geglu(n, dtype=torch.bfloat16):
    train(LigerGELUMulFunction, *(normal(ROWS, n, dtype=dtype) for _ in range(2)))


def relu_squared(n, dtype=torch.bfloat16):
    train(LigerReLUSquaredFunction, normal(ROWS, n, dtype=dtype))


LAUNCHES = {
    "swiglu-14336": launch(swiglu, 14336, tier="gate"),
    "swiglu-1536": launch(swiglu, 1536),
    "swiglu-fused-gate-up-4864": launch(fused_gate_up, 4864),
    "geglu-14336": launch(geglu, 14336, tier="gate"),
    "geglu-2048": launch(geglu, 2048),
    "relu-squared-8192": launch(relu_squared, 8192),
} | {
    f"{function.__name__.replace('_', '-')}-{n}-{word}": launch(function, n, dtype=dtype)
    for function in (swiglu, geglu, relu_squared)
    for n in (768, 2048, 3584, 6400, 9728, 28672)
    for word, dtype in DTYPES.items()
}
