"""What timing asks of a GPU: load a binary, launch it, describe the card.

Buffers, fills, comparisons, events and graphs go through torch, which is the same on CUDA and ROCm; only
loading and launching need the vendor's driver API (`open_device`, one class a vendor).
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from irdiff.errors import IrdiffError
from irdiff.timing.abi import LaunchPlan, TensorMap


class DeviceError(IrdiffError):
    """The card, or irdiff on it, cannot do what is asked."""


class DriverError(DeviceError):
    """The driver refused a binary or a call: what a user who launches the kernel would see."""


@dataclass(frozen=True, kw_only=True)
class Card:
    """One GPU as its driver describes it."""

    index: int
    name: str
    target: str
    """The target whose binaries it runs: `sm_90`, `gfx942`."""
    uuid: str
    memory_bytes: int
    l2_bytes: int
    multiprocessors: int
    driver: str


class Device(Protocol):
    """One GPU of this process."""

    def describe(self) -> Card: ...

    def load(self, binary: bytes, plan: LaunchPlan) -> object:
        """The kernel of a binary, allowed its dynamic shared memory. Raises DriverError."""
        ...

    def tensor_map(self, spec: TensorMap, address: int) -> bytes:
        """A CUtensorMap for a tensor at `address`. Raises DeviceError."""
        ...

    def launch(self, function: object, plan: LaunchPlan, block: ParameterBlock, stream: int) -> None:
        """Enqueues one launch. Raises DriverError; a kernel's fault shows when the stream is waited for."""
        ...


class ParameterBlock:
    """The bytes of one launch's parameters, and the array of pointers to them that drivers take."""

    def __init__(self, plan: LaunchPlan, contents: Mapping[int, bytes]) -> None:
        """`contents` gives the bytes of each parameter by its place in the plan."""
        self.values = ctypes.create_string_buffer(max(plan.size_bytes, 1))
        base = ctypes.addressof(self.values)
        self.pointers = (ctypes.c_void_p * max(len(plan.parameters), 1))()
        for place, parameter in enumerate(plan.parameters):
            content = contents[place]
            assert len(content) == parameter.size_bytes, parameter
            ctypes.memmove(base + parameter.offset_bytes, content, len(content))
            self.pointers[place] = base + parameter.offset_bytes

    @property
    def address(self) -> int:
        """Of the pointer array (`void **kernelParams`)."""
        return ctypes.addressof(self.pointers)
