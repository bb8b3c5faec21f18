"""Plans what a launch passes to a kernel: from captured launch and metadata, checked against the binary.

The order is that of Triton's own launchers (`driver.py` of its backends, releases 3.2 to 3.9):

1. arguments in the order of the kernel's parameters; constexprs, and what was specialized to a constant
   (1, None), are not passed;
2. a host-made tensor descriptor with metadata becomes a CUtensorMap (128 bytes by value), then its shape
   as i32 and its strides as i64. Without metadata (GPUs without TMA): pointer, shape and strides as
   i64, then a padding flag (since 3.5) and a tf32-rounding flag (since 3.7), then shape and strides again;
3. a pointer to global scratch (since 3.3) and one to profile scratch (since 3.5).

Which of the last two, and which flags, an entry has is read from the entry itself.

What the entry takes is read from the binary, as its backend does (`entry`).
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from irdiff import backends
from irdiff.backends.kernel_entry import EntryError, KernelEntry
from irdiff.errors import IrdiffError, NormalizeError
from irdiff.model import Argument, Launch


def read_entry(binary: bytes, name: str, backend: str) -> KernelEntry:
    """The entry `name` of a binary. Raises EntryError."""
    try:
        return backends.of(backend).entry(binary, name)
    except NormalizeError as error:
        raise EntryError(error.what) from error
    except (struct.error, IndexError, ValueError, KeyError, TypeError) as error:
        raise EntryError(f"the binary of {name} is damaged: {error}") from error


class AbiError(IrdiffError):
    """A kernel cannot be launched as captured: its entry takes something else than would be passed."""


@dataclass(frozen=True, kw_only=True)
class TensorMap:
    """Arguments of `cuTensorMapEncodeTiled`, outermost dimension first as Triton keeps it."""

    element_type: int
    element_bytes: int
    swizzle: int
    block_shape: tuple[int, ...]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    """In elements."""


@dataclass(frozen=True, kw_only=True)
class Parameter:
    """One parameter of the entry and what goes into it.

    That is its value, or a tensor map, or the address of its argument, or that of scratch memory.
    """

    name: str
    """The name of the argument; `global_scratch` and `profile_scratch` are passed without an argument."""
    size_bytes: int
    offset_bytes: int = 0
    """The offset in the entry: 0 until the parameter has its place there."""
    argument: Argument | None = None
    """The tensor, or the descriptor that it comes from."""
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
    scratch_bytes: Mapping[str, int]
    """By the name of the parameter, where the kernel needs any."""


_SCALARS = {
    "i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "fp16": "e", "bf16": "f", "fp32": "f", "f32": "f", "fp64": "d",
}  # fmt: skip
"""Triton's type → the format of `struct`."""
_SCRATCH = ("global_scratch", "profile_scratch")
_POINTER_BYTES = 8
_TENSOR_MAP_BYTES = 128
_MAX_FLAGS = 2
_MOST_BLOCKS = (1 << 32) - 1
"""Drivers take the size of each axis of a grid as an unsigned integer of 32 bits."""
# element types as the compiler numbers them → CUtensorMapDataType (cuda.h), where the two differ
_ELEMENT_TYPES = {8: 10, 9: 8, 10: 9}


def plan(
    launch: Launch, metadata: Mapping[str, object], entry: KernelEntry, *, backend: str, warp_size: int
) -> LaunchPlan:
    """How to launch `entry` as captured. Raises AbiError where entry and launch do not agree."""
    if launch.grid is None:
        raise AbiError("no grid was captured")
    if not all(0 <= count <= _MOST_BLOCKS for count in launch.grid):
        raise AbiError(f"no driver launches a grid of {launch.grid}")
    choices = [_passed(launch, metadata, flags, backend) for flags in range(_MAX_FLAGS + 1)]
    parameters = next((placed for passed in choices if (placed := _placed(passed, entry)) is not None), None)
    if parameters is None:
        ours = " ".join(f"{p.name}:{p.size_bytes}" for p in choices[0])
        theirs = " ".join(str(p.size_bytes) for p in entry.parameters)
        raise AbiError(
            f"the launch would pass {len(choices[0])} arguments ({ours}), the entry takes "
            f"{len(entry.parameters)} parameters of {theirs} bytes; it was not launched"
        )
    has_clusters = backends.of(backend).HAS_CLUSTERS
    clusters = _cluster(metadata) if has_clusters else _integer(metadata, "num_ctas", 1)
    threads = _integer(metadata, "num_warps", 4) * _integer(metadata, "warp_size", warp_size)
    if entry.required_threads is not None and entry.required_threads != threads:
        raise AbiError(f"the binary wants {entry.required_threads} threads a block, the launch has {threads}")
    blocks = math.prod(launch.grid) * (clusters if has_clusters else 1)
    scratch = {name: blocks * size for name in _SCRATCH if (size := _integer(metadata, f"{name}_size", 0))}
    for name in scratch.keys() - {parameter.name for parameter in parameters if not parameter.argument}:
        raise AbiError(f"the kernel needs {name.replace('_', ' ')} and its entry takes none")
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
        scratch_bytes=scratch,
    )


def _passed(
    launch: Launch, metadata: Mapping[str, object], flags: int, backend: str
) -> tuple[Parameter, ...]:
    missing = {name for name, type_ in launch.signature.items() if type_ != "constexpr"}
    missing -= {argument.name for argument in launch.arguments} | set(launch.constexprs)
    if missing:
        raise AbiError(f"no argument was captured for {', '.join(sorted(missing))}")
    described = metadata.get("tensordesc_meta") or ()
    descriptions = iter(described if isinstance(described, (list, tuple)) else ())
    parameters: list[Parameter] = []
    # The order is that of the arguments: a run's JSON keeps mappings sorted by name.
    for argument in launch.arguments:
        name, type_ = argument.name, launch.signature.get(argument.name, "constexpr")
        if type_ == "constexpr" or name in launch.constexprs:
            continue
        if type_.startswith("tensordesc"):
            parameters += _descriptor(argument, next(descriptions, None), flags, backend)
        elif type_.startswith("*"):
            parameters.append(_pointer(argument))
        elif type_ in _SCALARS:
            parameters.append(_scalar(argument, type_, argument.value))
        else:
            raise AbiError(f"parameter {name!r} of type {type_} cannot be passed by this irdiff")
    return tuple(parameters)


def _pointer(argument: Argument) -> Parameter:
    if argument.kind not in ("tensor", "none"):
        raise AbiError(f"{argument.name!r} is a pointer, and a {argument.kind} was captured")
    null = bytes(_POINTER_BYTES) if argument.kind == "none" else None
    return Parameter(name=argument.name, size_bytes=_POINTER_BYTES, argument=argument, value=null)


def _scalar(argument: Argument, type_: str, value: object) -> Parameter:
    """With the captured value, or a part of a descriptor."""
    try:
        packed = pack_scalar(type_, value)
    except (struct.error, OverflowError, TypeError, ValueError) as error:
        raise AbiError(f"{argument.name}={value!r} is not a {type_}: {error}") from error
    return Parameter(name=argument.name, size_bytes=len(packed), argument=argument, value=packed)


def pack_scalar(type_: str, value: object) -> bytes:
    """A scalar as the kernel reads it, little-endian. Raises struct.error, OverflowError, TypeError,
    ValueError.
    """
    code = _SCALARS[type_]
    if not isinstance(value, (bool, int, float, str)):
        raise TypeError(f"a {type(value).__name__}")
    if type_ == "bf16":  # the upper half of the fp32, as Triton's launcher does (`pack_bf16`)
        return _pack_fp32(float(value))[2:]
    if code == "f":
        return _pack_fp32(float(value))
    if code in "ed":
        return struct.pack("<" + code, float(value))
    number = int(bool(int(value))) if type_ == "i1" else int(value)
    # values of uint64 and uint32 keep their bits
    return struct.pack(
        "<" + (code if number < 1 << (8 * struct.calcsize("<" + code) - 1) else code.upper()), number
    )


def _pack_fp32(value: float) -> bytes:
    """A number that is too large becomes infinite, as in C."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _descriptor(argument: Argument, settings: object, flags: int, backend: str) -> list[Parameter]:
    shape, strides = argument.shape, argument.strides
    if shape is None or strides is None:
        raise AbiError(f"descriptor {argument.name!r} has no shape")

    def scalars(type_: str, values: Sequence[int]) -> list[Parameter]:
        return [_scalar(argument, type_, value) for value in values]

    again = [*scalars("i32", shape), *scalars("i64", strides)]
    first = Parameter(name=argument.name, size_bytes=_POINTER_BYTES, argument=argument)
    if settings is None:
        return [first, *scalars("i64", shape), *scalars("i64", strides), *scalars("i1", [0] * flags), *again]
    if not backends.of(backend).HAS_TENSOR_MAPS or not isinstance(settings, Mapping):
        raise AbiError(f"descriptor {argument.name!r} is of a kind this irdiff cannot make")
    return [
        replace(first, size_bytes=_TENSOR_MAP_BYTES, tensor_map=_tensor_map(shape, strides, settings)),
        *again,
    ]


def _tensor_map(
    shape: tuple[int, ...], strides: tuple[int, ...], settings: Mapping[str, object]
) -> TensorMap:
    if settings.get("is_im2col"):
        raise AbiError("im2col descriptors are not captured with their window")
    if settings.get("fp4_padded"):
        shape = (*shape[:-1], shape[-1] * 2)
    block = settings["block_size"]
    assert isinstance(block, (list, tuple))
    element_type = _integer(settings, "elem_type", 0)
    return TensorMap(
        element_type=_ELEMENT_TYPES.get(element_type, element_type),
        element_bytes=_integer(settings, "elem_size", 0),
        swizzle=_integer(settings, "swizzle", 0),
        block_shape=tuple(int(n) for n in block),
        shape=shape,
        strides=strides,
    )


def _placed(passed: Sequence[Parameter], entry: KernelEntry) -> tuple[Parameter, ...] | None:
    """The entry's parameters with what goes into each; None where they do not fit."""
    extra = len(entry.parameters) - len(passed)
    if not 0 <= extra <= len(_SCRATCH):
        return None
    scratch = [Parameter(name=name, size_bytes=_POINTER_BYTES) for name in _SCRATCH[:extra]]
    slots = list(zip(entry.parameters, (*passed, *scratch), strict=True))
    if any(slot.size_bytes != parameter.size_bytes for slot, parameter in slots):
        return None
    return tuple(replace(parameter, offset_bytes=slot.offset_bytes) for slot, parameter in slots)


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
