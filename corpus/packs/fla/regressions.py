"""Kernels of which users found that a compiler makes them wrong, with the configs that are concerned. The library
leaves these out or refuses the releases; here they are compiled all the same.
"""

import torch
import triton
from fla.ops.common import chunk_h, chunk_o
from fla.ops.delta_rule import wy_fast
from _tensors import normal
from irdiff_corpus import launch

CHUNK, HEADS, TOKENS = 64, 4, 512
chunk_o.TRITON_ABOVE_3_7_1 = True  # of the refusal alone


def configured(kernel, warps, **blocks):
    """Of a kernel below its heuristics, one config alone."""
    kernel.fn.configs = [triton.Config(blocks, num_warps=warps, num_stages=2)]


def gated_backward(dim):
    """fla #640: `db` and `dg` are wrong on Hopper from 3.4.0 to 3.7.0."""
    q, k, v, do = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    h, dh = (normal(1, TOKENS // CHUNK, HEADS, dim, dim) for _ in range(2))
    g = normal(1, TOKENS, HEADS, dtype=torch.float32)
    configured(chunk_o.chunk_bwd_kernel_dqkwg, 4)
    chunk_o.chunk_bwd_dqkwg(q, k, v, do, h, dh, w=k, g=g, dv=v, scale=dim**-0.5)


def delta_backward(dim):
    """fla #984: `dk` and `dbeta` are wrong on Hopper with four warps."""
    k, v, dw, du = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    configured(wy_fast.prepare_wy_repr_bwd_kernel, 4)
    wy_fast.prepare_wy_repr_bwd(k, v, normal(1, TOKENS, HEADS), normal(1, TOKENS, HEADS, CHUNK), dw, du, None)


def output(dim):
    """fla #1229: not deterministic on Blackwell with eight warps."""
    q, k, v = (normal(1, TOKENS, HEADS, dim) for _ in range(3))
    h, g = normal(1, TOKENS // CHUNK, HEADS, dim, dim), normal(1, TOKENS, HEADS, dtype=torch.float32)
    configured(chunk_o.chunk_fwd_kernel_o, 8, BK=128, BV=128)
    chunk_o.chunk_fwd_o(q, k, v, h, g)


def state_backward(dim, warps):
    """fla #1262: an integer scale of 1, as a constant, and ptxas 12.8 writes out of shared memory."""
    q, k, v, do = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    tuner = chunk_h.chunk_bwd_kernel_dh.fn
    tuner.fn = triton.jit(tuner.fn.fn, do_not_specialize=["T"])
    configured(chunk_h.chunk_bwd_kernel_dh, warps, BK=64, BV=64)
    chunk_h.chunk_bwd_dh(q, k, v, do, None, None, 1)


LAUNCHES = {
    "gated-backward-64": launch(gated_backward, 64),
    "gated-backward-128": launch(gated_backward, 128),
    "delta-backward-64": launch(delta_backward, 64),
    "delta-backward-128": launch(delta_backward, 128),
    "output-128": launch(output, 128),
    "state-backward-64-4": launch(state_backward, 64, 4),
    "state-backward-64-8": launch(state_backward, 64, 8),
}
