"""What the entry of a kernel takes: its parameter list, read from the binary itself.

A cubin lists its parameters in `.nv.info.NAME`, one EIATTR_KPARAM_INFO each: index (4 bytes), ordinal
(2), offset (2), and a word whose upper 14 bits are the size in bytes (layout as `cuobjdump -elf` prints
the same files). A code object lists them in its NT_AMDGPU_METADATA note under `.args` (LLVM, "User Guide for
AMDGPU Backend", Code Object V3 Metadata); those named `hidden_*` are filled by the runtime.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

from irdiff.errors import IrdiffError
from irdiff.timing.message_pack import unpack

_EIATTR_REQNTID = 0x10
_EIATTR_KPARAM_INFO = 0x17
_EIATTR_PARAM_CBANK = 0x0A
_SIZED_ATTRIBUTE = 4
_NOTE_METADATA = 32
_NOBITS = 8


class EntryError(IrdiffError):
    """A binary is damaged, or does not hold the kernel that it should."""


@dataclass(frozen=True, kw_only=True)
class EntryParameter:
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The entry point of one kernel."""

    name: str
    parameters: tuple[EntryParameter, ...]
    """In order of their offsets."""
    required_threads: int | None
    """Threads of a block, where the binary demands a number."""

    @property
    def size_bytes(self) -> int:
        return max((p.offset_bytes + p.size_bytes for p in self.parameters), default=0)


def read_entry(binary: bytes, name: str, backend: str) -> Entry:
    """The entry `name` of a cubin (`cuda`) or code object (`hip`). Raises EntryError."""
    try:
        sections = _sections(binary)
        return _cubin_entry(sections, name) if backend == "cuda" else _hsaco_entry(sections, name)
    except (struct.error, IndexError, ValueError, KeyError, TypeError) as error:
        raise EntryError(f"the binary of {name} is damaged: {error}") from error


def _cubin_entry(sections: dict[str, bytes], name: str) -> Entry:
    content = sections.get(f".nv.info.{name}")
    if content is None:
        raise EntryError(f"the cubin has no kernel {name!r}")
    found: dict[int, EntryParameter] = {}
    threads: int | None = None
    bank_bytes: int | None = None
    for number, value in _attributes(content):
        if number == _EIATTR_KPARAM_INFO and len(value) == 12:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            found[ordinal] = EntryParameter(offset_bytes=offset, size_bytes=word >> 18)
        elif number == _EIATTR_REQNTID and len(value) == 12:
            x, y, z = struct.unpack("<III", value)
            threads = x * y * z
        elif number == _EIATTR_PARAM_CBANK and len(value) == 8:
            bank_bytes = struct.unpack("<IHH", value)[2]
    entry = Entry(name=name, parameters=tuple(found[key] for key in sorted(found)), required_threads=threads)
    if bank_bytes is not None and bank_bytes != entry.size_bytes:
        raise EntryError(
            f"{name}: the parameter bank has {bank_bytes} bytes, the listed parameters {entry.size_bytes}"
        )
    return entry


def _hsaco_entry(sections: dict[str, bytes], name: str) -> Entry:
    kernels = _note(sections.get(".note", b"")).get("amdhsa.kernels")
    rows = [row for row in kernels if isinstance(row, dict)] if isinstance(kernels, list) else []
    row = next((row for row in rows if row.get(".name") == name), None)
    if row is None:
        raise EntryError(f"the code object has no kernel {name!r}")
    parameters = [
        EntryParameter(offset_bytes=int(arg[".offset"]), size_bytes=int(arg[".size"]))
        for arg in row.get(".args", ())
        if not str(arg.get(".value_kind", "")).startswith("hidden_")
    ]
    # Triton states the work-group size as the limit, so the limit is taken as exact.
    threads = row.get(".max_flat_workgroup_size")
    return Entry(
        name=name,
        parameters=tuple(sorted(parameters, key=lambda p: p.offset_bytes)),
        required_threads=int(threads) if threads else None,
    )


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(content):
        layout, number, value = struct.unpack_from("<BBH", content, position)
        position += 4
        size = value if layout == _SIZED_ATTRIBUTE else 0
        yield number, content[position : position + size]
        position += size


def _note(content: bytes) -> dict[object, object]:
    if len(content) >= 12:
        name_size, size, kind = struct.unpack_from("<III", content)
        start = 12 + (name_size + 3) // 4 * 4
        metadata = unpack(content[start : start + size]) if kind == _NOTE_METADATA else None
        if isinstance(metadata, dict):
            return metadata
    raise EntryError("the code object has no metadata note")


def _sections(binary: bytes) -> dict[str, bytes]:
    """Contents by name (System V ABI, "Object Files"; the first of a name)."""
    if binary[:6] != b"\x7fELF\x02\x01":
        raise ValueError("not a 64-bit little-endian ELF file")
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    entry_size, count, names_index = struct.unpack_from("<HHH", binary, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", binary, table + i * entry_size) for i in range(count)]

    def content(header: tuple[int, ...]) -> bytes:
        return b"" if header[1] == _NOBITS else binary[header[4] : header[4] + header[5]]

    names = content(headers[names_index])
    found: dict[str, bytes] = {}
    for header in headers:
        found.setdefault(names[header[0] : names.index(b"\0", header[0])].decode(), content(header))
    return found
