"""How the workloads of this pack call Liger's functions: as a training step does."""

import torch

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def normal(*shape, dtype=torch.bfloat16):
    """A leaf that wants a gradient. Its values do not matter: no kernel computes."""
    return torch.zeros(shape, dtype=dtype).requires_grad_()


def train(function, *args, **kwargs):
    """Forward and backward of an autograd function."""
    results = function.apply(*args, **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    results = [x for x in results if isinstance(x, torch.Tensor) and x.requires_grad]
    torch.autograd.backward(results, [torch.ones_like(x) for x in results])
