"""What the entry of a kernel takes: its parameter list, read from the binary itself.

A cubin lists its parameters in `.nv.info.NAME`, one EIATTR_KPARAM_INFO each: index (4 bytes), ordinal
(2), offset (2), and a word whose upper 14 bits are the size in bytes (layout as `cuobjdump -elf` prints
the same files). A code object lists them in its NT_AMDGPU_METADATA note under `.args` (LLVM, "User Guide for
AMDGPU Backend", Code Object V3 Metadata); those named `hidden_*` are filled by the runtime.
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass

from irdiff.binaries import cubin, elf, hsaco
from irdiff.binaries.elf import Elf
from irdiff.errors import IrdiffError, NormalizeError

_EIATTR_REQNTID = 0x10
_EIATTR_KPARAM_INFO = 0x17
_EIATTR_PARAM_CBANK = 0x0A


class EntryError(IrdiffError):
    """A binary is damaged, or does not hold the kernel that it should."""


@dataclass(frozen=True, kw_only=True)
class EntryParameter:
    offset_bytes: int
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class KernelEntry:
    """The entry point of one kernel."""

    name: str
    parameters: tuple[EntryParameter, ...]
    """In order of their offsets."""
    required_threads: int | None
    """Threads of a block, where the binary demands a number."""

    @property
    def size_bytes(self) -> int:
        return max((p.offset_bytes + p.size_bytes for p in self.parameters), default=0)


def read_entry(binary: bytes, name: str, backend: str) -> KernelEntry:
    """The entry `name` of a cubin (`cuda`) or code object (`hip`). Raises EntryError."""
    try:
        file = elf.read(binary, name)
        return _cubin_entry(file, name) if backend == "cuda" else _hsaco_entry(file, name)
    except NormalizeError as error:
        raise EntryError(error.what) from error
    except (struct.error, IndexError, ValueError, KeyError, TypeError) as error:
        raise EntryError(f"the binary of {name} is damaged: {error}") from error


def _cubin_entry(file: Elf, name: str) -> KernelEntry:
    content = next((s.content for s in file.sections if s.name == f".nv.info.{name}"), None)
    if content is None:
        raise EntryError(f"the cubin has no kernel {name!r}")
    found: dict[int, EntryParameter] = {}
    threads = bank_bytes = None
    for number, value in cubin.attributes(content):
        if number == _EIATTR_KPARAM_INFO and len(value) == 12:
            _, ordinal, offset, word = struct.unpack("<IHHI", value)
            found[ordinal] = EntryParameter(offset_bytes=offset, size_bytes=word >> 18)
        elif number == _EIATTR_REQNTID and len(value) == 12:
            threads = math.prod(struct.unpack("<III", value))
        elif number == _EIATTR_PARAM_CBANK and len(value) == 8:
            bank_bytes = struct.unpack("<IHH", value)[2]
    parameters = tuple(found[key] for key in sorted(found))
    entry = KernelEntry(name=name, parameters=parameters, required_threads=threads)
    if bank_bytes is not None and bank_bytes != entry.size_bytes:
        listed = f"the listed parameters {entry.size_bytes}"
        raise EntryError(f"{name}: the parameter bank has {bank_bytes} bytes, {listed}")
    return entry


def _hsaco_entry(file: Elf, name: str) -> KernelEntry:
    row = next((row for row in hsaco.kernels(file) if row.get(".name") == name), None)
    if row is None:
        raise EntryError(f"the code object has no kernel {name!r}")
    parameters = [
        EntryParameter(offset_bytes=int(arg[".offset"]), size_bytes=int(arg[".size"]))
        for arg in row.get(".args", ())
        if not str(arg.get(".value_kind", "")).startswith("hidden_")
    ]
    # Triton states the work-group size as the limit, so the limit is taken as exact.
    threads = int(row.get(".max_flat_workgroup_size") or 0) or None
    ordered = tuple(sorted(parameters, key=lambda p: p.offset_bytes))
    return KernelEntry(name=name, parameters=ordered, required_threads=threads)
