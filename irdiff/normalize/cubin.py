"""What executes in a cubin, and its resources.

Executing: `.text.*` (instructions with their scheduling bits), `.nv.constant*` (constants and the
parameter bank's layout) and `.nv.global.init` (initialized data). The kernel's name in a section's name
is replaced, and the number of a section does not matter. Not executing: debug sections, notes, symbol
and string tables, `.nv.info*` (resources; those the launch depends on are facts), `.nv.merc*`, relocations.

Attributes of `.nv.info` (numbers and layout read from cuobjdump's `-elf` listing of the same files):
each is a format byte, a number byte, and two bytes that are the value or, for format 4, the length of
what follows.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from irdiff.errors import NormalizeError
from irdiff.normalize.elf import Section, read_sections

_EIATTR_MAX_THREADS = 0x05
_EIATTR_REQNTID = 0x10
_EIATTR_FRAME_SIZE = 0x11
_EIATTR_MIN_STACK_SIZE = 0x12
_EIATTR_REGCOUNT = 0x2F
_EIATTR_NUM_BARRIERS = 0x4C
_SIZED = 4


def read(binary: bytes) -> tuple[dict[str, bytes], dict[str, int | float | str]]:
    """Executing sections and facts of the one kernel, or of all functions together."""
    sections = read_sections(binary, "cubin")
    code = {_anonymous(s.name, sections): s.content for s in sections if _executes(s.name)}
    if not any(name.startswith(".text") for name in code):
        raise NormalizeError("cubin: no code section")
    return code, _facts(sections)


def _executes(name: str) -> bool:
    return name.startswith((".text.", ".nv.constant")) or name == ".nv.global.init"


def _anonymous(name: str, sections: list[Section]) -> str:
    """Section names of the one kernel without its name: `.text.vector_add` → `.text`."""
    kernels = [s.name[len(".nv.info") :] for s in sections if s.name.startswith(".nv.info.")]
    if len(kernels) == 1 and name.endswith(kernels[0]):
        return name[: -len(kernels[0])]
    return name


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(content):
        layout, number, value = struct.unpack_from("<BBH", content, position)
        position += 4
        if layout == _SIZED:
            yield number, content[position : position + value]
            position += value
        else:
            yield number, struct.pack("<H", value)


def _facts(sections: list[Section]) -> dict[str, int | float | str]:
    facts: dict[str, int | float | str] = {
        "code_bytes": sum(s.size for s in sections if s.name.startswith(".text.")),
        "static_shared_bytes": sum(
            s.size
            for s in sections
            if s.name.startswith(".nv.shared.") and not s.name.startswith(".nv.shared.reserved")
        ),
    }
    for section in sections:
        if section.name == ".nv.info":
            for number, value in _attributes(section.content):
                name = {_EIATTR_REGCOUNT: "registers", _EIATTR_MIN_STACK_SIZE: "stack_bytes"}.get(number)
                if name and len(value) == 8:
                    facts[name] = max(int(facts.get(name, 0)), struct.unpack("<II", value)[1])
        elif section.name.startswith(".nv.info."):
            _kernel_facts(section, facts)
    facts.setdefault("barriers", 0)
    return facts


def _kernel_facts(section: Section, facts: dict[str, int | float | str]) -> None:
    for number, value in _attributes(section.content):
        if number == _EIATTR_NUM_BARRIERS:
            facts["barriers"] = value[0]
        elif number == _EIATTR_MAX_THREADS and len(value) == 12:
            facts["max_threads"] = _product(value)
        elif number == _EIATTR_REQNTID and len(value) == 12:
            facts["reqntid"] = ",".join(map(str, struct.unpack("<III", value)))


def _product(value: bytes) -> int:
    x, y, z = struct.unpack("<III", value)
    return int(x) * int(y) * int(z)
