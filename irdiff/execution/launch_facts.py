"""Facts of a launch that a kernel reads: arguments, grid, and contents that the launch fixes. Pure."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.backends.launch_plan import LaunchPlan

PARAMETER_ADDRESS = 0x7E00_1000_0000
UNKNOWN_BYTE = -1
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


def put_arguments(
    plan: LaunchPlan, bank: Any, base: int, contents: Mapping[int, Any]
) -> tuple[list[KnownContent], dict[int, int]]:
    """Puts what is passed into the bank; returns contents that the launch fixes, and boxes of tensor maps."""
    addresses: dict[int, int] = {}
    descriptors: dict[int, int] = {}
    regions: list[KnownContent] = []
    for parameter in plan.parameters:
        place, argument = base + parameter.offset_bytes, parameter.argument
        if parameter.value is not None:
            put(bank, place, parameter.value)
        elif parameter.tensor_map is not None:
            box = parameter.tensor_map.element_bytes
            for size in parameter.tensor_map.block_shape:
                box *= size
            descriptors[PARAMETER_ADDRESS + parameter.offset_bytes] = box
        elif argument is None or argument.alias is None:
            put(bank, place, struct.pack("<Q", _FIRST_ADDRESS + _ADDRESS_STEP * 200))
        else:
            start = addresses.setdefault(argument.alias, _FIRST_ADDRESS + _ADDRESS_STEP * len(addresses))
            item = _item_bytes(argument.dtype or "i8")
            put(bank, place, struct.pack("<Q", start + item * (argument.storage_offset or 0)))
            content = contents.get(argument.alias)
            if content is None:
                content = _fixed(
                    argument.dtype, argument.fill, argument.shape, argument.strides, argument.storage_offset
                )
            if content is not None:
                regions.append(KnownContent(address=start, content=content.view(np.uint8)))
    return regions, descriptors


def put(bank: Any, place: int, content: bytes) -> None:
    bank[place : place + len(content)] = np.frombuffer(content, dtype=np.uint8)


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
