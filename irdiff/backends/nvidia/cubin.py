"""The executable contract of a cubin: what executes, and all that the loader and the launch read.

Every section counts, with its type, flags, alignment, content and, where it has no content, size, but for

- `.debug_*`, `.nv_debug_*` and their relocations: read by debuggers only;
- `.note.nv.*`: name, version and command line of the tool;
- `.nv.compat` and `.nv.merc.*`: what other architectures the kernel may be made to run on, and the tables
  (debug information among them) next to the capsule from which that is done; the target of a case executes
  `.text`. The capsule itself, `.nv.capmerc.*`, counts: neither names nor lines move it;
- the tables of strings and symbols: symbols count by what they stand for.

The one kernel's name becomes `KERNEL`: no instruction reads it. Local symbols (helpers that are not inlined,
strings) count by their place, not by name: nothing outside of the file can ask for them. The number of a
symbol moves with debug information, so symbols are named where relocations, attributes and the call graph
refer to them, and `sh_info` counts without its lower three bytes, which are such a number.

Attributes of `.nv.info` count but for `_NEUTRAL`, and for `_ABSENT` where they say what their absence says.
Each is a format byte, a number byte, and two bytes that are the value or, for format 4, the length of what
follows (numbers and layout read from cuobjdump's `-elf` listing of the same files). Barriers stand in an
attribute, or (ABI 7) in bits 20 to 26 of the code's flags: they count in one form.

Of the header's flags the SM counts. The top byte differs between files with and without `.debug_str`, in all
cubins of ABI 8 that the gate tier gives with 3.8.0 and 3.9.0; the rest is the version of the format.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping

from irdiff.backends import elf
from irdiff.backends.elf import EXECUTED, KERNEL, LOCAL, NOBITS, STRTAB, SYMTAB, Elf, Section, Symbol
from irdiff.backends.kernel_entry import EntryError, EntryParameter, KernelEntry
from irdiff.errors import NormalizeError

_MAX_THREADS = 0x05
_PARAM_CBANK = 0x0A
_EXTERNS = 0x0F
_REQNTID = 0x10
_FRAME_SIZE = 0x11
_MIN_STACK_SIZE = 0x12
_PARAM_INFO = 0x17
_MAX_STACK_SIZE = 0x23
_REGCOUNT = 0x2F
_CUDA_API_VERSION = 0x37
_NUM_BARRIERS = 0x4C
_MERCURY_ISA_VERSION = 0x5F
_SIZED = 4
_OF_ONE_SYMBOL = frozenset({_PARAM_CBANK, _FRAME_SIZE, _MIN_STACK_SIZE, _MAX_STACK_SIZE, _REGCOUNT})
"""Attributes whose value begins with the number of a symbol."""
_NEUTRAL = frozenset(
    {
        _CUDA_API_VERSION,  # the version of the toolkit that made the file
        _MERCURY_ISA_VERSION,  # of the capsule for other architectures
        _NUM_BARRIERS,  # counted with the code, in a form that both versions of the format have
    }
)
_ABSENT: Mapping[int, bytes] = {0x66: b"\3\0\0\0", 0x6B: b"\1\0", 0x6D: b"\0\0"}
"""Newer releases of ptxas write these into every cubin, whatever the kernel, with this one value, and older
ones not at all for the same code: seen in all cubins of the gate tier, 3.7.0 to 3.9.0."""

_NOT_READ = (
    *(".debug_", ".nv_debug_", ".rel.debug_", ".rela.debug_", ".rel.nv_debug_", ".rela.nv_debug_"),
    *(".note.nv.", ".nv.compat", ".nv.merc."),
)
_BARRIER_BITS = 0x7F00000
_SYMBOL_BITS = 0xFFFFFF
_RESERVED_SHARED = ".nv.shared.reserved"
_RESERVED_SHARED_BYTES = 1024
_ENTRY = 0x10
"""A bit of `st_other`: the symbol is a kernel."""


def read(binary: bytes) -> tuple[dict[str, bytes], dict[str, int | float | str]]:
    """The contract by name, and facts of the one kernel, or of all functions together."""
    file = elf.read(binary, "cubin")
    names = _AnonymousNames(file)
    sections = [section for section in file.sections[1:] if _is_read(section)]
    if not any(section.name.startswith(".text.") for section in sections):
        raise NormalizeError("cubin: no code section")
    contract = elf.by_name((names.anonymous(s.name), _content(s, names)) for s in sections)
    barriers = _barriers(file)
    headers = [f"sm {architecture(file)}"]
    headers += [_header(names.anonymous(s.name), s, barriers.get(s.name, 0)) for s in sections]
    contract["headers"] = "\n".join(sorted(headers)).encode()
    contract["symbols"] = "\n".join(sorted(names.rows())).encode()
    return contract, _facts(file, barriers)


def attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of each attribute of a section `.nv.info` or `.nv.info.NAME`."""
    position = 0
    while position + 4 <= len(content):
        layout, number, value = struct.unpack_from("<BBH", content, position)
        position += 4
        if layout == _SIZED:
            yield number, content[position : position + value]
            position += value
        else:
            yield number, struct.pack("<H", value)


# the entry


def entry(binary: bytes, name: str) -> KernelEntry:
    """Parameters are listed in `.nv.info.NAME`, one EIATTR_KPARAM_INFO each: index (4 bytes), ordinal (2),
    offset (2), and a word whose upper 14 bits are the size in bytes (layout as `cuobjdump -elf` prints it).
    """
    file = elf.read(binary, name)
    content = next((s.content for s in file.sections if s.name == f".nv.info.{name}"), None)
    if content is None:
        raise EntryError(f"the cubin has no kernel {name!r}")
    by_ordinal: dict[int, EntryParameter] = {}
    threads = bank_bytes = None
    for number, value in attributes(content):
        if number == _PARAM_INFO and len(value) == 12:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            by_ordinal[ordinal] = EntryParameter(offset_bytes=offset, size_bytes=word >> 18)
        elif number == _REQNTID and len(value) == 12:
            threads = math.prod(struct.unpack("<III", value))
        elif number == _PARAM_CBANK and len(value) == 8:
            bank_bytes = struct.unpack("<IHH", value)[2]
    parameters = tuple(by_ordinal[key] for key in sorted(by_ordinal))
    kernel = KernelEntry(name=name, parameters=parameters, required_threads=threads)
    if bank_bytes is not None and bank_bytes != kernel.size_bytes:
        listed = f"the listed parameters {kernel.size_bytes}"
        raise EntryError(f"{name}: the parameter bank has {bank_bytes} bytes, {listed}")
    return kernel


# the contract


def _is_read(section: Section) -> bool:
    if section.flags & EXECUTED:
        return True
    return section.type not in (SYMTAB, STRTAB) and not section.name.startswith(_NOT_READ)


def architecture(file: Elf) -> int:
    """The SM; of a version of the format that is not known all flags."""
    return {7: file.flags & 0xFF, 8: file.flags >> 8 & 0xFF}.get(file.abi_version, file.flags)


def _header(name: str, section: Section, barriers: int) -> str:
    flags = section.flags & ~_BARRIER_BITS if section.name.startswith(".text.") else section.flags
    size = section.size if section.type == NOBITS else 0
    info = section.info & ~_SYMBOL_BITS
    return f"{name} {section.type:x} {flags:x} {section.alignment} {size} {info:x} {barriers}"


def _barriers(file: Elf) -> dict[str, int]:
    """By the name of each section of code."""
    codes = [section for section in file.sections if section.name.startswith(".text.")]
    barriers = {section.name: (section.flags & _BARRIER_BITS) >> 20 for section in codes}
    for section in file.sections:
        code = section.name.replace(".nv.info.", ".text.", 1)
        if code in barriers and code != section.name:
            said = [value[0] for number, value in attributes(section.content) if number == _NUM_BARRIERS]
            barriers[code] = max(barriers[code], *said, 0)
    return barriers


def _content(section: Section, names: _AnonymousNames) -> bytes:
    if section.name.startswith(".nv.info"):
        counting = (attribute for attribute in attributes(section.content) if _counts(*attribute))
        return "\n".join(_attribute(*attribute, names) for attribute in counting).encode()
    if section.type in elf.RELOCATIONS:
        places = elf.rows(elf.RELOCATIONS[section.type], section.content)
        return "\n".join(f"{at} {names.symbol(n)} {kind} {add}" for at, kind, n, *add in places).encode()
    if section.name == ".nv.callgraph":
        calls = elf.rows("<ii", section.content)
        # below zero, kinds of calls that are of no symbol
        named = (" ".join(str(n) if n < 0 else names.symbol(n) for n in call) for call in calls)
        return "\n".join(named).encode()
    return section.content


def _counts(number: int, value: bytes) -> bool:
    return number not in _NEUTRAL and _ABSENT.get(number) != value


def _attribute(number: int, value: bytes, names: _AnonymousNames) -> str:
    numbered = 4 if number in _OF_ONE_SYMBOL else len(value) if number == _EXTERNS else 0
    symbols = " ".join(names.symbol(n) for (n,) in elf.rows("<I", value[:numbered]))
    return f"{number:#x} {symbols} {value[numbered:].hex()}"


class _AnonymousNames:
    """Symbols by what they stand for, without the one kernel's name."""

    def __init__(self, file: Elf) -> None:
        self._sections = file.sections
        self._symbols = elf.symbols(file)
        kernels = {symbol.name for symbol in self._symbols if symbol.other & _ENTRY}
        self._kernel = kernels.pop() if len(kernels) == 1 else None

    def anonymous(self, name: str) -> str:
        """`.text.vector_add` → `.text.KERNEL`."""
        if self._kernel is None or not (name == self._kernel or name.endswith(f".{self._kernel}")):
            return name
        return name[: len(name) - len(self._kernel)] + KERNEL

    def symbol(self, number: int) -> str:
        """Raises IndexError where there is no such symbol."""
        return self._name(self._symbols[number])

    def rows(self) -> Iterator[str]:
        for symbol in self._symbols:
            section = self._section(symbol)
            if symbol.name and symbol.type != elf.SECTION_SYMBOL and (section is None or _is_read(section)):
                place = self.anonymous(section.name) if section else f"{symbol.index:#x}"
                where = f"{place} {symbol.value} {symbol.size}"
                yield f"{self._name(symbol)} {symbol.info:#x} {symbol.other:#x} {where}"

    def _name(self, symbol: Symbol) -> str:
        section = self._section(symbol)
        if section is None or not symbol.is_local:
            return self.anonymous(symbol.name)
        place = self.anonymous(section.name)
        return place if symbol.type == elf.SECTION_SYMBOL else f"{LOCAL} {place} {symbol.value}"

    def _section(self, symbol: Symbol) -> Section | None:
        return self._sections[symbol.index] if 0 < symbol.index < len(self._sections) else None


# facts


def _facts(file: Elf, barriers: Mapping[str, int]) -> dict[str, int | float | str]:
    facts: dict[str, int | float | str] = {
        "code_bytes": sum(s.size for s in file.sections if s.name.startswith(".text.")),
        "static_shared_bytes": _static_shared_bytes(file),
        "barriers": max(barriers.values()),
    }
    for section in file.sections:
        if section.name == ".nv.info":
            for number, value in attributes(section.content):
                name = {_REGCOUNT: "registers", _MIN_STACK_SIZE: "stack_bytes"}.get(number)
                if name and len(value) == 8:
                    facts[name] = max(int(facts.get(name, 0)), struct.unpack("<II", value)[1])
        elif section.name.startswith(".nv.info."):
            for number, value in attributes(section.content):
                if number == _MAX_THREADS and len(value) == 12:
                    facts["max_threads"] = math.prod(struct.unpack("<III", value))
                elif number == _REQNTID and len(value) == 12:
                    facts["reqntid"] = ",".join(map(str, struct.unpack("<III", value)))
    return facts


def _static_shared_bytes(file: Elf) -> int:
    """As the driver has it, without what is reserved for the system.

    From sm_90 on a section `.nv.shared.reserved.0` names the reserved part, and what a kernel declares begins
    behind it in the kernel's own section (seen in cubins of both ptxas of 3.9.0 for sm_80 to sm_120, and
    equal to CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES on an H200).
    """
    shared = [section for section in file.sections if section.name.startswith(".nv.shared.")]
    own = [section.size for section in shared if not section.name.startswith(_RESERVED_SHARED)]
    reserved = _RESERVED_SHARED_BYTES if len(own) < len(shared) else 0
    return sum(max(0, size - reserved) for size in own)
