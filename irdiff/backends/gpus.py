"""The GPUs that torch sees, and torch's words for them: it calls those of every maker `cuda`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from irdiff.backends import amd, nvidia
from irdiff.backends.amd import driver as amd_driver
from irdiff.backends.device import Driver
from irdiff.backends.nvidia import driver as nvidia_driver

_DRIVERS: Mapping[str, Driver] = {nvidia.NAME: nvidia_driver, amd.NAME: amd_driver}
"""By backend, which is also what torch calls the version that it was built for."""
TORCH_DEVICE = "cuda"
"""Torch's name for the GPUs of every maker."""


def driver(torch: Any) -> Driver:
    """The driver of the GPUs that torch was built for."""
    return next(each for name, each in _DRIVERS.items() if getattr(torch.version, name, None))


def of_torch(torch: Any) -> Any:
    """The part of torch that drives GPUs."""
    return torch.cuda


def current_stream(torch: Any) -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def captured(torch: Any, enqueue: Callable[[int], None]) -> Any:
    """A graph of all that is put on a stream, to be replayed."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        enqueue(current_stream(torch))
    return graph
