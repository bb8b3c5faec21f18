"""SwiGLU, GEGLU, squared ReLU: forward and backward."""

from irdiff_corpus import launch
from liger._calls import normal, train
from liger_kernel.ops.geglu import LigerGELUMulFunction
from liger_kernel.ops.relu_squared import LigerReLUSquaredFunction
from liger_kernel.ops.swiglu import LigerFusedGateUpSiLUMulFunction, LigerSiLUMulFunction

ROWS = 1024


def swiglu(n):
    train(LigerSiLUMulFunction, normal(ROWS, n), normal(ROWS, n))


def fused_gate_up(n):
    train(LigerFusedGateUpSiLUMulFunction, normal(ROWS, 2 * n))


def geglu(n):
    train(LigerGELUMulFunction, normal(ROWS, n), normal(ROWS, n))


def relu_squared(n):
    train(LigerReLUSquaredFunction, normal(ROWS, n))


LAUNCHES = {
    "swiglu-14336": launch(swiglu, 14336, tier="gate"),
    "swiglu-1536": launch(swiglu, 1536),
    "swiglu-fused-gate-up-4864": launch(fused_gate_up, 4864),
    "geglu-14336": launch(geglu, 14336, tier="gate"),
    "geglu-2048": launch(geglu, 2048),
    "relu-squared-8192": launch(relu_squared, 8192),
}
