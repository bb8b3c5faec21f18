"""Kernels of which users found that a compiler makes them wrong, with the configs that are concerned. The library
leaves these out or refuses the releases; here they are compiled all the same.
"""

import math

import torch
import torch.nn.functional as F
import triton
from fla.ops.common import chunk_h, chunk_o
from fla.ops.delta_rule import wy_fast
from _tensors import normal
from irdiff_corpus import checked, launch

CHUNK, HEADS, TOKENS = 64, 4, 512
chunk_o.TRITON_ABOVE_3_7_1 = True  # of the refusal alone


def configured(kernel, warps, **blocks):
    """Of a kernel below its heuristics, one config alone."""
    kernel.fn.configs = [triton.Config(blocks, num_warps=warps, num_stages=2)]


def chunks(*values):
    """(batch, tokens, heads, …) → (batch, chunks, heads, tokens of one, …)"""
    return (value.unflatten(1, (-1, CHUNK)).transpose(2, 3) for value in values)


def together(value):
    return value.transpose(2, 3).flatten(1, 2)


def attended(q, k, v, h, g):
    """Of chunks: what they read of the state before them, and of themselves."""
    scores = (q @ k.mT * torch.exp2(g[..., None] - g[..., None, :])).tril()
    return ((q * torch.exp2(g)[..., None]) @ h + scores @ v) * q.shape[-1] ** -0.5


def inverse(k, beta):
    k, beta = chunks(k.float(), beta.float())
    return torch.linalg.inv(torch.eye(CHUNK) + (k * beta[..., None] @ k.mT).tril(-1))


def gated_backward(dim):
    """fla #640: `db` and `dg` are wrong on Hopper from 3.4.0 to 3.7.0."""

    def reference(q, k, v, do, h, dh, g):
        q, k, g = (value.requires_grad_() for value in (q, k, g))
        of_q, of_k, of_v, of_g, of_do = chunks(q, k, v, g, do)
        last = of_g[..., -1:]
        state = torch.exp2(last)[..., None] * h + (of_k * torch.exp2(last - of_g)[..., None]).mT @ of_v
        torch.autograd.backward((attended(of_q, of_k, of_v, h, of_g), state), (of_do, dh))
        return q.grad, k.grad, together(-of_v @ h.mT), g.grad / math.log(2)

    def function(q, k, v, do, h, dh, g):
        return chunk_o.chunk_bwd_dqkwg(q, k, v, do, h, dh, w=k, g=g, dv=v, scale=dim**-0.5)

    q, k, v, do = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    h, dh = (normal(1, TOKENS // CHUNK, HEADS, dim, dim) for _ in range(2))
    configured(chunk_o.chunk_bwd_kernel_dqkwg, 4)
    checked(function, reference, q, k, v, do, h, dh, normal(1, TOKENS, HEADS, dtype=torch.float32))


def delta_backward(dim):
    """fla #984: `dk` and `dbeta` are wrong on Hopper with four warps."""

    def reference(k, v, beta, _, dw, du):
        leaves = [value.requires_grad_() for value in (k, v, beta)]
        of_beta, *values = chunks(beta[..., None], k, v)
        results = [inverse(k, beta) @ (value * of_beta) for value in values]
        torch.autograd.backward(results, list(chunks(dw, du)))
        return tuple(leaf.grad for leaf in leaves)

    def function(*inputs):
        return wy_fast.prepare_wy_repr_bwd(*inputs, None)

    v, k, dw, du = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    k, beta = F.normalize(k, dim=-1), normal(1, TOKENS, HEADS).sigmoid()
    configured(wy_fast.prepare_wy_repr_bwd_kernel, 4)
    checked(function, reference, k, v, beta, together(inverse(k, beta)).bfloat16(), dw, du)


def output(dim):
    """fla #1229: not deterministic on Blackwell with eight warps."""

    def reference(q, k, v, h, g):
        q, k, v, g = chunks(q, k, v, g)
        return together(attended(q, k, v, h, g))

    q, k, v = (normal(1, TOKENS, HEADS, dim) for _ in range(3))
    h, g = normal(1, TOKENS // CHUNK, HEADS, dim, dim), normal(1, TOKENS, HEADS, dtype=torch.float32)
    configured(chunk_o.chunk_fwd_kernel_o, 8, BK=128, BV=128)
    checked(chunk_o.chunk_fwd_o, reference, q, k, v, h, g)


def state_backward(dim, warps):
    """fla #1262: an integer scale of 1, as a constant, and ptxas 12.8 writes out of shared memory."""

    def reference(q, do):
        q, do = chunks(q, do)
        own = q.mT @ do
        return own.flip(1).cumsum(1).flip(1) - own

    k, v, q, do = (normal(1, TOKENS, HEADS, dim) for _ in range(4))
    tuner = chunk_h.chunk_bwd_kernel_dh.fn
    tuner.fn = triton.jit(tuner.fn.fn, do_not_specialize=["T"])
    configured(chunk_h.chunk_bwd_kernel_dh, warps, BK=64, BV=64)
    checked(lambda q, do: chunk_h.chunk_bwd_dh(q, k, v, do, None, None, 1)[0], reference, q, do)


LAUNCHES = {
    "gated-backward-64": launch(gated_backward, 64),
    "gated-backward-128": launch(gated_backward, 128),
    "delta-backward-64": launch(delta_backward, 64),
    "delta-backward-128": launch(delta_backward, 128),
    "output-128": launch(output, 128),
    "state-backward-64-4": launch(state_backward, 64, 4),
    "state-backward-64-8": launch(state_backward, 64, 8),
}
