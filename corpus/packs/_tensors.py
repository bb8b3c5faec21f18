"""Tensors that packs share."""

import torch


def normal(*shape, dtype=torch.bfloat16, scale=1.0):
    """Zeros on a CPU, where no kernel computes; normal values on a GPU, where `corpus verify` runs kernels."""
    if torch.get_default_device().type == "cpu":
        return torch.zeros(shape, dtype=dtype)
    return (torch.randn(shape) * scale).to(dtype)


def positive(*shape, dtype=torch.float32):
    """Scales around one."""
    return normal(*shape, dtype=dtype, scale=0.1).exp()


def integers(low, high, *shape, dtype=torch.int8):
    if torch.get_default_device().type == "cpu":
        return torch.zeros(shape, dtype=dtype)
    return torch.randint(low, high, shape, dtype=dtype)


def numbers(*values):
    return torch.tensor(values, dtype=torch.int32)


def pages(sequences, count):
    """Tables of pages of a cache, not in their order."""
    return (torch.arange(sequences * count, dtype=torch.int32) * 5 % (sequences * count)).view(sequences, count)
