"""Registers of waves: words, and pairs of scalar registers that hold one bit for each lane. Pure.

A pair of scalar registers is kept as words or as a mask of lanes, whatever it was written as last, so that of
a mask each lane may be known or not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.execution.state import FALSE, TRUE, UNKNOWN, Array, LaneState, Value, both, merged
from irdiff.ir.amdgcn.machine_code import MachineOperand

LANES = 64
VECTOR, SCALAR, MASK, FLAG = "R", "UR", "P", "UP"
VCC, EXEC, SCC = 106, 126, 0
_VECTORS, _ACCUMULATORS = 256, 512
"""Numbers of the first of each: those of scalar registers are below."""
U32, U64 = np.uint32, np.uint64
_LANE = np.arange(LANES, dtype=np.uint64)[None, :]
_LOW = U64(0xFFFFFFFF)
_INLINE = range(-16, 65)


@dataclass(frozen=True, slots=True)
class Ternary:
    """Booleans of which some are not known: surely true, and perhaps true."""

    sure: Array
    perhaps: Array

    @staticmethod
    def of(value: Value) -> Ternary:
        bits, known = value
        if bits is None:
            return Ternary(FALSE, TRUE)
        return Ternary(bits, bits) if known is None else Ternary(bits & known, bits | ~known)

    @property
    def value(self) -> Value:
        if self.sure is self.perhaps:
            return self.sure, None
        known = self.sure == self.perhaps
        if known.all():
            return self.sure, None
        return (self.sure, known) if known.any() else UNKNOWN

    def __and__(self, other: Ternary) -> Ternary:
        return self._joined(other, np.logical_and)

    def __or__(self, other: Ternary) -> Ternary:
        return self._joined(other, np.logical_or)

    def _joined(self, other: Ternary, function: Any) -> Ternary:
        sure = function(self.sure, other.sure)
        exact = self.sure is self.perhaps and other.sure is other.perhaps
        return Ternary(sure, sure if exact else function(self.perhaps, other.perhaps))

    def __invert__(self) -> Ternary:
        sure = ~self.perhaps
        return Ternary(sure, sure if self.sure is self.perhaps else ~self.sure)

    def __xor__(self, other: Ternary) -> Ternary:
        return (self & ~other) | (~self & other)

    def any_lane(self) -> Value:
        """True for a wave if at least one of its lanes is true."""
        perhaps = self.perhaps.any(axis=1, keepdims=True)
        sure = perhaps if self.sure is self.perhaps else self.sure.any(axis=1, keepdims=True)
        return Ternary(sure, perhaps).value


_MOST_RELATIONS = 64


class MaskRelations:
    """Which masks that data decide are parts of others: what an `if` and its `else` leave and restore.

    Masks are told apart by identity, so nothing is noted of the value that stands for all that is not known.
    Forgotten relations make a mask less known, never wrong.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Value, Value]] = []
        """A part, and the whole."""
        self._halves: list[tuple[Value, Value, Value]] = []
        """Two parts without a common lane, and the whole."""

    def note_part(self, part: Value, whole: Value) -> None:
        if part is not UNKNOWN and whole is not UNKNOWN:
            self._parts = [*self._parts[-_MOST_RELATIONS:], (part, whole)]

    def without(self, one: Value, other: Value) -> tuple[Value, Value] | None:
        """(part, whole), where one of both is known to be a part of the other."""
        pairs = ((one, other), (other, one))
        return next((pair for pair in pairs for a, b in self._parts if a is pair[0] and b is pair[1]), None)

    def note_halves(self, one: Value, other: Value, whole: Value) -> None:
        if UNKNOWN is not one and UNKNOWN is not other:
            self._halves = [*self._halves[-_MOST_RELATIONS:], (one, other, whole)]

    def whole(self, one: Value, other: Value) -> Value | None:
        """The value of which these two are halves, if that is known."""
        for a, b, whole in self._halves:
            if (a is one and b is other) or (a is other and b is one):
                return whole
        remainder = self.without(one, other)
        return remainder[1] if remainder else None

    def are_apart(self, one: Value, other: Value) -> bool:
        return any((a is one and b is other) or (a is other and b is one) for a, b, _ in self._halves)


class WaveRegisters:
    """Reads and writes operands of a `LaneState`."""

    def __init__(self, state: LaneState) -> None:
        self.state = state
        self.relations = MaskRelations()
        self.selected: dict[int, tuple[int, int]] = {}
        """Sources of which an instruction takes a part: id of the operand → (first bit, bits)."""
        self.waves: Array | None = None
        """(waves, 1): those that execute; None where all do."""
        self.lanes: Array | None = None
        """(waves, 64) of these; None where all do."""

    # masks

    def mask(self, number: int) -> Value:
        """A pair of scalar registers as lanes."""
        kept = self.state.registers[MASK].get(number)
        if kept is not None:
            return kept
        low, high = self.scalar(number), self.scalar(number + 1)
        if low[0] is None or high[0] is None:
            return UNKNOWN
        word = low[0].astype(U64) | high[0].astype(U64) << U64(32)
        return (word >> _LANE & U64(1)) != 0, both(low[1], high[1])

    def mask_of(self, operand: MachineOperand) -> Value:
        if operand.kind == "s" and operand.count == 2:
            return self.mask(operand.number)
        if operand.kind == "imm" and operand.number in (0, -1):
            return (TRUE if operand.number else FALSE), None
        if operand.kind == "imm":
            bits = U64(operand.number & 0xFFFFFFFFFFFFFFFF)
            return (bits >> _LANE & U64(1)) != 0, None
        return UNKNOWN

    def is_mask(self, operand: MachineOperand) -> bool:
        return operand.kind == "s" and operand.count == 2 and operand.number in self.state.registers[MASK]

    def write_mask(self, number: int, value: Value) -> None:
        registers = self.state.registers
        old = self.mask(number) if self.waves is not None else UNKNOWN
        for other in (number - 1, number + 1):
            self._into_words(other)
        for word in (number, number + 1):
            registers[SCALAR].pop(word, None)
        registers[MASK][number] = merged(old, value, self.waves)

    def _into_words(self, number: int) -> None:
        """Keeps a pair that was written as lanes as two words."""
        kept = self.state.registers[MASK].pop(number, None)
        if kept is None:
            return
        bits, known = kept
        if bits is None:
            return
        wide = np.broadcast_to(bits, (bits.shape[0], LANES)).astype(U64)
        word = (wide << _LANE).sum(axis=1, keepdims=True, dtype=np.uint64)
        there = None
        if known is not None:
            there = np.broadcast_to(known, (len(known), LANES)).all(axis=1, keepdims=True)
        self.state.registers[SCALAR][number] = (word & _LOW).astype(U32), there
        self.state.registers[SCALAR][number + 1] = (word >> U64(32)).astype(U32), there

    @property
    def exec(self) -> Value:
        return self.state.registers[MASK].get(EXEC, UNKNOWN)

    # words

    def scalar(self, number: int) -> Value:
        masks = self.state.registers[MASK]
        if number in masks:
            self._into_words(number)
        elif number - 1 in masks:
            self._into_words(number - 1)
        return self.state.registers[SCALAR].get(number, UNKNOWN)

    def fetch(self, operand: MachineOperand, word: int = 0) -> Value:
        """32 bits of it; `word`: which register of several."""
        value = self._whole(operand, word)
        if self.selected and id(operand) in self.selected and value[0] is not None:
            first, bits = self.selected[id(operand)]
            return value[0] >> U32(first) & U32((1 << bits) - 1), value[1]
        return value

    def _whole(self, operand: MachineOperand, word: int) -> Value:
        match operand.kind:
            case "v":
                return self.state.registers[VECTOR].get(_VECTORS + operand.number + word, UNKNOWN)
            case "a":
                return self.state.registers[VECTOR].get(_ACCUMULATORS + operand.number + word, UNKNOWN)
            case "s":
                if operand.number in (EXEC, EXEC + 1):
                    return UNKNOWN
                return self.scalar(operand.number + word)
            case "imm":
                number = operand.number if not word else -1 if operand.number < 0 else 0
                return _immediate(number), None
            case _:
                return UNKNOWN

    def fetch64(self, operand: MachineOperand) -> Value:
        if operand.kind == "imm":
            if operand.number not in _INLINE and operand.number >> 31 & 1:
                return UNKNOWN  # whether a literal is extended by its sign depends on the instruction
            return np.array([[operand.number & 0xFFFFFFFFFFFFFFFF]], dtype=U64), None
        (low, known), (high, known_high) = self.fetch(operand), self.fetch(operand, 1)
        if low is None or high is None or operand.count != 2:
            return UNKNOWN
        return low.astype(U64) | high.astype(U64) << U64(32), both(known, known_high)

    def write(self, operand: MachineOperand, value: Value, word: int = 0) -> None:
        bits, known = value
        if operand.kind == "s":
            for number in (operand.number + word, operand.number + word - 1):
                self._into_words(number)
            if bits is not None and bits.shape[1] > 1:
                bits, known = None, None
            self.state.write(SCALAR, operand.number + word, bits, known, self.waves)
        elif operand.kind in "va":
            first = _VECTORS if operand.kind == "v" else _ACCUMULATORS
            self._write_vector(first + operand.number + word, bits, known)

    def _write_vector(self, number: int, bits: Array | None, known: Array | None) -> None:
        """Into the lanes that EXEC has: nothing is known of a lane of which that is not known."""
        where = self.lanes
        if self.exec[0] is not TRUE:
            active = Ternary.of(self.exec)
            where = active.perhaps if where is None else where & active.perhaps
            if active.sure is not active.perhaps:
                known = active.sure if known is None else known & active.sure
        self.state.write(VECTOR, number, bits, known, where)

    def write64(self, operand: MachineOperand, value: Value) -> None:
        bits, known = value
        if bits is None:
            self.forget(operand)
            return
        self.write(operand, ((bits & _LOW).astype(U32), known))
        self.write(operand, ((bits >> U64(32)).astype(U32), known), 1)

    def forget(self, operand: MachineOperand) -> None:
        if operand.kind == "s" and operand.number == EXEC:
            self.write_mask(EXEC, UNKNOWN)
            return
        if operand.kind in ("s", "v", "a"):
            for word in range(operand.count):
                self.write(operand, UNKNOWN, word)

    def write_scc(self, value: Value) -> None:
        self.state.write(FLAG, SCC, *value, self.waves)

    @property
    def scc(self) -> Value:
        return self.state.registers[FLAG].get(SCC, UNKNOWN)


def _immediate(number: int) -> Array:
    return np.array([[number & 0xFFFFFFFF]], dtype=U32)
