"""The GPU of this process, through the driver that torch was built for."""

from __future__ import annotations

from irdiff.timing.cuda_device import CudaDevice
from irdiff.timing.device import Device, DeviceError
from irdiff.timing.hip_device import HipDevice


def open_device(index: int) -> Device:
    """The GPU `index` of this process, through the driver that torch was built for."""
    import torch

    if not torch.cuda.is_available():
        raise DeviceError(
            "torch sees no GPU here", hint="run on a host with a GPU, its driver, and torch built for it"
        )
    torch.cuda.set_device(index)
    torch.empty(1, device="cuda")  # makes the primary context current
    if torch.version.hip is not None:
        return HipDevice(index)
    return CudaDevice(index)
