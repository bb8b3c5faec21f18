"""What executes in an AMD code object, and its resources.

Executing: `.text`, `.data`, and `.rodata`, which holds kernel descriptors (LLVM's "User Guide for AMDGPU
Backend", Code Object V3 Kernel Descriptor) and constants. In each 64-byte descriptor, found by its symbol
`NAME.kd`, bytes 16 to 23 are masked: KERNEL_CODE_ENTRY_BYTE_OFFSET is the distance to the code, which
moves with the length of the symbol names. Facts come from the msgpack note (NT_AMDGPU_METADATA).
"""

from __future__ import annotations

import struct

from irdiff.errors import NormalizeError
from irdiff.normalize.elf import NOBITS, Section, read_sections

_EXECUTING = (".text", ".rodata", ".data")
_DESCRIPTOR_BYTES = 64
_SYMTAB = 2
_NOTE_METADATA = 32
_MAX_DEPTH = 32
_FACTS = {
    ".vgpr_count": "vgprs",
    ".agpr_count": "agprs",
    ".sgpr_count": "sgprs",
    ".vgpr_spill_count": "vgpr_spills",
    ".sgpr_spill_count": "sgpr_spills",
    ".group_segment_fixed_size": "lds_bytes",
    ".private_segment_fixed_size": "scratch_bytes",
    ".kernarg_segment_size": "kernarg_bytes",
    ".max_flat_workgroup_size": "max_flat_workgroup_size",
    ".wavefront_size": "wavefront_size",
}


def read(binary: bytes) -> tuple[dict[str, bytes], dict[str, int | float | str]]:
    """Executing sections and the facts of the first kernel."""
    sections = read_sections(binary, "hsaco")
    code = {
        section.name: section.content
        for section in sections
        if section.type != NOBITS and section.name.startswith(_EXECUTING)
    }
    code[".bss"] = sum(s.size for s in sections if s.name == ".bss").to_bytes(8, "little")
    if not code.get(".text"):
        raise NormalizeError("hsaco: no code section")
    if ".rodata" in code:
        code[".rodata"] = _mask_descriptors(code[".rodata"], sections, binary)
    facts = _facts(sections)
    facts["code_bytes"] = len(code[".text"])
    return code, facts


def _mask_descriptors(content: bytes, sections: list[Section], binary: bytes) -> bytes:
    masked = bytearray(content)
    for offset in _descriptor_offsets(sections, binary):
        if offset + _DESCRIPTOR_BYTES <= len(masked):
            masked[offset + 16 : offset + 24] = bytes(8)
    return bytes(masked)


def _descriptor_offsets(sections: list[Section], binary: bytes) -> list[int]:
    (table,) = struct.unpack_from("<Q", binary, 0x28)
    (entry_size,) = struct.unpack_from("<H", binary, 0x3A)
    offsets: list[int] = []
    for symbols in (s for s in sections if s.type == _SYMTAB or s.name == ".dynsym"):
        names = sections[symbols.link].content if symbols.link < len(sections) else b""
        for position in range(0, len(symbols.content) - 23, 24):
            name, _, _, index, value, size = struct.unpack_from("<IBBHQQ", symbols.content, position)
            end = names.find(b"\0", name)
            if size != _DESCRIPTOR_BYTES or not names[name:end].endswith(b".kd"):
                continue
            if index < len(sections) and sections[index].name == ".rodata":
                (address,) = struct.unpack_from("<Q", binary, table + index * entry_size + 16)
                offsets.append(value - address)
    return [offset for offset in set(offsets) if offset >= 0]


def _facts(sections: list[Section]) -> dict[str, int | float | str]:
    facts: dict[str, int | float | str] = {}
    for section in sections:
        if section.name != ".note" or len(section.content) < 12:
            continue
        name_size, size, kind = struct.unpack_from("<III", section.content)
        start = 12 + (name_size + 3) // 4 * 4
        if kind != _NOTE_METADATA:
            continue
        metadata = _Msgpack(section.content[start : start + size]).read()
        kernels = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
        if isinstance(kernels, list) and kernels and isinstance(kernels[0], dict):
            for key, fact in _FACTS.items():
                value = kernels[0].get(key)
                if isinstance(value, int):
                    facts[fact] = value
    return facts


class _Msgpack:
    """The part of MessagePack that the note uses (msgpack specification, "Formats")."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def read(self) -> object:
        try:
            return self._value(0)
        except (IndexError, struct.error, UnicodeDecodeError, TypeError) as error:
            raise NormalizeError(f"hsaco: damaged metadata note ({error})") from error

    def _take(self, count: int) -> bytes:
        if self._position + count > len(self._content):
            raise IndexError("cut off")
        self._position += count
        return self._content[self._position - count : self._position]

    def _number(self, size: int, *, signed: bool = False) -> int:
        return int.from_bytes(self._take(size), "big", signed=signed)

    def _value(self, depth: int) -> object:
        if depth > _MAX_DEPTH:
            raise IndexError("nested too deeply")
        code = self._number(1)
        if code < 0x80 or code >= 0xE0:
            return code if code < 0x80 else code - 256
        return self._short(code, depth) if code < 0xC0 else self._long(code, depth)

    def _long(self, code: int, depth: int) -> object:
        if code in (0xC0, 0xC2, 0xC3):
            return {0xC0: None, 0xC2: False, 0xC3: True}[code]
        if 0xCC <= code <= 0xCF:
            return self._number(1 << (code - 0xCC))
        if 0xD0 <= code <= 0xD3:
            return self._number(1 << (code - 0xD0), signed=True)
        if 0xD9 <= code <= 0xDB:
            return self._take(self._number(1 << (code - 0xD9))).decode()
        if code in (0xDC, 0xDD):
            return self._array(self._number(2 << (code - 0xDC)), depth)
        if code in (0xDE, 0xDF):
            return self._map(self._number(2 << (code - 0xDE)), depth)
        raise IndexError(f"format {code:#x}")

    def _short(self, code: int, depth: int) -> object:
        if code < 0x90:
            return self._map(code & 15, depth)
        if code < 0xA0:
            return self._array(code & 15, depth)
        return self._take(code & 31).decode()

    def _array(self, count: int, depth: int) -> list[object]:
        return [self._value(depth + 1) for _ in range(count)]

    def _map(self, count: int, depth: int) -> dict[object, object]:
        return {self._value(depth + 1): self._value(depth + 1) for _ in range(count)}
