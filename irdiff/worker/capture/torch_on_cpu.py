"""Lets a program that asks torch for a GPU run where there is none: its tensors lie on the CPU.

Only what programs ask on their way to a launch: devices in calls, `.cuda()`, and the questions of
`torch.cuda`. Nothing is computed by kernels, so what a program does with their results is worthless.
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
"""How torch begins what it warns of, since kernels are recorded and none is run."""


def install(target):
    """Works from now on, in this process. Without torch there is nothing to do."""
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
