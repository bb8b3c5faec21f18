"""The executable contract of a binary: what executes, and what the loader and the launch read of it. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256

from irdiff.backends import BACKENDS, elf
from irdiff.errors import NormalizeError

_READERS = {each.BINARY.artifact: each.read for each in BACKENDS.values() if each.BINARY}


@dataclass(frozen=True, kw_only=True)
class MachineCode:
    """The executable contract of one binary: what executes, and what the loader and the launch read."""

    digest: str
    """SHA-256 over name and content of each part."""
    sections: Mapping[str, bytes]
    facts: Mapping[str, int | float | str]


def machine_code(stage: str, binary: bytes) -> MachineCode:
    """The executable contract of a binary (see the reader of its backend), its digest, and resource facts.

    Raises NormalizeError for a binary that is damaged, or holds no code.
    """
    with _damage_of(stage):
        sections, facts = _READERS[stage](binary)
    digest = sha256()
    for name in sorted(sections):
        digest.update(f"{name}\0{len(sections[name])}\0".encode())
        digest.update(sections[name])
    return MachineCode(digest=digest.hexdigest(), sections=sections, facts=facts)


def symbols(stage: str, binary: bytes) -> frozenset[str]:
    """Names under which a driver finds functions in a binary. Raises NormalizeError for a damaged
    binary.
    """
    with _damage_of(stage):
        symbol_list = elf.symbols(elf.read(binary, stage))
        return frozenset(symbol.name for symbol in symbol_list if symbol.is_found_by_name)


@contextmanager
def _damage_of(stage: str) -> Iterator[None]:
    try:
        yield
    except (struct.error, IndexError, ValueError, TypeError, OverflowError, MemoryError) as error:
        raise NormalizeError(f"{stage}: damaged binary ({error})") from error
