"""Opens the GPU of this process, through the driver that torch was built for."""

from __future__ import annotations

from typing import Any

from irdiff.backends import gpus
from irdiff.backends.device import Device, DeviceError


def open_device(index: int) -> Device:
    import torch

    if not gpus.of_torch(torch).is_available():
        raise DeviceError(
            "torch sees no GPU here", hint="run on a host with a GPU, its driver, and torch built for it"
        )
    gpus.of_torch(torch).set_device(index)
    torch.empty(1, device=gpus.TORCH_DEVICE)  # makes the primary context current
    return gpus.driver(torch).opened(index)


def describe(torch: Any, index: int, device: Device) -> dict[str, Any]:
    facts = gpus.of_torch(torch).get_device_properties(index)
    return {
        "name": facts.name,
        "target": target_of(torch, index),
        "uuid": gpus.driver(torch).uuid(facts),
        "memory_bytes": facts.total_memory,
        "l2_bytes": facts.L2_cache_size,
        "multiprocessors": facts.multi_processor_count,
        "driver": device.driver,
    }


def target_of(torch: Any, index: int) -> str:
    return gpus.driver(torch).target(gpus.of_torch(torch).get_device_properties(index))
