"""Logic, comparisons, selections and predicates of SASS. Pure."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.backends.nvidia.execution.words import I32, I64, LOW, U32, U64, low_word, unknown
from irdiff.execution.state import FALSE, TRUE, UNKNOWN, Value, both
from irdiff.ir.sass.destinations import is_flag
from irdiff.ir.sass.instructions import ZERO, Operand, SassInstruction


@functools.lru_cache(maxsize=256)
def truth_table(lut: int) -> Callable[[Any, Any, Any], Any]:
    """The function of three bits that a truth table names."""
    short: dict[int, Callable[[Any, Any, Any], Any]] = {
        0xC0: lambda a, b, _c: a & b, 0xFC: lambda a, b, _c: a | b, 0x3C: lambda a, b, _c: a ^ b,
        0x33: lambda _a, b, _c: ~b, 0x0F: lambda a, _b, _c: ~a, 0x30: lambda a, b, _c: a & ~b,
        0xFE: lambda a, b, c: a | b | c, 0x80: lambda a, b, c: a & b & c, 0x96: lambda a, b, c: a ^ b ^ c,
        0xF8: lambda a, b, c: a | b & c, 0xEA: lambda a, b, c: a & b | c,
    }  # fmt: skip
    if lut in short:
        return short[lut]

    def general(a: Any, b: Any, c: Any) -> Any:
        result = None
        for index in range(8):
            if lut >> index & 1:
                term = (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
                result = term if result is None else result | term
        return (a & ~a) | (b & ~b) if result is None else result

    return general


def _reads(lut: int) -> tuple[bool, bool, bool]:
    """Which of its three inputs a truth table depends on."""
    reads = [any((lut >> i & 1) != (lut >> (i ^ bit) & 1) for i in range(8)) for bit in (4, 2, 1)]
    return reads[0], reads[1], reads[2]


def logic(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    operands = list(ins.operands)
    outs = [operands.pop(0)] if is_flag(operands[0]) else []
    target, lut = operands[0], operands[4].number
    fetched = [state.fetch(operand) for operand in operands[1:4]]
    read = _reads(lut)
    if any(used and value is None for used, (value, _) in zip(read, fetched, strict=True)):
        return unknown(target, *outs)
    zero = np.zeros((1, 1), dtype=U32)
    a, b, c = (
        value if used and value is not None else zero for used, (value, _) in zip(read, fetched, strict=True)
    )
    value = truth_table(lut)(a, b, c)
    known = both(*(mask for used, (_, mask) in zip(read, fetched, strict=True) if used))
    results: list[tuple[Operand, Value]] = [(target, (value, known))]
    for operand in outs:
        flag, mask = state.flag(operands[5])
        results.append((operand, UNKNOWN if flag is None else ((value != 0) | flag, both(known, mask))))
    return results


def logic_of_flags(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    first, second, *sources = ins.operands
    flags = [state.flag(flag) for flag in sources[:3]]
    tables = sources[3].number, sources[4].number if len(sources) > 4 else 0
    pairs = zip((first, second), tables, strict=True)
    return [(target, _of_flags(lut, flags)) for target, lut in pairs if target.number != ZERO]


def _of_flags(lut: int, flags: list[Value]) -> Value:
    """Known where the table says the same for each value of what is not known."""
    choices: list[list[Any]] = []
    for used, (value, known) in zip(_reads(lut), flags, strict=True):
        if not used:
            choices.append([FALSE])
        elif value is None:
            choices.append([FALSE, TRUE])
        elif known is None:
            choices.append([value])
        else:
            choices.append([value & known, value | ~known])
    results = [truth_table(lut)(a, b, c) for a, b, c in itertools.product(*choices)]
    if len(results) == 1:
        return results[0], None
    some = functools.reduce(np.logical_or, results)
    every = functools.reduce(np.logical_and, results)
    return (some, some == every) if (some == every).any() else UNKNOWN


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


@functools.lru_cache(maxsize=1 << 10)
def _comparison(words: tuple[str, ...]) -> tuple[str | None, str]:
    word = next((modifier for modifier in words if modifier in _COMPARE), None)
    return word, next((modifier for modifier in words if modifier in ("AND", "OR", "XOR")), "AND")


def compare(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    first, second, left, right, *flags = ins.operands
    words = ins.modifiers
    a, known_a = state.fetch(left)
    b, known_b = state.fetch(right)
    if a is None or b is None:
        return unknown(first, second)
    if "U32" not in words:
        a, b = a.view(I32), b.view(I32)
    known = both(known_a, known_b)
    word, kind = _comparison(words)
    if word is None:  # .T, .F, of which none was seen
        return unknown(first, second)
    result = _COMPARE[word](a, b)
    if "EX" in words:
        low, mask = state.flag(flags[1])
        if low is None:
            return unknown(first, second)
        known = both(known, mask)
        equal = a == b
        if word == "NE":
            result = ~equal | low
        elif word == "EQ":
            result = equal & low
        else:
            result = _COMPARE[word[0] + "T"](a, b) | (equal & low)
    joined, mask = state.flag(flags[0])
    if joined is None:
        return unknown(first, second)
    known = both(known, mask)
    if flags[0].number == ZERO and not flags[0].negated and kind == "AND":  # PT joins nothing
        return [(first, (result, known)), (second, (~result, known))]
    function = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}[kind]
    return [(first, (function(result, joined), known)), (second, (function(~result, joined), known))]


def select(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, left, right, flag = ins.operands
    if ins.opcode == "FSEL" and (left.negated or right.negated or left.absolute or right.absolute):
        return unknown(target)
    chosen, known = state.flag(flag)
    if chosen is None:
        return unknown(target)
    (a, known_a), (b, known_b) = state.fetch(left), state.fetch(right)
    if a is None and b is None:
        return unknown(target)
    if a is None or b is None:
        keep = chosen if b is None else ~chosen
        value, mask = (a, known_a) if b is None else (b, known_b)
        return [(target, (value, both(keep, mask, known)))] if keep.any() else unknown(target)
    if known_a is None and known_b is None:
        return [(target, (np.where(chosen, a, b), known))]
    true = np.ones((1, 1), dtype=bool)
    of_source = np.where(chosen, true if known_a is None else known_a, true if known_b is None else known_b)
    return [(target, (np.where(chosen, a, b), both(of_source, known)))]


def permute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, left, selector, right = ins.operands[:4]
    (a, known_a), (s, known_s), (c, known_c) = state.fetch(left), state.fetch(selector), state.fetch(right)
    if ins.modifiers or s is None:
        return unknown(target)
    needs_a = needs_c = True
    if s.size == 1:
        nibbles = [int(s.flat[0]) >> (4 * n) & 7 for n in range(4)]
        needs_a, needs_c = any(n < 4 for n in nibbles), any(n >= 4 for n in nibbles)
    if (a is None and needs_a) or (c is None and needs_c):
        return unknown(target)
    zero = np.zeros((1, 1), dtype=U64)
    low = zero if a is None or not needs_a else a.astype(U64)
    high = zero if c is None or not needs_c else c.astype(U64)
    pair, wide = low | high << U64(32), s.astype(U64)
    value = zero
    for n in range(4):
        nibble = wide >> U64(4 * n) & U64(15)
        byte = pair >> ((nibble & U64(7)) * U64(8)) & U64(255)
        sign = np.where(byte & U64(128), U64(255), U64(0))
        value = value | np.where(nibble & U64(8), sign, byte) << U64(8 * n)
    known = both(known_s, known_a if needs_a else None, known_c if needs_c else None)
    return [(target, (low_word(value), known))]


def sign_extended(a: Any, n: Any, ins: SassInstruction) -> Any:
    bits = np.minimum(n, U32(32)).astype(U64)
    kept = a.astype(U64) & ((U64(1) << bits) - U64(1))
    if "U32" in ins.modifiers:
        return low_word(kept)
    sign = (kept >> np.maximum(bits, U64(1)) - U64(1)) & U64(1)
    return low_word((kept - (sign << bits)) & LOW)


def bit_count(a: Any, _ins: SassInstruction) -> Any:
    value = a.astype(U64)
    count = np.zeros_like(value)
    for bit in range(32):
        count = count + (value >> U64(bit) & U64(1))
    return low_word(count)


def leading_bit(a: Any, ins: SassInstruction) -> Any:
    """`FLO`: the place of the highest bit that is set; -1 where none is."""
    if "U32" not in ins.modifiers:
        a = np.where(a.view(I32) < 0, ~a, a)
    place = np.floor(np.log2(np.maximum(a, 1).astype(np.float64))).astype(I64)
    place = 31 - place if "SH" in ins.modifiers else place
    return np.where(a == 0, -1, place).astype(I64).astype(U32)


def reversed_bits(a: Any, _ins: SassInstruction) -> Any:
    mirrored = np.zeros_like(a)
    for bit in range(32):
        mirrored = mirrored | (a >> U32(bit) & U32(1)) << U32(31 - bit)
    return mirrored


def flags_to_register(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`P2R R, PR, R, mask`: predicates as bits."""
    target, _, before, mask = ins.operands
    value, known = state.fetch(before)
    if value is None or mask.kind != "imm" or any(word.startswith("B") for word in ins.modifiers):
        return unknown(target)
    value = value & U32(~mask.number & 0xFFFFFFFF)
    for bit in range(7):
        if mask.number >> bit & 1:
            flag, lanes = state.registers["P"].get(bit, UNKNOWN)
            if flag is None:
                return unknown(target)
            value, known = value | flag.astype(U32) << U32(bit), both(known, lanes)
    return [(target, (value, known))]


def register_to_flags(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    _, source, mask = ins.operands
    value, known = state.fetch(source)
    bits = [bit for bit in range(7) if mask.number >> bit & 1]
    if value is None or any(word.startswith("B") for word in ins.modifiers):
        return unknown(*(Operand("P", bit) for bit in bits))
    return [(Operand("P", bit), ((value >> U32(bit) & U32(1)) != 0, known)) for bit in bits]
