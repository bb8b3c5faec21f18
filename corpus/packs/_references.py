"""What several packs' kernels should give, in PyTorch."""

import torch
import torch.nn.functional as F


def rotated(x, cos, sin):
    """Rotary embedding of the two halves of the last dimension; `cos` and `sin` of one half."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)


def sparsemax(x):
    """Of the last dimension: the nearest point of the simplex."""
    falling = x.sort(-1, descending=True).values
    sums = falling.cumsum(-1) - 1
    count = (falling * torch.arange(1, x.shape[-1] + 1) > sums).sum(-1, keepdim=True)
    return (x - sums.gather(-1, count - 1) / count).clamp_min(0)


def swiglu_experts(x, up, down, chosen, weights):
    """Experts of SwiGLU: `up` has (expert, gate and up, hidden), `down` (expert, hidden, intermediate)."""
    result = torch.zeros_like(x)
    for expert in range(len(up)):
        token, place = (chosen == expert).nonzero(as_tuple=True)
        gate, value = (x[token] @ up[expert].T).chunk(2, -1)
        output = (F.silu(gate) * value) @ down[expert].T
        result = result.index_add(0, token, output * weights[token, place, None])
    return result


def widened(x, scales, rows, columns):
    """Of a quantized matrix, whose blocks of this size have a scale each."""
    return x.float() * scales.repeat_interleave(rows, 0).repeat_interleave(columns, 1)
