"""The interface of a GPU's driver for irdiff: load a binary, and launch it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from irdiff.backends.launch_plan import LaunchPlan, TensorMap
from irdiff.errors import IrdiffError


class Device(Protocol):
    """One GPU of this process, whose primary context torch has made current."""

    driver: str
    """The driver and its version."""

    def load(self, binary: bytes, plan: LaunchPlan) -> object:
        """The kernel of a binary, allowed its dynamic shared memory. Raises DriverError."""

    def tensor_map(self, spec: TensorMap, address: int) -> bytes:
        """The driver's description of a tensor at `address`. Raises DeviceError where there is none."""

    def launch(self, function: object, plan: LaunchPlan, block: ParameterBlock, stream: int) -> None:
        """Enqueues one launch. Raises DriverError; a kernel's fault shows when the stream is waited for."""


class Driver(Protocol):
    """How the GPUs of one backend are reached."""

    def opened(self, index: int) -> Device:
        """Raises DriverError."""

    def target(self, properties: Any) -> str:
        """The target whose binaries a GPU runs, by torch's properties of it."""

    def uuid(self, properties: Any) -> str:
        """The id of a GPU, as the maker's tools print it."""


class DeviceError(IrdiffError):
    """The card, or irdiff on it, cannot do what is asked."""


class DriverError(DeviceError):
    """The driver refused a binary or a call: what a user who launches the kernel would see."""


def checked(result: tuple[Any, ...], refusal: Callable[[Any], str]) -> Any:
    """Returns the values after the code. Raises DriverError, with `refusal(code)`, for a code that is
    not 0.
    """
    code, *values = result
    if int(code) != 0:
        raise DriverError(refusal(code))
    return values[0] if len(values) == 1 else tuple(values)


class ParameterBlock:
    """The bytes of one launch's parameters, and the array of pointers to them that drivers take."""

    def __init__(self, plan: LaunchPlan, contents: Sequence[bytes]) -> None:
        """`contents` gives the bytes of each parameter, in the order of the plan."""
        self.values = ctypes.create_string_buffer(max(plan.size_bytes, 1))
        base = ctypes.addressof(self.values)
        self.pointers = (ctypes.c_void_p * max(len(plan.parameters), 1))()
        for place, (parameter, content) in enumerate(zip(plan.parameters, contents, strict=True)):
            assert len(content) == parameter.size_bytes, parameter
            ctypes.memmove(base + parameter.offset_bytes, content, len(content))
            self.pointers[place] = base + parameter.offset_bytes

    @property
    def address(self) -> int:
        """The address of the pointer array (`void **kernelParams`)."""
        return ctypes.addressof(self.pointers)
