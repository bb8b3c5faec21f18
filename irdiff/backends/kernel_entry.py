"""The entry point of a kernel, as its binary describes it."""

from __future__ import annotations

from dataclasses import dataclass

from irdiff.errors import IrdiffError


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
