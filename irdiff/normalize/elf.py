"""Sections of a 64-bit little-endian ELF file (System V ABI, "Object Files")."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from irdiff.errors import NormalizeError

NOBITS = 8
MAX_SECTIONS = 65_279


@dataclass(frozen=True, kw_only=True)
class Section:
    name: str
    type: int
    flags: int
    link: int
    info: int
    size: int
    content: bytes
    """Empty for sections that occupy no space in the file."""


def read_sections(binary: bytes, what: str) -> list[Section]:
    """All sections in file order. Raises NormalizeError for anything that is not a whole ELF file."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise NormalizeError(f"{what}: not a 64-bit little-endian ELF file")
    try:
        (table,) = struct.unpack_from("<Q", binary, 0x28)
        entry_size, count, names_index = struct.unpack_from("<HHH", binary, 0x3A)
        headers = [
            struct.unpack_from("<IIQQQQIIQQ", binary, table + index * entry_size) for index in range(count)
        ]
        names = _content(binary, headers[names_index], what)
        return [
            Section(
                name=names[header[0] : names.index(b"\0", header[0])].decode("utf-8", "replace"),
                type=header[1],
                flags=header[2],
                link=header[6],
                info=header[7],
                size=header[5],
                content=_content(binary, header, what),
            )
            for header in headers
        ]
    except (struct.error, IndexError, ValueError) as error:
        raise NormalizeError(f"{what}: damaged ELF file ({error})") from error


def _content(binary: bytes, header: tuple[int, ...], what: str) -> bytes:
    if header[1] == NOBITS:
        return b""
    offset, size = header[4], header[5]
    if offset + size > len(binary):
        raise NormalizeError(f"{what}: a section ends behind the end of the file")
    return binary[offset : offset + size]
