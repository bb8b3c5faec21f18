"""The part of MessagePack that AMD's metadata note uses (msgpack specification, "Formats")."""

from __future__ import annotations

_MAX_DEPTH = 32
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}


def unpack(content: bytes) -> object:
    """The first value. Raises ValueError or IndexError where the content is damaged."""
    return _value(content, 0, 0)[0]


def _value(content: bytes, at: int, depth: int) -> tuple[object, int]:
    if depth > _MAX_DEPTH:
        raise ValueError("nested too deeply")
    code = content[at]
    at += 1
    if code < 0x80 or code >= 0xE0:
        return (code if code < 0x80 else code - 256), at
    if code < 0x90:
        return _map(content, at, code & 15, depth)
    if code < 0xA0:
        return _array(content, at, code & 15, depth)
    if code < 0xC0:
        return content[at : at + (code & 31)].decode(), at + (code & 31)
    if code in _CONSTANTS:
        return _CONSTANTS[code], at
    return _long(content, at, code, depth)


def _long(content: bytes, at: int, code: int, depth: int) -> tuple[object, int]:
    """A value whose number or length follows its first byte."""
    if 0xCC <= code <= 0xD3:
        size = 1 << (code & 3)
        return int.from_bytes(content[at : at + size], "big", signed=code >= 0xD0), at + size
    if 0xD9 <= code <= 0xDF:
        size = {0xD9: 1, 0xDA: 2, 0xDB: 4, 0xDC: 2, 0xDD: 4, 0xDE: 2, 0xDF: 4}[code]
        count = int.from_bytes(content[at : at + size], "big")
        at += size
        if code <= 0xDB:
            return content[at : at + count].decode(), at + count
        return (_array if code <= 0xDD else _map)(content, at, count, depth)
    raise ValueError(f"format {code:#x}")


def _array(content: bytes, at: int, count: int, depth: int) -> tuple[list[object], int]:
    items = []
    for _ in range(count):
        item, at = _value(content, at, depth + 1)
        items.append(item)
    return items, at


def _map(content: bytes, at: int, count: int, depth: int) -> tuple[dict[object, object], int]:
    items = {}
    for _ in range(count):
        key, at = _value(content, at, depth + 1)
        items[key], at = _value(content, at, depth + 1)
    return items, at
