"""What a kernel reads of its launch: the constant bank, the grid, and contents that the launch fixes.

The layout of constant bank 0 is that of the driver for each generation: what precedes the parameters was read
from disassembled kernels that ask for each value (`%ntid`, `%nctaid`, the address of a parameter), where they
begin is stated by the cubin (`EIATTR_PARAM_CBANK`).
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.backends import elf
from irdiff.backends.launch_plan import LaunchPlan
from irdiff.backends.nvidia import cubin
from irdiff.errors import NormalizeError

_PARAM_CBANK = 0x0A
_STACK_TOP = 0xFFFDE0
_PARAMETER_ADDRESS = 0x7E00_1000_0000
_UNKNOWN = -1
_MOST_ARGUMENT_BYTES = 1 << 16
_FIRST_ADDRESS = 0x7F00_1000_0000
"""Low words begin well above zero, so that no tensor of less than 3.7 GB crosses a 32-bit boundary."""
_ADDRESS_STEP = 1 << 36
_MAX_KNOWN_ELEMENTS = 1 << 22
_NUMPY = {
    "i1": "u1",
    "i8": "i1",
    "u8": "u1",
    "i16": "i2",
    "u16": "u2",
    "i32": "i4",
    "u32": "u4",
    "i64": "i8",
    "u64": "u8",
}


@dataclass(frozen=True, kw_only=True)
class BankLayout:
    """Where constant bank 0 holds what a kernel did not get as a parameter."""

    block: int
    grid: int
    stack: int
    parameters: int
    """The generic address of the parameters, from which a kernel takes those of tensor maps."""


BANK_LAYOUTS: Mapping[int, BankLayout] = {
    90: BankLayout(block=0x0, grid=0xC, stack=0x28, parameters=0x198),
    100: BankLayout(block=0x360, grid=0x370, stack=0x37C, parameters=0x348),
}
"""By compute capability times ten."""


@dataclass(frozen=True, kw_only=True)
class KnownContent:
    """A tensor's storage whose content the launch fixes."""

    address: int
    content: Any
    """Bytes, a uint8 array."""


@dataclass(frozen=True, kw_only=True)
class LaunchFacts:
    """Everything that counting needs of a launch."""

    kernel: str
    arch: int
    """0 for AMD."""
    grid: tuple[int, int, int]
    """In blocks, clusters multiplied out along the first dimension."""
    cluster: int
    warps: int
    constants: Mapping[int, Any]
    """Bank → its bytes: int16, -1 where they are not known."""
    regions: tuple[KnownContent, ...]
    shared_bytes: int
    descriptors: Mapping[int, int]
    """Address of a tensor map → bytes of the box that one copy moves."""


def facts_of(
    plan: LaunchPlan, binary: bytes, arch: int, contents: Mapping[int, Any] | None = None
) -> LaunchFacts:
    """Of a launch on an NVIDIA GPU. `contents`: bytes of storages that a caller knows, by their number."""
    base, layout = _parameter_base(binary, plan.kernel), BANK_LAYOUTS[arch]
    bank = np.full(base + max(plan.size_bytes, 1), _UNKNOWN, dtype=np.int16)
    _put(bank, layout.block, struct.pack("<3I", plan.block_threads, 1, 1))
    _put(bank, layout.grid, struct.pack("<3I", *plan.grid))
    _put(bank, layout.parameters, struct.pack("<Q", _PARAMETER_ADDRESS))
    _put(bank, layout.stack, struct.pack("<I", _STACK_TOP))
    regions, descriptors = _arguments(plan, bank, base, contents or {})
    return LaunchFacts(
        kernel=plan.kernel, arch=arch, grid=plan.grid, cluster=plan.cluster,
        warps=-(-plan.block_threads // 32), constants={0: bank}, regions=tuple(regions),
        shared_bytes=plan.shared_bytes, descriptors=descriptors,
    )  # fmt: skip


def of_waves(plan: LaunchPlan, hidden: Mapping[str, tuple[int, int]]) -> LaunchFacts:
    """Of a launch on an AMD GPU: bank 0 is its kernel arguments.

    `hidden`: offset and size of what the runtime passes, by name.
    """
    size = max([plan.size_bytes, 1, *(offset + width for offset, width in hidden.values())])
    if size > _MOST_ARGUMENT_BYTES:
        raise NormalizeError(f"{plan.kernel} takes {size:,} bytes of arguments")
    bank = np.full(size, _UNKNOWN, dtype=np.int16)
    regions, _ = _arguments(plan, bank, 0, {})
    block = (plan.block_threads, 1, 1)
    values = {f"block_count_{axis}": plan.grid[n] for n, axis in enumerate("xyz")}
    values |= {f"group_size_{axis}": block[n] for n, axis in enumerate("xyz")}
    for name, (offset, width) in hidden.items():
        if name in values and 0 <= offset <= len(bank) - width and width in (2, 4, 8):
            _put(bank, offset, values[name].to_bytes(8, "little")[:width])
    return LaunchFacts(
        kernel=plan.kernel, arch=0, grid=plan.grid, cluster=1, warps=-(-plan.block_threads // 64),
        constants={0: bank}, regions=tuple(regions), shared_bytes=plan.shared_bytes, descriptors={},
    )  # fmt: skip


def _arguments(
    plan: LaunchPlan, bank: Any, base: int, contents: Mapping[int, Any]
) -> tuple[list[KnownContent], dict[int, int]]:
    """Puts what is passed into the bank; returns contents that the launch fixes, and boxes of tensor maps."""
    addresses: dict[int, int] = {}
    descriptors: dict[int, int] = {}
    regions: list[KnownContent] = []
    for parameter in plan.parameters:
        place, argument = base + parameter.offset_bytes, parameter.argument
        if parameter.value is not None:
            _put(bank, place, parameter.value)
        elif parameter.tensor_map is not None:
            box = parameter.tensor_map.element_bytes
            for size in parameter.tensor_map.block_shape:
                box *= size
            descriptors[_PARAMETER_ADDRESS + parameter.offset_bytes] = box
        elif argument is None or argument.alias is None:
            _put(bank, place, struct.pack("<Q", _FIRST_ADDRESS + _ADDRESS_STEP * 200))
        else:
            start = addresses.setdefault(argument.alias, _FIRST_ADDRESS + _ADDRESS_STEP * len(addresses))
            item = _item_bytes(argument.dtype or "i8")
            _put(bank, place, struct.pack("<Q", start + item * (argument.storage_offset or 0)))
            content = contents.get(argument.alias)
            if content is None:
                content = _fixed(
                    argument.dtype, argument.fill, argument.shape, argument.strides, argument.storage_offset
                )
            if content is not None:
                regions.append(KnownContent(address=start, content=content.view(np.uint8)))
    return regions, descriptors


def _put(bank: Any, place: int, content: bytes) -> None:
    bank[place : place + len(content)] = np.frombuffer(content, dtype=np.uint8)


def _parameter_base(binary: bytes, kernel: str) -> int:
    file = elf.read(binary, "cubin")
    for section in file.sections:
        if section.name == f".nv.info.{kernel}":
            for number, value in cubin.attributes(section.content):
                if number == _PARAM_CBANK and len(value) == 8:
                    return int(struct.unpack("<IHH", value)[1])
    raise NormalizeError(f"the cubin does not say where the parameters of {kernel} lie")


def _item_bytes(dtype: str) -> int:
    bits = "".join(character for character in dtype.split("e", maxsplit=1)[0] if character.isdigit())
    return max(1, int(bits or "8") // 8)


def _fixed(
    dtype: str | None,
    fill: str | None,
    shape: Sequence[int] | None,
    strides: Sequence[int] | None,
    offset: int | None,
) -> Any:
    """The content of a storage of integers that its fill determines; None for any other."""
    kind, _, rest = (fill or "normal").partition(":")
    if dtype not in _NUMPY or shape is None or strides is None or 0 in tuple(shape):
        return None
    elements = (offset or 0) + 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    if not 0 < elements <= _MAX_KNOWN_ELEMENTS:
        return None
    number = np.dtype(_NUMPY[dtype])
    words = rest.split(",")
    if kind == "arange":
        return np.arange(elements).astype(number)
    if kind == "values":
        content = np.zeros(elements, dtype=number)
        content[: len(words)] = [int(word) for word in words[:elements]]
        return content
    constant = {"zeros": 0.0, "ones": 1.0}.get(kind)
    if kind == "const":
        constant = float(words[0])
    return None if constant is None else np.full(elements, constant).astype(number)
