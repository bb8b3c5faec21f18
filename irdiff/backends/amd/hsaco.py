"""The executable contract of an AMD code object: what executes, and all that the loader and the launch read.

Every section counts, with its type, flags, alignment, size and content, but for

- `.debug_*`, `.comment`, `.AMDGPU.*`: debug information, producer strings, comments of the assembler;
- `.dynamic`, `.hash`, `.gnu.hash` and the tables of strings and symbols: where to find a symbol by its name.
  Functions and objects count by their place within their section; absolute symbols (`amdgpu.max_num_vgpr`, …)
  are what the assembler made the descriptors of;
- `.relro_padding`: fills up the page, nothing is in it.

The one kernel's name becomes `KERNEL`: no instruction reads it. Local symbols (helpers that are not inlined,
strings) count by their place, not by name: nothing outside of the file can ask for them. Two parts
are rewritten (LLVM's "User Guide for AMDGPU Backend", Code Object V3 Kernel Descriptor and Metadata).
In each kernel descriptor, found by its symbol `NAME.kd`, KERNEL_CODE_ENTRY_BYTE_OFFSET becomes the place in
`.text` that it leads to: the distance moves with the length of names. The NT_AMDGPU_METADATA note counts by
its entries, without the names of the kernel and of arguments, and of `amdhsa.target` with the processor and
its features: the triple is spelled in two ways.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgpack

from irdiff.backends import elf
from irdiff.backends.elf import DYNSYM, EXECUTED, KERNEL, LOCAL, STRTAB, SYMTAB, Elf, Section, Symbol
from irdiff.backends.kernel_entry import EntryError, EntryParameter, KernelEntry
from irdiff.errors import NormalizeError

_NOT_READ = frozenset({".comment", ".dynamic", ".hash", ".gnu.hash", ".relro_padding"})
_NOT_READ_PREFIXES = (".debug_", ".AMDGPU.")
_DESCRIPTOR = ".kd"
_DESCRIPTOR_BYTES = 64
_ENTRY_OFFSET = 16
"""Where KERNEL_CODE_ENTRY_BYTE_OFFSET begins in a descriptor."""
_NOTE_METADATA = 32
FACTS = {
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
"""Entry of the metadata → fact."""


def read(binary: bytes) -> tuple[dict[str, bytes], dict[str, int | float | str]]:
    """The contract by name, and the facts of the first kernel."""
    file = elf.read(binary, "hsaco")
    code = next((s for s in file.sections if s.name == ".text" and s.content), None)
    if code is None:
        raise NormalizeError("hsaco: no code section")
    symbols = elf.symbols(file)
    sections = [section for section in file.sections[1:] if _is_read(section)]
    contract = elf.by_name((s.name, _with_places(s, code, symbols)) for s in sections)
    headers = [f"machine {file.flags:#x} abi {file.abi_version}", *map(_header, sections)]
    contract["headers"] = "\n".join(sorted(headers)).encode()
    contract["symbols"] = "\n".join(sorted(_places(file, symbols))).encode()
    contract["notes"] = "\n".join(_canonical_note(*note) for note in _notes(file)).encode()
    facts: dict[str, int | float | str] = {"code_bytes": code.size}
    for kernel in kernels(file)[:1]:
        facts |= {fact: kernel[key] for key, fact in FACTS.items() if isinstance(kernel.get(key), int)}
    return contract, facts


def kernels(file: Elf) -> list[dict[str, Any]]:
    """The metadata of each kernel. Raises ValueError if it is damaged."""
    metadata_notes = [msgpack.unpackb(content) for _, kind, content in _notes(file) if kind == _NOTE_METADATA]
    return [kernel for metadata in metadata_notes for kernel in _kernels(metadata)]


def entry(binary: bytes, name: str) -> KernelEntry:
    """Parameters are listed in the note NT_AMDGPU_METADATA under `.args`; the runtime fills `hidden_*` (LLVM,
    "User Guide for AMDGPU Backend", Code Object V3 Metadata).
    """
    file = elf.read(binary, name)
    kernel = next((kernel for kernel in kernels(file) if kernel.get(".name") == name), None)
    if kernel is None:
        raise EntryError(f"the code object has no kernel {name!r}")
    parameters = [
        EntryParameter(offset_bytes=int(arg[".offset"]), size_bytes=int(arg[".size"]))
        for arg in kernel.get(".args", ())
        if not str(arg.get(".value_kind", "")).startswith("hidden_")
    ]
    # Triton states the work-group size as the limit, so the limit is taken as exact.
    threads = int(kernel.get(".max_flat_workgroup_size") or 0) or None
    ordered = tuple(sorted(parameters, key=lambda p: p.offset_bytes))
    return KernelEntry(name=name, parameters=ordered, required_threads=threads)


# sections and symbols


def _is_read(section: Section) -> bool:
    if section.flags & EXECUTED:
        return True
    tables = section.type in (SYMTAB, STRTAB, DYNSYM) or section.name == ".note"
    return not (tables or section.name in _NOT_READ or section.name.startswith(_NOT_READ_PREFIXES))


def _header(section: Section) -> str:
    s = section
    return f"{s.name} {s.type:x} {s.flags:x} {s.alignment} {s.size} {s.info}"


def _with_places(section: Section, code: Section, symbols: Sequence[Symbol]) -> bytes:
    """The content, with the place in the code that each descriptor leads to in place of the distance."""
    if section.name != ".rodata":
        return section.content
    content = bytearray(section.content)
    for symbol in symbols:
        start = symbol.value - section.address
        is_descriptor = symbol.name.endswith(_DESCRIPTOR) and symbol.size == _DESCRIPTOR_BYTES
        if is_descriptor and 0 <= start <= len(content) - _DESCRIPTOR_BYTES:
            (distance,) = struct.unpack_from("<q", section.content, start + _ENTRY_OFFSET)
            place = (symbol.value + distance - code.address) % (1 << 64)
            struct.pack_into("<Q", content, start + _ENTRY_OFFSET, place)
    return bytes(content)


def _places(file: Elf, symbols: Sequence[Symbol]) -> Iterator[str]:
    names = {symbol.name.removesuffix(_DESCRIPTOR) for symbol in symbols if symbol.name.endswith(_DESCRIPTOR)}
    anonymous = {f"{name}{end}": f"{KERNEL}{end}" for name in names if len(names) == 1 for end in ("", ".kd")}
    for symbol in symbols:
        if not symbol.name or symbol.index >= len(file.sections):
            continue
        section = file.sections[symbol.index]
        if symbol.index == 0 or _is_read(section):
            place = f"{section.name} {symbol.value - section.address} {symbol.size}"
            name = LOCAL if symbol.is_local else anonymous.get(symbol.name, symbol.name)
            yield f"{name} {symbol.info:#x} {symbol.other:#x} {place}"


# notes


def _notes(file: Elf) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, kind and content of each. Raises `struct.error` where one is cut off."""
    for section in file.sections:
        position = 0
        while section.name == ".note" and position < len(section.content):
            name_size, size, kind = struct.unpack_from("<III", section.content, position)
            name = position + 12
            content = name + (name_size + 3) // 4 * 4
            yield section.content[name : name + name_size], kind, section.content[content : content + size]
            position = content + (size + 3) // 4 * 4


def _canonical_note(owner: bytes, kind: int, content: bytes) -> str:
    if kind != _NOTE_METADATA:
        return f"{owner!r} {kind} {content.hex()}"
    metadata = msgpack.unpackb(content)
    if isinstance(metadata, dict):
        kernels = _kernels(metadata)
        target = str(metadata.get("amdhsa.target", "")).rpartition("-gfx")
        metadata = {
            **metadata,
            "amdhsa.kernels": [_without_names(kernel) if len(kernels) == 1 else kernel for kernel in kernels],
            "amdhsa.target": target[2] if target[1] else target,
        }
    return json.dumps(metadata, sort_keys=True, default=repr)


def _kernels(metadata: object) -> list[dict[str, Any]]:
    kernels = metadata.get("amdhsa.kernels") if isinstance(metadata, dict) else None
    return [kernel for kernel in kernels if isinstance(kernel, dict)] if isinstance(kernels, list) else []


def _without_names(kernel: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in kernel.items() if name not in (".name", ".symbol")}
    arguments = kernel.get(".args")
    if isinstance(arguments, list):
        kept[".args"] = [
            {name: value for name, value in argument.items() if name not in (".name", ".type_name")}
            if isinstance(argument, dict)
            else argument
            for argument in arguments
        ]
    return kept
