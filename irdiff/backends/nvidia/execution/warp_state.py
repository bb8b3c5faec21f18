"""Registers of warps of NVIDIA's GPUs, read as the operands of SASS are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from irdiff.execution.state import FALSE, TRUE, UNKNOWN, Array, LaneState, Value
from irdiff.ir.sass.instructions import ZERO, Operand

_ZERO32 = np.zeros((1, 1), dtype=np.uint32)


@dataclass
class WarpState(LaneState):
    special: Mapping[str, Array] = field(default_factory=dict)
    """Value of each special register, broadcastable to (programs × warps, 32)."""
    _immediates: dict[Operand, Value] = field(default_factory=dict)
    """By the operand itself, which has one form for one text."""

    # the registers that read as zero: RZ, URZ, PT

    def word(self, kind: str, number: int) -> Value:
        return (_ZERO32, None) if number == ZERO else super().word(kind, number)

    def pair(self, kind: str, number: int) -> Value:
        return (_ZERO32.astype(np.uint64), None) if number == ZERO else super().pair(kind, number)

    def write(
        self, kind: str, number: int, value: Array | None, known: Array | None, mask: Array | None
    ) -> None:
        if number != ZERO:
            super().write(kind, number, value, known, mask)

    def flag(self, operand: Operand) -> Value:
        """A predicate, negated as written."""
        if operand.number == ZERO:
            return (FALSE if operand.negated else TRUE), None
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
