"""Sections and symbols of a 64-bit little-endian ELF file (System V ABI, "Object Files").

What is read is bounded by the size of the file: "Sections in a file may not overlap", and where ptxas lets
two share their bytes (the PTX text, and the same next to the capsule) all are still shorter than two files. A
file whose sections, or whose names, are longer is refused.

pyelftools 0.33 reads the same of every binary in the tests (`tests/unit/backends/test_elf.py`), but for two
bits of `st_other` that it drops: one of them marks the kernels of a cubin. It trusts the file,
too: sections that overlap, symbols with one long name, or a section that says it is compressed make it take
gigabytes for a file of 4 MB. And it takes ten times as long, more where there are many symbols.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from irdiff.errors import NormalizeError

NULL = 0
SYMTAB = 2
STRTAB = 3
NOBITS = 8
DYNSYM = 11
RELOCATIONS = {4: "<QIIq", 9: "<QII"}
"""Type of a section → layout of its rows: offset, kind, number of a symbol and, of RELA, an addend."""
FUNCTION = 2
SECTION_SYMBOL = 3
_SHOWN = (1, 2)
"""STB_GLOBAL, STB_WEAK."""
EXECUTED = 4
"""A flag of sections: it holds instructions."""
KERNEL = "KERNEL"
"""Stands for the name of a file's one kernel."""
LOCAL = "LOCAL"
"""Stands for the name of a symbol that nothing outside of the file can ask for."""

_MAX_SHARED = 2


@dataclass(frozen=True)
class Section:
    name: str
    type: int
    flags: int
    address: int
    size: int
    link: int
    info: int
    alignment: int
    content: bytes
    """Empty for sections that occupy no space in the file."""


@dataclass(frozen=True)
class Elf:
    """One file: what its header says of the machine, and its sections in file order."""

    abi_version: int
    flags: int
    sections: tuple[Section, ...]


@dataclass(frozen=True)
class Symbol:
    name: str
    info: int
    other: int
    index: int
    """The number of its section: 0 if the file does not define it, above all sections for a fixed value."""
    value: int
    size: int

    @property
    def type(self) -> int:
        return self.info & 15

    @property
    def is_local(self) -> bool:
        """Defined in a section of the file, with STB_LOCAL."""
        return self.info >> 4 == 0 and self.index != 0

    @property
    def is_found_by_name(self) -> bool:
        """A function of the file, global or weak: a driver looks up a kernel among these."""
        return self.type == FUNCTION and self.info >> 4 in _SHOWN and self.index != 0


def read(binary: bytes, what: str) -> Elf:
    """Raises NormalizeError for anything that is not a whole ELF file."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise NormalizeError(f"{what}: not a 64-bit little-endian ELF file")
    try:
        table, flags, entry_size, count, names_index = struct.unpack_from("<QI6xHHH", binary, 0x28)
        places = range(table, table + count * entry_size, entry_size)
        headers = [struct.unpack_from("<IIQQQQIIQQ", binary, place) for place in places]
        if sum(_file_size(header) for header in headers) > _MAX_SHARED * len(binary):
            raise NormalizeError(f"{what}: the sections overlap: they are longer than {_MAX_SHARED} files")
        contents = [_content(binary, header, what) for header in headers]
        names = _names(contents[names_index], [header[0] for header in headers], len(binary))
    except (struct.error, IndexError, ValueError) as error:
        raise NormalizeError(f"{what}: damaged ELF file ({error})") from error
    sections = [
        Section(name, kind, section_flags, address, size, link, info, alignment, content)
        for name, (_, kind, section_flags, address, _, size, link, info, alignment, _), content in zip(
            names, headers, contents, strict=True
        )
    ]
    return Elf(binary[8], flags, tuple(sections))


def symbols(elf: Elf) -> list[Symbol]:
    """Reads the full table of symbols, else the one for the loader. Raises ValueError if it is damaged."""
    tables = [section for kind in (SYMTAB, DYNSYM) for section in elf.sections if section.type == kind]
    if not tables:
        return []
    table = rows("<IBBHQQ", tables[0].content)
    texts = elf.sections[tables[0].link].content
    names = _names(
        texts, [fields[0] for fields in table], sum(len(section.content) for section in elf.sections)
    )
    return [Symbol(name, *fields[1:]) for name, fields in zip(names, table, strict=True)]


def rows(layout: str, content: bytes) -> list[tuple[int, ...]]:
    """Rows of one `struct` layout. Raises ValueError where the content ends within a row."""
    size = struct.calcsize(layout)
    if len(content) % size:
        raise ValueError(f"{len(content)} bytes are no whole number of rows of {size}")
    return list(struct.iter_unpack(layout, content))


def by_name(parts: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """None is lost where two have one name."""
    contents: dict[str, bytes] = {}
    for name, content in parts:
        number = sum(other.partition("\0")[0] == name for other in contents)
        contents[f"{name}\0{number}" if number else name] = content
    return contents


def _file_size(header: tuple[int, ...]) -> int:
    return 0 if header[1] in (NULL, NOBITS) else header[5]


def _content(binary: bytes, header: tuple[int, ...], what: str) -> bytes:
    offset, size = header[4], _file_size(header)
    if offset + size > len(binary):
        raise NormalizeError(f"{what}: a section ends after the end of the file")
    return binary[offset : offset + size]


def _names(texts: bytes, offsets: Sequence[int], budget: int) -> list[str]:
    """The strings at some offsets of a string table, together no longer than `budget`."""
    names = []
    for offset in offsets:
        end = texts.index(b"\0", offset)
        budget -= end - offset
        if budget < 0:
            raise ValueError("the names are longer than the file")
        names.append(texts[offset:end].decode("utf-8", "replace"))
    return names
