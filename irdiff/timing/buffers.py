"""The memory of a launch: one allocation a storage, each between guard zones, filled as captured."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from irdiff.model import Argument, Launch
from irdiff.timing.abi import AbiError, LaunchPlan, ParameterKind
from irdiff.timing.open_device import Device, ParameterBlock

GUARD_BYTES = 1 << 20
_GUARD_BYTE = 0xC5
_POISON_BYTE = 0xFF  # NaN in every float format, -1 in every integer
_ALIGNMENT_BYTES = 256


@dataclass(frozen=True, kw_only=True)
class Storage:
    """One allocation that arguments of a launch are views of."""

    number: int
    name: str
    """Of the argument that spans it."""
    dtype: str
    item_bytes: int
    elements: int
    row: dict[str, Any]
    """The argument as `fills` takes it."""

    @property
    def size_bytes(self) -> int:
        return self.elements * self.item_bytes

    @property
    def is_output(self) -> bool:
        return bool(self.row["fill"] == "empty")


def fills() -> ModuleType:
    """`irdiff/worker/fills.py`, loaded as the worker does: outside of the package `irdiff`."""
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
    """Of Triton's short name."""
    corpus_api = importlib.import_module(f"{fills().__package__}.corpus_api")
    return getattr(torch, corpus_api.DType(dtype).torch_name)


def storages(torch: Any, launches: Sequence[Launch]) -> tuple[Storage, ...]:
    """The allocations that serve all `launches` of one case, each as large as any of them needs."""
    found: dict[int, Storage] = {}
    for launch in launches:
        for argument in launch.arguments:
            if argument.alias is None or argument.shape is None or argument.strides is None:
                continue
            storage = _storage(torch, argument)
            known = found.get(storage.number)
            if known is None or known.size_bytes < storage.size_bytes:
                found[storage.number] = storage
    return tuple(found[number] for number in sorted(found))


def _storage(torch: Any, argument: Argument) -> Storage:
    assert argument.dtype and argument.shape is not None and argument.strides is not None
    row = {
        "dtype": argument.dtype,
        "shape": argument.shape,
        "strides": argument.strides,
        "storage_offset": argument.storage_offset,
        "fill": argument.fill or "normal",
    }
    assert argument.alias is not None
    return Storage(
        number=argument.alias,
        name=argument.name,
        dtype=argument.dtype,
        item_bytes=int(torch_dtype(torch, argument.dtype).itemsize),
        elements=max(int(fills().extent(row)), 1),
        row=row,
    )


def initial_contents(torch: Any, needed: Sequence[Storage], seed: int) -> dict[int, Any]:
    """Storage number → what it holds before a launch, as bytes on the GPU."""
    made = {}
    for storage in needed:
        flat = fills().storage_of(torch, storage.row, storage.elements, (seed, storage.number))
        made[storage.number] = flat.view(torch.uint8)
    return made


class Buffers:
    """One set of allocations; addresses stay the same for its life."""

    def __init__(self, torch: Any, needed: Sequence[Storage]) -> None:
        self._torch = torch
        self._whole: dict[int, Any] = {}
        self._bodies: dict[int, Any] = {}
        for storage in needed:
            padded = -(-storage.size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
            whole = torch.full((GUARD_BYTES * 2 + padded,), _GUARD_BYTE, dtype=torch.uint8, device="cuda")
            self._whole[storage.number] = whole
            self._bodies[storage.number] = whole[GUARD_BYTES : GUARD_BYTES + storage.size_bytes]

    def body(self, number: int) -> Any:
        return self._bodies[number]

    def address(self, number: int) -> int:
        return int(self._bodies[number].data_ptr())

    def load(self, contents: dict[int, Any]) -> None:
        for number, content in contents.items():
            self._bodies[number].copy_(content)

    def poison(self, number: int) -> None:
        self._bodies[number].fill_(_POISON_BYTE)

    def broken_guards(self) -> tuple[int, ...]:
        """Numbers of the storages outside of which something was written."""
        torch, broken = self._torch, []
        for number, whole in self._whole.items():
            end = GUARD_BYTES + self._bodies[number].numel()
            if bool(torch.any(whole[:GUARD_BYTES] != _GUARD_BYTE) | torch.any(whole[end:] != _GUARD_BYTE)):
                broken.append(number)
        return tuple(broken)


class Scratch:
    """Global and profile scratch of one launch plan, zeroed: as large as its metadata says."""

    def __init__(self, torch: Any, plan: LaunchPlan) -> None:
        sizes = {
            ParameterKind.GLOBAL_SCRATCH: plan.global_scratch_bytes,
            ParameterKind.PROFILE_SCRATCH: plan.profile_scratch_bytes,
        }
        self._tensors = {
            kind: torch.zeros(size, dtype=torch.uint8, device="cuda") for kind, size in sizes.items() if size
        }

    def address(self, kind: ParameterKind) -> int:
        tensor = self._tensors.get(kind)
        return int(tensor.data_ptr()) if tensor is not None else 0


def parameter_block(
    device: Device,
    launch: Launch,
    plan: LaunchPlan,
    buffers: Buffers,
    scratch: Scratch,
    item_sizes: Mapping[int, int],
) -> ParameterBlock:
    """The plan's parameters with addresses in `buffers`. `item_sizes`: bytes of an element by argument."""

    def address(index: int | None) -> int:
        assert index is not None
        argument = launch.arguments[index]
        if argument.alias is None:
            raise AbiError(f"{launch.id}: {argument.name!r} has no storage")
        return buffers.address(argument.alias) + (argument.storage_offset or 0) * item_sizes[index]

    contents: dict[int, bytes] = {}
    for place, parameter in enumerate(plan.parameters):
        if parameter.value is not None:
            contents[place] = parameter.value
        elif parameter.tensor_map is not None:
            contents[place] = device.tensor_map(parameter.tensor_map, address(parameter.argument))
        elif parameter.kind is ParameterKind.POINTER:
            contents[place] = address(parameter.argument).to_bytes(8, "little")
        else:
            contents[place] = scratch.address(parameter.kind).to_bytes(8, "little")
    return ParameterBlock(plan, contents)


_CHUNK_ELEMENTS = 1 << 25
_INTEGERS = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
DEFAULT_TOLERANCE = (1e-2, 1e-2)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How head's buffer differs from base's."""

    argument: str
    elements: int
    """That differ."""
    max_ulp: int | None
    """Distance in representable values; None for integers."""
    relative_norm: float
    """‖head - base‖ / ‖base‖, over elements that are finite on both sides."""
    within: bool
    """|head - base| <= atol + rtol x |base| everywhere, and the same infinities and NaNs."""


def difference(
    torch: Any, storage: Storage, base: Any, head: Any, tolerance: tuple[float, float] | None
) -> Difference | None:
    """None where the bytes are the same. `base` and `head`: byte tensors of the storage."""
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
    """Floats as integers in the same order, one step a representable value (sign-magnitude unfolded)."""
    size = storage.item_bytes
    bits = values.view(getattr(torch, _INTEGERS[size])).to(torch.int64)
    least = -(1 << (8 * size - 1))
    return torch.where(bits < 0, least - bits, bits)
