"""The executable contract of a binary: what executes, and what the loader and the launch read of it. Pure."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from irdiff.binaries import cubin, elf, hsaco
from irdiff.errors import NormalizeError
from irdiff.stages import Stage

Reader = Callable[[bytes], tuple[Mapping[str, bytes], Mapping[str, int | float | str]]]
"""Sections that count, and facts, of a binary."""


@dataclass(frozen=True, kw_only=True)
class MachineCode:
    """The executable contract of one binary: what executes, and what the loader and the launch read."""

    digest: str
    """SHA-256 over name and content of each part."""
    sections: Mapping[str, bytes]
    facts: Mapping[str, int | float | str]


def machine_code(stage: str, binary: bytes) -> MachineCode:
    """The executable contract of a `cubin` or `hsaco` (see there), its digest, and resource facts.

    Raises NormalizeError for a binary that is damaged, or holds no code.
    """
    readers: Mapping[str, Reader] = {
        Stage.CUBIN: cubin.read,
        Stage.HSACO: hsaco.read,
    }
    if stage not in readers:
        raise NormalizeError(f"no machine code is read from the stage {stage}")
    with _damage_of(stage):
        sections, facts = readers[stage](binary)
    digest = sha256()
    for name in sorted(sections):
        digest.update(f"{name}\0{len(sections[name])}\0".encode())
        digest.update(sections[name])
    return MachineCode(digest=digest.hexdigest(), sections=sections, facts=facts)


def symbols(stage: str, binary: bytes) -> frozenset[str]:
    """Names that a loader can ask a `cubin` or `hsaco` for. Raises NormalizeError for a damaged binary."""
    with _damage_of(stage):
        return frozenset(symbol.name for symbol in elf.symbols(elf.read(binary, stage)))


@contextmanager
def _damage_of(stage: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise NormalizeError(f"{stage}: damaged binary ({error})") from error
