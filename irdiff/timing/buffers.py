"""Allocates the memory of a launch: one allocation for each storage, between guard zones, filled as
captured.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from irdiff.backends.device import Device, ParameterBlock
from irdiff.backends.gpus import TORCH_DEVICE
from irdiff.backends.launch_plan import AbiError, LaunchPlan, Parameter
from irdiff.model import Argument, Launch

GUARD_BYTES = 1 << 20
_GUARD_BYTE = 0xC5
_POISON_BYTE = 0xFF  # NaN in every float format, -1 in every integer
_ALIGNMENT_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Storage:
    """An allocation that arguments of a launch are views of."""

    number: int
    name: str
    """The name of the argument that spans it."""
    dtype: str
    item_bytes: int
    elements: int
    argument: dict[str, Any]
    """In the form that `fills` takes."""

    @property
    def size_bytes(self) -> int:
        return self.elements * self.item_bytes

    @property
    def is_output(self) -> bool:
        return bool(self.argument["fill"] == "empty")


def fills() -> ModuleType:
    """Loads `irdiff/worker/fills.py` as the worker does, outside of the package `irdiff`."""
    name = "irdiff_worker"
    if name not in sys.modules:
        folder = Path(__file__).parents[1] / "worker"
        spec = importlib.util.spec_from_file_location(
            name, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec and spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{name}.fills")


def torch_dtype(torch: Any, dtype: str) -> Any:
    """Takes Triton's short name."""
    corpus_api = importlib.import_module(f"{fills().__package__}.corpus_api")
    return getattr(torch, corpus_api.DType(dtype).torch_name)


def item_bytes(torch: Any, dtype: str) -> int:
    return int(torch_dtype(torch, dtype).itemsize)


def storages(torch: Any, launches: Sequence[Launch]) -> tuple[Storage, ...]:
    """Returns the allocations that serve all `launches` of one case, each as large as the largest needs."""
    largest: dict[int, Storage] = {}
    for argument in (argument for launch in launches for argument in launch.arguments):
        if argument.alias is None or not argument.dtype or None in (argument.shape, argument.strides):
            continue
        fields = {**vars(argument), "fill": argument.fill or "normal"}
        storage = Storage(
            number=argument.alias,
            name=argument.name,
            dtype=argument.dtype,
            item_bytes=item_bytes(torch, argument.dtype),
            elements=max(int(fills().extent(fields)), 1),
            argument=fields,
        )
        largest_yet = largest.get(storage.number)
        if largest_yet is None or largest_yet.size_bytes < storage.size_bytes:
            largest[storage.number] = storage
    return tuple(largest[number] for number in sorted(largest))


class Inputs:
    """The content of one case's storages before a launch, as bytes on the GPU."""

    def __init__(self, torch: Any, needed: Sequence[Storage], seed: int) -> None:
        self.torch, self.storages = torch, needed
        self.contents: dict[int, Any] = {
            storage.number: fills()
            .storage_of(torch, storage.argument, storage.elements, (seed, storage.number))
            .view(torch.uint8)
            for storage in needed
        }


class Buffers:
    """A set of allocations whose addresses never change."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self._torch = torch = inputs.torch
        self._whole: dict[int, Any] = {}
        self._bodies: dict[int, Any] = {}
        for storage in inputs.storages:
            padded = -(-storage.size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            whole = torch.full(
                (GUARD_BYTES * 2 + padded,), _GUARD_BYTE, dtype=torch.uint8, device=TORCH_DEVICE
            )
            self._whole[storage.number] = whole
            self._bodies[storage.number] = whole[GUARD_BYTES : GUARD_BYTES + storage.size_bytes]
        self.load()

    def body(self, number: int) -> Any:
        return self._bodies[number]

    def address(self, argument: Argument) -> int:
        """Raises AbiError if the argument is no tensor."""
        if argument.alias is None or argument.dtype is None:
            raise AbiError(f"{argument.name!r} has no storage")
        offset = (argument.storage_offset or 0) * item_bytes(self._torch, argument.dtype)
        return int(self._bodies[argument.alias].data_ptr()) + offset

    def load(self, numbers: Iterable[int] | None = None) -> None:
        """Restores the initial contents of all storages, or of some."""
        for number in self.inputs.contents if numbers is None else numbers:
            self._bodies[number].copy_(self.inputs.contents[number])

    def poison_outputs(self) -> None:
        for storage in self.inputs.storages:
            if storage.is_output:
                self._bodies[storage.number].fill_(_POISON_BYTE)

    def copied(self) -> dict[int, Any]:
        return {number: body.clone() for number, body in self._bodies.items()}

    def changed_inputs(self) -> frozenset[int]:
        """Returns the numbers of storages that are no outputs, and whose content has changed."""
        return frozenset(
            storage.number
            for storage in self.inputs.storages
            if not storage.is_output
            and not self._torch.equal(self._bodies[storage.number], self.inputs.contents[storage.number])
        )

    def overwritten(self) -> list[str]:
        """Lists the storages outside of whose bounds something was written."""
        torch, broken = self._torch, []
        for storage in self.inputs.storages:
            whole, end = self._whole[storage.number], GUARD_BYTES + storage.size_bytes
            if bool(torch.any(whole[:GUARD_BYTES] != _GUARD_BYTE) | torch.any(whole[end:] != _GUARD_BYTE)):
                broken.append(storage.name)
        return broken


def scratch(torch: Any, plan: LaunchPlan) -> dict[str, Any]:
    """Allocates zeroed global and profile scratch in the sizes of the plan's metadata."""
    return {
        name: torch.zeros(size, dtype=torch.uint8, device=TORCH_DEVICE)
        for name, size in plan.scratch_bytes.items()
    }


def parameter_block(
    device: Device, plan: LaunchPlan, buffers: Buffers, extra: Mapping[str, Any]
) -> ParameterBlock:
    def content(parameter: Parameter) -> bytes:
        if parameter.value is not None:
            return parameter.value
        if parameter.argument is None:
            address = int(extra[parameter.name].data_ptr()) if parameter.name in extra else 0
        else:
            address = buffers.address(parameter.argument)
        if parameter.tensor_map is not None:
            return device.tensor_map(parameter.tensor_map, address)
        return address.to_bytes(8, "little")

    return ParameterBlock(plan, [content(parameter) for parameter in plan.parameters])


_CHUNK_ELEMENTS = 1 << 25
_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
DEFAULT_TOLERANCE = (1e-2, 1e-2)


@dataclass(frozen=True, kw_only=True)
class Difference:
    argument: str
    elements: int
    """The number of elements that differ."""
    max_ulp: int | None
    """Distance in representable values; None for integers."""
    relative_norm: float
    """‖head - base‖ / ‖base‖, over elements that are finite on both sides."""
    within: bool
    """|head - base| <= atol + rtol x |base| everywhere, and the same infinities and NaNs."""


def difference(
    torch: Any, storage: Storage, base: Any, head: Any, tolerance: tuple[float, float] | None
) -> Difference | None:
    """Returns None if the bytes are equal. `base` and `head`: byte tensors of the storage."""
    if torch.equal(base, head):
        return None
    dtype = torch_dtype(torch, storage.dtype)
    relative, absolute = tolerance or DEFAULT_TOLERANCE
    ours, theirs = base.view(dtype), head.view(dtype)
    count, ulp, square, scale, within = 0, 0, 0.0, 0.0, True
    floating = dtype.is_floating_point
    for begin in range(0, storage.elements, _CHUNK_ELEMENTS):
        a, b = ours[begin : begin + _CHUNK_ELEMENTS], theirs[begin : begin + _CHUNK_ELEMENTS]
        x, y = a.to(torch.float64), b.to(torch.float64)
        finite = torch.isfinite(x) & torch.isfinite(y)
        gap = torch.where(finite, (y - x).abs(), 0.0)
        same_special = (x == y) | (x.isnan() & y.isnan())
        close = torch.where(finite, gap <= absolute + relative * x.abs(), same_special)
        within = within and bool(close.all())
        count += int((~same_special).sum())
        square += float((gap * gap).sum())
        scale += float(torch.where(finite, x * x, 0.0).sum())
        if floating:
            steps = (_ordered(torch, b, storage) - _ordered(torch, a, storage)).abs()
            ulp = max(ulp, int(torch.where(finite, steps, 0).max()))
    norm = math.sqrt(square / scale) if scale else (math.inf if square else 0.0)
    return Difference(
        argument=storage.name,
        elements=count,
        max_ulp=ulp if floating else None,
        relative_norm=norm,
        within=within,
    )


def _ordered(torch: Any, values: Any, storage: Storage) -> Any:
    """Maps floats to integers in the same order, one step a representable value (sign-magnitude unfolded)."""
    size = storage.item_bytes
    bits = values.view(getattr(torch, _INTEGERS[size])).to(torch.int64)
    least = -(1 << (8 * size - 1))
    return torch.where(bits < 0, least - bits, bits)
