"""Lets a program that asks torch for a GPU run without one: its tensors lie on the CPU.

This covers only what programs ask on their way to a launch: devices in calls, `.cuda()`, and the functions of
`torch.cuda`. Kernels compute nothing, so results of the program are worthless.
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
"""Beginnings of torch's warnings that are expected, because kernels are recorded and not run."""


def install(target):
    """Works from now on, in this process. Does nothing without torch."""
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
