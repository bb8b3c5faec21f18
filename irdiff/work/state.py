"""Registers and memory of all threads of some programs, with what is not known.

A value is an array that broadcasts to (warps, 32); a uniform one has one column. Beside it stands a mask of
the lanes that are known: None where all are. A value that is None is known nowhere. Arrays are never changed
in place, so that a copy of the dictionaries is a snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from irdiff.work.sass import ZERO, Operand

Array = Any
Value = tuple[Array | None, Array | None]
"""Bits and the lanes that are known."""
UNKNOWN: Value = (None, None)
_ZERO32 = np.zeros((1, 1), dtype=np.uint32)
_TRUE = np.ones((1, 1), dtype=bool)
_FALSE = np.zeros((1, 1), dtype=bool)


def spread(array: Array, shape: tuple[int, int]) -> Array:
    """`np.broadcast_to`, which takes ten times as long where nothing is to do."""
    return array if array.shape == shape else np.broadcast_to(array, shape)


def both(*masks: Array | None) -> Array | None:
    """Lanes that are known in all."""
    found = None
    for mask in masks:
        if mask is not None:
            found = mask if found is None else found & mask
    return found


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    values: Mapping[str, dict[int, Value]]
    local: dict[int, Value]


@dataclass
class WarpState:
    """Of `programs` programs with `warps` warps each."""

    programs: int
    warps: int
    constants: Mapping[int, Array]
    """Bank → bytes as known at launch: int16, -1 where unknown; (bytes,) for all programs alike."""
    special: Mapping[str, Array]
    """Value of each special register, broadcastable to (programs × warps, 32)."""
    lanes: int = 32
    """Of a warp."""
    registers: dict[str, dict[int, Value]] = field(
        default_factory=lambda: {"R": {}, "UR": {}, "P": {}, "UP": {}}
    )
    local: dict[int, Value] = field(default_factory=dict)
    """Local memory by byte offset of each word: spills have one address for all threads."""
    _immediates: dict[Operand, Value] = field(default_factory=dict)
    """By the operand itself, which has one form for one text."""

    @property
    def slots(self) -> int:
        return self.programs * self.warps

    def snapshot(self) -> StateSnapshot:
        return StateSnapshot({kind: dict(rows) for kind, rows in self.registers.items()}, dict(self.local))

    def restore(self, kept: StateSnapshot) -> None:
        self.registers = {kind: dict(rows) for kind, rows in kept.values.items()}
        self.local = dict(kept.local)

    # reading

    def word(self, kind: str, number: int) -> Value:
        if number == ZERO:
            return _ZERO32, None
        return self.registers[kind].get(number, UNKNOWN)

    def pair(self, kind: str, number: int) -> Value:
        """Two registers as uint64."""
        if number == ZERO:
            return _ZERO32.astype(np.uint64), None
        low, known_low = self.word(kind, number)
        high, known_high = self.word(kind, number + 1)
        if low is None or high is None:
            return UNKNOWN
        return low.astype(np.uint64) | (high.astype(np.uint64) << np.uint64(32)), both(known_low, known_high)

    def flag(self, operand: Operand) -> Value:
        """A predicate, negated as written."""
        if operand.number == ZERO:
            return (_FALSE if operand.negated else _TRUE), None
        value, known = self.registers[operand.kind].get(operand.number, UNKNOWN)
        if value is None:
            return UNKNOWN
        return (~value if operand.negated else value), known

    def fetch(self, operand: Operand) -> Value:
        """32 bits as uint32."""
        kind = operand.kind
        if kind in ("R", "UR"):
            value, known = self.word(kind, operand.number)
            if operand.suffix:
                return (
                    UNKNOWN if operand.suffix.startswith(("H", "B")) else self._signed(operand, value, known)
                )
        elif kind in ("imm", "const", "float"):
            value_of = self._immediates.get(operand)
            if value_of is None:
                value_of = self._immediates[operand] = self._signed(operand, *self._literal(operand))
            return value_of
        else:
            return UNKNOWN
        return self._signed(operand, value, known)

    def bare(self, register: Operand) -> Value:
        """A register's 32 bits, without the minus or `~` that is written before it."""
        if register.suffix or register.absolute:
            return self.fetch(replace(register, negated=False, inverted=False))
        return self.word(register.kind, register.number)

    def fetch64(self, operand: Operand) -> Value:
        if operand.kind in ("R", "UR"):
            value, known = self.pair(operand.kind, operand.number)
        elif operand.kind == "const":
            low, high = (
                self.constant(operand.bank, operand.number, 4),
                self.constant(operand.bank, operand.number + 4, 4),
            )
            if low is None or high is None:
                return UNKNOWN
            value, known = np.array([[low | high << 32]], dtype=np.uint64), None
        elif operand.kind == "imm":
            value, known = np.array([[operand.number]], dtype=np.uint64), None
        else:
            return UNKNOWN
        if value is not None and operand.negated:
            value = ~value + np.uint64(1)
        if value is not None and operand.inverted:
            value = ~value
        return value, known

    def _literal(self, operand: Operand) -> Value:
        if operand.kind == "imm":
            return np.array([[operand.number & 0xFFFFFFFF]], dtype=np.uint32), None
        if operand.kind == "const" and not operand.registers:
            number = self.constant(operand.bank, operand.number, 4)
            if number is not None:
                return np.array([[number]], dtype=np.uint32), None
        return UNKNOWN

    def _signed(self, operand: Operand, value: Array | None, known: Array | None) -> Value:
        if value is None:
            return UNKNOWN
        if operand.absolute:
            value = np.abs(value.view(np.int32)).view(np.uint32)
        if operand.negated:
            value = ~value + np.uint32(1)
        if operand.inverted:
            value = ~value
        return value, known

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
        if number == ZERO:
            return
        rows = self.registers[kind]
        rows[number] = merged(rows.get(number, UNKNOWN), (value, known), mask)

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
    new_known = _TRUE if known is None else known
    old_known = _TRUE if known_before is None else known_before
    return np.where(mask, value, before), np.where(mask, new_known, old_known)
