"""Registers and memory of all threads of some programs, with what is not known.

A value is an array that broadcasts to (warps, 32); a uniform one has one column. Beside it stands a mask of
the lanes that are known: None where all are. A value that is None is known nowhere. Arrays are never changed
in place, so that a copy of the dictionaries is a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = Any
Value = tuple[Array | None, Array | None]
"""Bits and the lanes that are known."""
UNKNOWN: Value = (None, None)
TRUE, FALSE = np.ones((1, 1), dtype=bool), np.zeros((1, 1), dtype=bool)


def spread(array: Array, shape: tuple[int, int]) -> Array:
    """`np.broadcast_to`, which takes ten times as long where nothing is to do."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def both(*masks: Array | None) -> Array | None:
    """Lanes that are known in all."""
    shared = None
    for mask in masks:
        if mask is not None:
            shared = mask if shared is None else shared & mask
    return shared


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    values: Mapping[str, dict[int, Value]]
    local: dict[int, Value]


@dataclass
class LaneState:
    """Registers and memory of `programs` programs with `warps` warps each."""

    programs: int
    warps: int
    constants: Mapping[int, Array]
    """Bank → bytes as known at launch: int16, -1 where unknown; (bytes,) for all programs alike."""
    lanes: int = 32
    """Lanes of a warp."""
    registers: dict[str, dict[int, Value]] = field(
        default_factory=lambda: {"R": {}, "UR": {}, "P": {}, "UP": {}}
    )
    local: dict[int, Value] = field(default_factory=dict)
    """Local memory by byte offset of each word: spills have one address for all threads."""

    @property
    def slots(self) -> int:
        return self.programs * self.warps

    def snapshot(self) -> StateSnapshot:
        return StateSnapshot(
            {kind: dict(values) for kind, values in self.registers.items()}, dict(self.local)
        )

    def restore(self, kept: StateSnapshot) -> None:
        self.registers = {kind: dict(values) for kind, values in kept.values.items()}
        self.local = dict(kept.local)

    # reading

    def word(self, kind: str, number: int) -> Value:
        return self.registers[kind].get(number, UNKNOWN)

    def pair(self, kind: str, number: int) -> Value:
        """Two registers as uint64."""
        low, known_low = self.word(kind, number)
        high, known_high = self.word(kind, number + 1)
        if low is None or high is None:
            return UNKNOWN
        return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32)), both(known_low, known_high)

    def constant(self, bank: int, offset: int, size: int) -> int | None:
        content = self.constants.get(bank)
        if content is None or not 0 <= offset <= len(content) - size:
            return None
        part = content[offset : offset + size]
        return None if (part < 0).any() else int.from_bytes(bytes(part.astype(np.uint8)), "little")

    # writing

    def write(
        self, kind: str, number: int, value: Array | None, known: Array | None, mask: Array | None
    ) -> None:
        """Into the lanes of `mask`; None stands for all."""
        registers = self.registers[kind]
        registers[number] = merged(registers.get(number, UNKNOWN), (value, known), mask)

    def forget(self, kind: str, number: int, mask: Array | None) -> None:
        self.write(kind, number, None, None, mask)


def merged(old: Value, new: Value, mask: Array | None) -> Value:
    """`new` in the lanes of `mask`, `old` in the others."""
    if mask is None:
        return new
    (value, known), (before, known_before) = new, old
    if value is None:
        if before is None:
            return UNKNOWN
        kept = ~mask if known_before is None else known_before & ~mask
        return (before, kept) if kept.any() else UNKNOWN
    if before is None:
        return value, mask if known is None else mask & known
    if known is None and known_before is None:
        return np.where(mask, value, before), None
    new_known = TRUE if known is None else known
    old_known = TRUE if known_before is None else known_before
    return np.where(mask, value, before), np.where(mask, new_known, old_known)
