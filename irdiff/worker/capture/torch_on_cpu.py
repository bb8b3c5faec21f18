"""Lets a program that asks torch for a GPU run without one: its tensors lie on the CPU, and its results are
worthless, because kernels compute nothing.
"""

from __future__ import annotations

import importlib.util
import warnings

from . import torch_cuda

_EXPECTED = (
    "Failed to initialize NumPy",
    "dynamo_pgo force disabled",
    "Could not find an active CPU backend",
)
"""Beginnings of torch's warnings that recording causes."""


def install(target):
    """Does nothing without torch."""
    if importlib.util.find_spec("torch") is None:
        return
    for text in _EXPECTED:
        warnings.filterwarnings("ignore", message=text)
    import torch

    from . import torch_redirector

    torch_cuda.install(torch, target)
    if target["backend"] == "hip":
        torch.version.hip = "7.0"
    else:
        torch.version.cuda = torch.version.cuda or "13.0"
    torch_redirector.install()
