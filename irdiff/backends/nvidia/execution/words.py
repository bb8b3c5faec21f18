"""32-bit words and pairs of them, as numpy computes with them; instructions of one or two sources. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.execution.state import UNKNOWN, Array, Value, both
from irdiff.ir.sass.destinations import is_flag, next_register
from irdiff.ir.sass.instructions import ZERO, Operand, SassInstruction

U32, U64, I32, I64 = np.uint32, np.uint64, np.int32, np.int64


Compute = Callable[[WarpState, SassInstruction], "list[tuple[Operand, Value]]"]


"""The destinations of an instruction and their values."""


LOW = U64(0xFFFFFFFF)


def low_word(value: Array) -> Array:
    return value.astype(U32)


def signed64(value: Array) -> Array:
    return value.view(I32).astype(I64)


def unknown(*operands: Operand) -> list[tuple[Operand, Value]]:
    return [(operand, UNKNOWN) for operand in operands]


def pair_of(target: Operand, value: Array | None, known: Array | None) -> list[tuple[Operand, Value]]:
    if value is None:
        return unknown(target, next_register(target))
    return [
        (target, (low_word(value & LOW), known)),
        (next_register(target), (low_word(value >> U64(32)), known)),
    ]


def binary(function: Callable[[Any, Any, SassInstruction], Any]) -> Compute:
    def compute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
        target = ins.operands[0]
        a, known_a = state.fetch(ins.operands[1])
        b, known_b = state.fetch(ins.operands[2])
        if a is None or b is None:
            return unknown(target)
        return [(target, (function(a, b, ins), both(known_a, known_b)))]

    return compute


def unary(function: Callable[[Any, SassInstruction], Any]) -> Compute:
    def compute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
        target, source = (
            ins.operands[0],
            next(operand for operand in ins.operands[1:] if not is_flag(operand)),
        )
        a, known = state.fetch(source)
        outs = [operand for operand in ins.operands[1:] if is_flag(operand) and operand.number != ZERO]
        if a is None:
            return unknown(target, *outs)
        return [(target, (function(a, ins), known)), *unknown(*outs)]

    return compute
