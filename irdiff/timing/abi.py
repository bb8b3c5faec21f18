"""What a launch passes to a kernel: from captured launch and metadata, checked against the binary.

The order is that of Triton's own launchers (`backends/nvidia/driver.py`, `backends/amd/driver.py`, releases
3.2 to 3.9):

1. arguments in the order of the kernel's parameters; constexprs, and what was specialized to a constant
   (1, None), are not passed;
2. a host-made tensor descriptor with metadata becomes a CUtensorMap (128 bytes by value), then its shape
   as i32 and its strides as i64. Without metadata (AMD, GPUs without TMA): pointer, shape and strides as
   i64, then a padding flag (since 3.5) and a tf32-rounding flag (since 3.7), then shape and strides again;
3. a pointer to global scratch (since 3.3) and one to profile scratch (since 3.5).

Which of the last two, and which flags, an entry has is read from the entry itself.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from irdiff.errors import IrdiffError
from irdiff.model import Launch
from irdiff.timing.kernel_entry import KernelEntry


class AbiError(IrdiffError):
    """A kernel cannot be launched as captured: its entry takes something else than would be passed."""


class ParameterKind(StrEnum):
    POINTER = "pointer"
    SCALAR = "scalar"
    TENSOR_MAP = "tensor map"
    GLOBAL_SCRATCH = "global scratch"
    PROFILE_SCRATCH = "profile scratch"


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """What `cuTensorMapEncodeTiled` is called with, outermost dimension first as Triton keeps it."""

    element_type: int
    element_bytes: int
    swizzle: int
    block_shape: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of the entry and what goes into it."""

    kind: ParameterKind
    name: str
    size_bytes: int
    offset_bytes: int = 0
    """Of the entry: 0 until the parameter has found its place there."""
    argument: int | None = None
    """Index into the launch's arguments: of the tensor, or of the descriptor that it comes from."""
    value: bytes | None = None
    """Scalars, packed; None for what only exists on the device."""
    tensor_map: TensorMap | None = None


@dataclass(frozen=True, kw_only=True)
class LaunchPlan:
    """Everything a driver needs to launch one side of a case, apart from addresses."""

    kernel: str
    grid: tuple[int, int, int]
    """In blocks: the captured grid times the cluster."""
    block_threads: int
    cluster: int
    shared_bytes: int
    cooperative: bool
    programmatic: bool
    """Programmatic dependent launch."""
    parameters: tuple[Parameter, ...]
    size_bytes: int
    global_scratch_bytes: int
    profile_scratch_bytes: int


_SCALARS = {
    # Triton type → (struct format, bytes)
    "i1": ("b", 1),
    "i8": ("b", 1),
    "i16": ("h", 2),
    "i32": ("i", 4),
    "i64": ("q", 8),
    "u1": ("B", 1),
    "u8": ("B", 1),
    "u16": ("H", 2),
    "u32": ("I", 4),
    "u64": ("Q", 8),
    "fp16": ("e", 2),
    "bf16": ("f", 2),
    "fp32": ("f", 4),
    "f32": ("f", 4),
    "fp64": ("d", 8),
}
_POINTER_BYTES = 8
_TENSOR_MAP_BYTES = 128
_MAX_FLAGS = 2
# element types as the compiler numbers them → CUtensorMapDataType (cuda.h), where the two differ
_ELEMENT_TYPES = {8: 10, 9: 8, 10: 9}
_DESCRIPTOR = re.compile(r"tensordesc(?:_im2col)?<")


def plan(
    launch: Launch, metadata: Mapping[str, object], entry: KernelEntry, *, backend: str, warp_size: int
) -> LaunchPlan:
    """How to launch `entry` as captured. Raises AbiError where entry and launch do not agree."""
    if launch.grid is None:
        raise AbiError(f"{launch.id}: no grid was captured")
    choices = [_passed(launch, metadata, flags, backend) for flags in range(_MAX_FLAGS + 1)]
    fitting = (_placed(passed, entry) for passed in choices)
    parameters = next((rows for rows in fitting if rows is not None), None)
    if parameters is None:
        raise AbiError(_mismatch(launch, choices[0], entry))
    clusters = _cluster(metadata) if backend == "cuda" else _integer(metadata, "num_ctas", 1)
    threads = _integer(metadata, "num_warps", 4) * _integer(metadata, "warp_size", warp_size)
    if entry.required_threads is not None and entry.required_threads != threads:
        raise AbiError(
            f"{launch.id}: the binary wants {entry.required_threads} threads a block, "
            f"the launch has {threads}"
        )
    kinds = {p.kind for p in parameters}
    blocks = math.prod(launch.grid) * (clusters if backend == "cuda" else 1)
    return LaunchPlan(
        kernel=entry.name,
        grid=(launch.grid[0] * clusters, launch.grid[1], launch.grid[2]),
        block_threads=threads,
        cluster=clusters,
        shared_bytes=_integer(metadata, "shared", 0),
        cooperative=bool(metadata.get("launch_cooperative_grid")),
        programmatic=bool(metadata.get("launch_pdl")),
        parameters=parameters,
        size_bytes=entry.size_bytes,
        global_scratch_bytes=_scratch(launch, metadata, "global_scratch", kinds, blocks),
        profile_scratch_bytes=_scratch(launch, metadata, "profile_scratch", kinds, blocks),
    )


def _passed(
    launch: Launch, metadata: Mapping[str, object], flags: int, backend: str
) -> tuple[Parameter, ...]:
    missing = {name for name, type_ in launch.signature.items() if type_ != "constexpr"}
    missing -= {argument.name for argument in launch.arguments} | set(launch.constexprs)
    if missing:
        raise AbiError(f"{launch.id}: no argument was captured for {', '.join(sorted(missing))}")
    described = metadata.get("tensordesc_meta") or ()
    rows = iter(described if isinstance(described, (list, tuple)) else ())
    found: list[Parameter] = []
    # The order is that of the arguments: a run's JSON keeps mappings sorted by name.
    for index, argument in enumerate(launch.arguments):
        name, type_ = argument.name, launch.signature.get(argument.name, "constexpr")
        if type_ == "constexpr" or name in launch.constexprs:
            continue
        if _DESCRIPTOR.match(type_):
            found += _descriptor(launch, index, next(rows, None), flags, backend)
        elif type_.startswith("*"):
            found.append(_pointer(launch, index))
        elif type_ in _SCALARS:
            found.append(_scalar(launch, index, type_))
        else:
            raise AbiError(f"{launch.id}: parameter {name!r} of type {type_} cannot be passed by this irdiff")
    return tuple(found)


def _pointer(launch: Launch, index: int) -> Parameter:
    argument = launch.arguments[index]
    if argument.kind not in ("tensor", "none"):
        raise AbiError(f"{launch.id}: {argument.name!r} is a pointer, and a {argument.kind} was captured")
    null = bytes(_POINTER_BYTES) if argument.kind == "none" else None
    return Parameter(
        kind=ParameterKind.POINTER, name=argument.name, size_bytes=_POINTER_BYTES, argument=index, value=null
    )


def _scalar(launch: Launch, index: int, type_: str, value: object = None) -> Parameter:
    """With the captured value, or a part of a descriptor."""
    argument = launch.arguments[index]
    value = argument.value if value is None else value
    try:
        packed = pack_scalar(type_, value)
    except (struct.error, TypeError, ValueError) as error:
        raise AbiError(f"{launch.id}: {argument.name}={value!r} is not a {type_}: {error}") from error
    return Parameter(
        kind=ParameterKind.SCALAR, name=argument.name, size_bytes=len(packed), argument=index, value=packed
    )


def pack_scalar(type_: str, value: object) -> bytes:
    """A scalar as the kernel reads it, little-endian. Raises struct.error, TypeError, ValueError."""
    code, size = _SCALARS[type_]
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"a {type(value).__name__}")
    if type_ == "bf16":  # the upper half of the fp32, as Triton's launcher does (`pack_bf16`)
        return struct.pack("<f", float(value))[2:]
    number = float(value) if code in "efd" else int(value)
    if code in "bhiq" and number >= 1 << (8 * size - 1):  # uint64 and uint32 values keep their bits
        code = code.upper()
    if type_ == "i1":
        number = int(bool(number))
    return struct.pack("<" + code, number)


def _descriptor(launch: Launch, index: int, row: object, flags: int, backend: str) -> list[Parameter]:
    argument = launch.arguments[index]
    if argument.shape is None or argument.strides is None:
        raise AbiError(f"{launch.id}: descriptor {argument.name!r} has no shape")
    shape, strides = argument.shape, argument.strides

    def scalars(type_: str, values: Sequence[int]) -> list[Parameter]:
        return [_scalar(launch, index, type_, value) for value in values]

    again = [*scalars("i32", shape), *scalars("i64", strides)]
    first = Parameter(
        kind=ParameterKind.POINTER, name=argument.name, size_bytes=_POINTER_BYTES, argument=index
    )
    if row is None:
        return [first, *scalars("i64", shape), *scalars("i64", strides), *scalars("i1", [0] * flags), *again]
    if backend != "cuda" or not isinstance(row, Mapping):
        raise AbiError(f"{launch.id}: descriptor {argument.name!r} is of a kind this irdiff cannot make")
    made = _tensor_map(launch, shape, strides, row)
    tensor_map = ParameterKind.TENSOR_MAP
    return [replace(first, kind=tensor_map, size_bytes=_TENSOR_MAP_BYTES, tensor_map=made), *again]


def _tensor_map(
    launch: Launch, shape: tuple[int, ...], strides: tuple[int, ...], row: Mapping[str, object]
) -> TensorMap:
    if row.get("is_im2col"):
        raise AbiError(f"{launch.id}: im2col descriptors are not captured with their window")
    if row.get("fp4_padded"):
        shape = (*shape[:-1], shape[-1] * 2)
    block = row["block_size"]
    assert isinstance(block, (list, tuple))
    element_type = _integer(row, "elem_type", 0)
    return TensorMap(
        element_type=_ELEMENT_TYPES.get(element_type, element_type),
        element_bytes=_integer(row, "elem_size", 0),
        swizzle=_integer(row, "swizzle", 0),
        block_shape=tuple(int(n) for n in block),
        shape=shape,
        strides=strides,
    )


def _placed(passed: Sequence[Parameter], entry: KernelEntry) -> tuple[Parameter, ...] | None:
    """The entry's parameters with what goes into each; None where they do not fit."""
    extra = len(entry.parameters) - len(passed)
    if not 0 <= extra <= len(_SCRATCH):
        return None
    scratch = [Parameter(kind=kind, name=kind, size_bytes=_POINTER_BYTES) for kind in _SCRATCH[:extra]]
    rows = list(zip(entry.parameters, (*passed, *scratch), strict=True))
    if any(slot.size_bytes != given.size_bytes for slot, given in rows):
        return None
    return tuple(replace(given, offset_bytes=slot.offset_bytes) for slot, given in rows)


_SCRATCH = (ParameterKind.GLOBAL_SCRATCH, ParameterKind.PROFILE_SCRATCH)


def _mismatch(launch: Launch, passed: Sequence[Parameter], entry: KernelEntry) -> str:
    ours = " ".join(f"{p.name}:{p.size_bytes}" for p in passed)
    theirs = " ".join(str(p.size_bytes) for p in entry.parameters)
    return (
        f"{launch.id}: the launch would pass {len(passed)} arguments ({ours}), the entry takes "
        f"{len(entry.parameters)} parameters of {theirs} bytes; it was not launched"
    )


def _scratch(
    launch: Launch, metadata: Mapping[str, object], name: str, kinds: set[ParameterKind], blocks: int
) -> int:
    size = _integer(metadata, f"{name}_size", 0)
    if size and ParameterKind(name.replace("_", " ")) not in kinds:
        raise AbiError(f"{launch.id}: the kernel needs {name.replace('_', ' ')} and its entry takes none")
    return size * blocks


def _cluster(metadata: Mapping[str, object]) -> int:
    dims = metadata.get("cluster_dims")  # until 3.5; since then num_ctas alone
    if isinstance(dims, (list, tuple)) and dims:
        if any(int(n) != 1 for n in dims[1:]):
            raise AbiError(f"a cluster of {dims} is not along the first dimension")
        return int(dims[0])
    return _integer(metadata, "num_ctas", 1)


def _integer(metadata: Mapping[str, object], name: str, default: int) -> int:
    value = metadata.get(name)
    return int(value) if isinstance(value, (int, float)) else default
