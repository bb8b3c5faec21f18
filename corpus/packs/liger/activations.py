"""SwiGLU, GEGLU, squared ReLU: forward and backward."""

import torch
import torch.nn.functional as F
from _tensors import normal
from irdiff_corpus import launch, trained
from liger._calls import DTYPES
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction, LigerSiLUMulFunction

ROWS = 1024


def swiglu(n, dtype=torch.bfloat16):
    gate_up = (normal(ROWS, n, dtype=dtype) for _ in range(2))
    trained(LigerSiLUMulFunction.apply, lambda gate, up: F.silu(gate) * up, *gate_up)


def fused_gate_up(n):
    def reference(x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    trained(LigerFusedGateUpSiLUMulFunction.apply, reference, normal(ROWS, 2 * n))


def geglu(n, dtype=torch.bfloat16):
    gate_up = (normal(ROWS, n, dtype=dtype) for _ in range(2))
    trained(LigerGELUMulFunction.apply, lambda gate, up: F.gelu(gate, approximate="tanh") * up, *gate_up)


def relu_squared(n, dtype=torch.bfloat16):
    trained(LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2, normal(ROWS, n, dtype=dtype))


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
