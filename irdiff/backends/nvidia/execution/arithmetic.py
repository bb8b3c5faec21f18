"""Moves, sums, products and shifts of SASS. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.backends.nvidia.execution.words import (
    I32,
    I64,
    LOW,
    U32,
    U64,
    low_word,
    pair_of,
    signed64,
    unknown,
)
from irdiff.execution.state import UNKNOWN, Value, both
from irdiff.ir.sass.destinations import next_register, split
from irdiff.ir.sass.instructions import ZERO, Operand, SassInstruction


def move(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "64" in ins.modifiers:
        value, known = state.fetch64(ins.operands[1])
        return pair_of(ins.operands[0], value, known)
    return [(ins.operands[0], state.fetch(ins.operands[1]))]


def load_constant(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, source = ins.operands[0], ins.operands[1]
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    size = next((sizes[word] for word in ins.modifiers if word in sizes), 4)
    results: list[tuple[Operand, Value]] = []
    for word in range(0, max(size, 4), 4):
        number = (
            None
            if source.registers or source.kind != "const"
            else state.constant(source.bank, source.number + word, min(size, 4))
        )
        if number is not None and {"S8", "S16"} & set(ins.modifiers) and number >> (8 * size - 1):
            number -= 1 << (8 * size)
        value: Value = UNKNOWN if number is None else (np.array([[number & 0xFFFFFFFF]], dtype=U32), None)
        register = Operand(target.kind, target.number + word // 4) if target.number != ZERO else target
        results.append((register, value))
    return results


def special(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    name = ins.operands[1].text
    value: Value = UNKNOWN
    if name == "SRZ":
        value = np.zeros((1, 1), dtype=U32), None
    elif name in state.special:
        value = state.special[name], None
    if ins.opcode == "CS2R" and "32" not in ins.modifiers:
        return [
            (ins.operands[0], value),
            (next_register(ins.operands[0]), value if name == "SRZ" else UNKNOWN),
        ]
    return [(ins.operands[0], value)]


def add3(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`IADD3 R, [P, [P,]] a, b, c [, P [, P]]`: a carry out of the sum, and carries into it (.X)."""
    if "64" in ins.modifiers:
        return _add64(state, ins)
    target, outs, sources, carries = split(ins)
    total, known = None, None
    plus_one = 0
    for source in sources:
        if source.number == ZERO and source.kind in ("R", "UR") and not source.inverted:
            continue  # minus zero carries, but nobody writes it
        is_register = source.kind in ("R", "UR")
        value, mask = state.bare(source) if is_register else state.fetch(source)
        if value is None:
            return unknown(target, *outs)
        if is_register and (source.inverted or source.negated):
            value = ~value
            plus_one += source.negated
        value = value.astype(U64)
        total = value if total is None else total + value
        known = both(known, mask)
    total = np.zeros((1, 1), dtype=U64) if total is None else total
    if plus_one:
        total = total + U64(plus_one)
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return unknown(target, *outs)
        total, known = total + flag, both(known, mask)
    high: Any = total >> U64(32)
    return [(target, (low_word(total), known)), *((out, (high > n, known)) for n, out in enumerate(outs))]


def _add64(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, outs, sources, _ = split(ins)
    total, known = np.zeros((1, 1), dtype=U64), None
    for source in sources:
        value, mask = state.fetch64(source)
        if value is None:
            return [*unknown(target, next_register(target)), *unknown(*outs)]
        total, known = total + value, both(known, mask)
    return [*pair_of(target, total, known), *unknown(*outs)]


def multiply_add(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    words = ins.modifiers
    if "WIDE" in words:
        return _wide_multiply(state, ins)
    target, outs, sources, carries = split(ins)
    a, known_a = state.fetch(sources[0])
    b, known_b = state.fetch(sources[1])
    c, known_c = state.fetch(sources[2])
    if "HI" in words:
        if a is None or b is None or c is None:
            return unknown(target, *outs)
        upper = sources[2]
        wide_c, known_c = state.fetch64(upper) if upper.kind in ("R", "UR") else (c.astype(U64), known_c)
        if wide_c is None:
            return unknown(target, *outs)
        product = a.astype(U64) * b.astype(U64) if "U32" in words else (signed64(a) * signed64(b)).view(U64)
        return [
            (target, (low_word((product + wide_c) >> U64(32)), both(known_a, known_b, known_c))),
            *unknown(*outs),
        ]
    zero = any(operand.number == ZERO and operand.kind in ("R", "UR") for operand in sources[:2])
    if c is None or (not zero and (a is None or b is None)):
        return unknown(target, *outs)
    total, known = c, known_c
    if not zero and a is not None and b is not None:
        total, known = a * b + c, both(known_a, known_b, known_c)
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return unknown(target, *outs)
        total, known = total + flag.astype(U32), both(known, mask)
    return [(target, (total, known)), *unknown(*outs)]


def _wide_multiply(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, outs, sources, carries = split(ins)
    a, known_a = state.fetch(sources[0])
    b, known_b = state.fetch(sources[1])
    c, known_c = state.fetch64(sources[2])
    if a is None or b is None or c is None:
        return [*unknown(target, next_register(target)), *unknown(*outs)]
    product = (
        a.astype(U64) * b.astype(U64) if "U32" in ins.modifiers else (signed64(a) * signed64(b)).view(U64)
    )
    total, known = product + c, both(known_a, known_b, known_c)
    carry_out = total < c
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return [*unknown(target, next_register(target)), *unknown(*outs)]
        total, known = total + flag.astype(U64), both(known, mask)
    return [*pair_of(target, total, known), *((out, (carry_out, known)) for out in outs)]


def shift_add(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`LEA R, [P,] a, b, n`: (a << n) + b; `.HI` takes the upper word of the shifted pair (c : a)."""
    target, outs, sources, carries = split(ins)
    words = ins.modifiers
    amount = sources[-1].number & 31
    a, known = state.fetch(sources[0])
    b, mask = state.fetch(sources[1])
    if a is None or b is None:
        return unknown(target, *outs)
    known = both(known, mask)
    if "HI" not in words:
        shifted = (a.astype(U64) << U64(amount)) & LOW
    elif "SX32" in words:
        shifted = ((signed64(a) << amount) >> 32).view(U64) & LOW
    else:
        high, mask = state.fetch(sources[2])
        if high is None:
            return unknown(target, *outs)
        known = both(known, mask)
        pair = a.astype(U64) | high.astype(U64) << U64(32)
        shifted = (pair << U64(amount)) >> U64(32)
    total = shifted + b.astype(U64)
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return unknown(target, *outs)
        total, known = total + flag, both(known, mask)
    return [(target, (low_word(total), known)), *((out, ((total >> U64(32)) > 0, known)) for out in outs)]


def shift(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """A funnel shift of the pair (c : a); `.HI` gives its upper word."""
    target, sources, words = ins.operands[0], ins.operands[1:4], ins.modifiers
    (a, known_a), (count, known_n), (c, known_c) = (state.fetch(operand) for operand in sources)
    upper_only = "R" in words and "HI" in words
    if count is None or c is None or (a is None and not upper_only):
        return unknown(target)
    limit = 63 if {"U64", "S64"} & set(words) else 32
    n = count & U32(limit if limit == 63 else 31) if "W" in words else np.minimum(count, U32(limit))
    n = n.astype(U64)
    known = both(known_n, known_c, None if upper_only else known_a)
    signed = "S32" in words or "S64" in words
    if upper_only and limit == 32:
        value = (signed64(c) >> n.astype(I64)).astype(U64) if signed else c.astype(U64) >> n
        return [(target, (low_word(value & LOW), known))]
    pair = c.astype(U64) << U64(32)
    if a is not None:
        pair = pair | a.astype(U64)
    if "L" in words:
        value = pair << n
    else:
        value = (pair.view(I64) >> n.astype(I64)).view(U64) if signed else pair >> n
    return [(target, (low_word(value >> U64(32) if "HI" in words else value & LOW), known))]


def extreme(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`VIMNMX R, [P, P,] a, b, P`: the smaller where P holds; `VIADDMNMX R, a, b, c, P` adds a and b."""
    target, outs, sources, flags = split(ins)
    least, mask = state.flag(flags[-1])
    values = [state.fetch(operand) for operand in sources]
    if least is None or any(value is None for value, _ in values) or {"U16x2", "S16x2"} & set(ins.modifiers):
        return unknown(target, *outs)
    known = both(mask, *(each for _, each in values))
    arrays: list[Any] = [value for value, _ in values]
    if ins.opcode == "VIADDMNMX":
        arrays = [arrays[0] + arrays[1], arrays[2]]
    a, b = arrays if "U32" in ins.modifiers else (array.view(I32) for array in arrays)
    value = np.where(least, np.minimum(a, b), np.maximum(a, b)).view(U32)
    return [(target, (value, known)), *unknown(*outs)]
