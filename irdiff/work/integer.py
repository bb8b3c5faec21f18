"""What the integer instructions of SASS compute, for all lanes at once.

Semantics as in NVIDIA's binary utilities' instruction tables, and as measured: counts that follow from these
values are compared with the counters of a GPU instruction by instruction.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from irdiff.work.sass import ZERO, InstructionForm, Operand, SassInstruction
from irdiff.work.state import UNKNOWN, Array, Value, WarpState, both

U32, U64, I32, I64 = np.uint32, np.uint64, np.int32, np.int64
Compute = Callable[[WarpState, SassInstruction], "list[tuple[Operand, Value]]"]
"""The destinations of an instruction and their values."""
_LOW = U64(0xFFFFFFFF)


def _low(value: Array) -> Array:
    return value.astype(U32)


def _s64(value: Array) -> Array:
    return value.view(I32).astype(I64)


def _next(operand: Operand) -> Operand:
    """The upper register of a pair."""
    if operand.number == ZERO:
        return operand
    return Operand(operand.kind, operand.number + 1)


def _is_flag(operand: Operand) -> bool:
    return operand.kind in ("P", "UP")


def _split(ins: SassInstruction) -> tuple[Operand, list[Operand], list[Operand], list[Operand]]:
    """Destination, predicates that are written, sources, predicates that are read."""
    rest = list(ins.operands[1:])
    outs: list[Operand] = []
    while rest and _is_flag(rest[0]):
        outs.append(rest.pop(0))
    sources = [row for row in rest if not _is_flag(row)]
    return ins.operands[0], outs, sources, [row for row in rest if _is_flag(row)]


def _unknown(*operands: Operand) -> list[tuple[Operand, Value]]:
    return [(row, UNKNOWN) for row in operands]


def move(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "64" in ins.modifiers:
        value, known = state.fetch64(ins.operands[1])
        return _wide(ins.operands[0], value, known)
    return [(ins.operands[0], state.fetch(ins.operands[1]))]


def _wide(target: Operand, value: Array | None, known: Array | None) -> list[tuple[Operand, Value]]:
    if value is None:
        return _unknown(target, _next(target))
    return [(target, (_low(value & _LOW), known)), (_next(target), (_low(value >> U64(32)), known))]


def load_constant(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, source = ins.operands[0], ins.operands[1]
    sizes = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16}
    size = next((sizes[word] for word in ins.modifiers if word in sizes), 4)
    found: list[tuple[Operand, Value]] = []
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
        found.append((register, value))
    return found


def special(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    name = ins.operands[1].text
    value: Value = UNKNOWN
    if name == "SRZ":
        value = np.zeros((1, 1), dtype=U32), None
    elif name in state.special:
        value = state.special[name], None
    if ins.opcode == "CS2R" and "32" not in ins.modifiers:
        return [(ins.operands[0], value), (_next(ins.operands[0]), value if name == "SRZ" else UNKNOWN)]
    return [(ins.operands[0], value)]


def add3(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`IADD3 R, [P, [P,]] a, b, c [, P [, P]]`: a carry out of the sum, and carries into it (.X)."""
    if "64" in ins.modifiers:
        return _add64(state, ins)
    target, outs, sources, carries = _split(ins)
    total, known = None, None
    plus_one = 0
    for source in sources:
        if source.number == ZERO and source.kind in ("R", "UR") and not source.inverted:
            continue  # minus zero carries, but nobody writes it
        bare = replace(source, negated=False, inverted=False)
        value, mask = state.fetch(bare) if source.kind in ("R", "UR") else state.fetch(source)
        if value is None:
            return _unknown(target, *outs)
        if source.kind in ("R", "UR") and (source.inverted or source.negated):
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
            return _unknown(target, *outs)
        total, known = total + flag, both(known, mask)
    high: Any = total >> U64(32)
    return [(target, (_low(total), known)), *((row, (high > n, known)) for n, row in enumerate(outs))]


def _add64(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, outs, sources, _ = _split(ins)
    total, known = np.zeros((1, 1), dtype=U64), None
    for source in sources:
        value, mask = state.fetch64(source)
        if value is None:
            return [*_unknown(target, _next(target)), *_unknown(*outs)]
        total, known = total + value, both(known, mask)
    return [*_wide(target, total, known), *_unknown(*outs)]


def multiply_add(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    words = ins.modifiers
    if "WIDE" in words:
        return _wide_multiply(state, ins)
    target, outs, sources, carries = _split(ins)
    a, known_a = state.fetch(sources[0])
    b, known_b = state.fetch(sources[1])
    c, known_c = state.fetch(sources[2])
    if "HI" in words:
        if a is None or b is None or c is None:
            return _unknown(target, *outs)
        upper = sources[2]
        wide_c, known_c = state.fetch64(upper) if upper.kind in ("R", "UR") else (c.astype(U64), known_c)
        if wide_c is None:
            return _unknown(target, *outs)
        product = a.astype(U64) * b.astype(U64) if "U32" in words else (_s64(a) * _s64(b)).view(U64)
        return [
            (target, (_low((product + wide_c) >> U64(32)), both(known_a, known_b, known_c))),
            *_unknown(*outs),
        ]
    zero = any(row.number == ZERO and row.kind in ("R", "UR") for row in sources[:2])
    if c is None or (not zero and (a is None or b is None)):
        return _unknown(target, *outs)
    total, known = c, known_c
    if not zero and a is not None and b is not None:
        total, known = a * b + c, both(known_a, known_b, known_c)
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return _unknown(target, *outs)
        total, known = total + flag.astype(U32), both(known, mask)
    return [(target, (total, known)), *_unknown(*outs)]


def _wide_multiply(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, outs, sources, carries = _split(ins)
    a, known_a = state.fetch(sources[0])
    b, known_b = state.fetch(sources[1])
    c, known_c = state.fetch64(sources[2])
    if a is None or b is None or c is None:
        return [*_unknown(target, _next(target)), *_unknown(*outs)]
    product = a.astype(U64) * b.astype(U64) if "U32" in ins.modifiers else (_s64(a) * _s64(b)).view(U64)
    total, known = product + c, both(known_a, known_b, known_c)
    carry_out = total < c
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return [*_unknown(target, _next(target)), *_unknown(*outs)]
        total, known = total + flag.astype(U64), both(known, mask)
    return [*_wide(target, total, known), *((row, (carry_out, known)) for row in outs)]


def shift_add(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`LEA R, [P,] a, b, n`: (a << n) + b; `.HI` takes the upper word of the shifted pair (c : a)."""
    target, outs, sources, carries = _split(ins)
    words = ins.modifiers
    amount = sources[-1].number & 31
    a, known = state.fetch(sources[0])
    b, mask = state.fetch(sources[1])
    if a is None or b is None:
        return _unknown(target, *outs)
    known = both(known, mask)
    if "HI" not in words:
        shifted = (a.astype(U64) << U64(amount)) & _LOW
    elif "SX32" in words:
        shifted = ((_s64(a) << amount) >> 32).view(U64) & _LOW
    else:
        high, mask = state.fetch(sources[2])
        if high is None:
            return _unknown(target, *outs)
        known = both(known, mask)
        pair = a.astype(U64) | high.astype(U64) << U64(32)
        shifted = (pair << U64(amount)) >> U64(32)
    total = shifted + b.astype(U64)
    for carry in carries:
        flag, mask = state.flag(carry)
        if flag is None:
            return _unknown(target, *outs)
        total, known = total + flag, both(known, mask)
    return [(target, (_low(total), known)), *((row, ((total >> U64(32)) > 0, known)) for row in outs)]


def shift(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """A funnel shift of the pair (c : a); `.HI` gives its upper word."""
    target, sources, words = ins.operands[0], ins.operands[1:4], ins.modifiers
    (a, known_a), (count, known_n), (c, known_c) = (state.fetch(row) for row in sources)
    upper_only = "R" in words and "HI" in words
    if count is None or c is None or (a is None and not upper_only):
        return _unknown(target)
    limit = 63 if {"U64", "S64"} & set(words) else 32
    n = count & U32(limit if limit == 63 else 31) if "W" in words else np.minimum(count, U32(limit))
    n = n.astype(U64)
    known = both(known_n, known_c, None if upper_only else known_a)
    signed = "S32" in words or "S64" in words
    if upper_only and limit == 32:
        value = (_s64(c) >> n.astype(I64)).astype(U64) if signed else c.astype(U64) >> n
        return [(target, (_low(value & _LOW), known))]
    pair = c.astype(U64) << U64(32)
    if a is not None:
        pair = pair | a.astype(U64)
    if "L" in words:
        value = pair << n
    else:
        value = (pair.view(I64) >> n.astype(I64)).view(U64) if signed else pair >> n
    return [(target, (_low(value >> U64(32) if "HI" in words else value & _LOW), known))]


@functools.lru_cache(maxsize=256)
def _table(lut: int) -> Callable[[Any, Any, Any], Any]:
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
        found = None
        for index in range(8):
            if lut >> index & 1:
                term = (a if index & 4 else ~a) & (b if index & 2 else ~b) & (c if index & 1 else ~c)
                found = term if found is None else found | term
        return (a & ~a) | (b & ~b) if found is None else found

    return general


def _reads(lut: int) -> tuple[bool, bool, bool]:
    """Which of its three inputs a truth table depends on."""
    found = [any((lut >> i & 1) != (lut >> (i ^ bit) & 1) for i in range(8)) for bit in (4, 2, 1)]
    return found[0], found[1], found[2]


def logic(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    operands = list(ins.operands)
    outs = [operands.pop(0)] if _is_flag(operands[0]) else []
    target, lut = operands[0], operands[4].number
    fetched = [state.fetch(row) for row in operands[1:4]]
    read = _reads(lut)
    if any(used and value is None for used, (value, _) in zip(read, fetched, strict=True)):
        return _unknown(target, *outs)
    zero = np.zeros((1, 1), dtype=U32)
    a, b, c = (
        value if used and value is not None else zero for used, (value, _) in zip(read, fetched, strict=True)
    )
    value = _table(lut)(a, b, c)
    known = both(*(mask for used, (_, mask) in zip(read, fetched, strict=True) if used))
    found: list[tuple[Operand, Value]] = [(target, (value, known))]
    for row in outs:
        flag, mask = state.flag(operands[5])
        found.append((row, UNKNOWN if flag is None else ((value != 0) | flag, both(known, mask))))
    return found


def logic_of_flags(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    first, second, *sources = ins.operands
    flags = [state.flag(row) for row in sources[:3]]
    found: list[tuple[Operand, Value]] = []
    for target, lut in ((first, sources[3].number), (second, sources[4].number if len(sources) > 4 else 0)):
        read = _reads(lut)
        if target.number == ZERO:
            continue
        if any(used and value is None for used, (value, _) in zip(read, flags, strict=True)):
            found.append((target, UNKNOWN))
            continue
        a, b, c = (np.zeros((1, 1), dtype=bool) if value is None or not used else value
                   for used, (value, _) in zip(read, flags, strict=True))  # fmt: skip
        known = both(*(mask for used, (_, mask) in zip(read, flags, strict=True) if used))
        found.append((target, (_table(lut)(a, b, c), known)))
    return found


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "LT": np.less, "LE": np.less_equal, "GT": np.greater, "GE": np.greater_equal,
    "EQ": np.equal, "NE": np.not_equal,
}  # fmt: skip


def compare(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    first, second, left, right, *flags = ins.operands
    words = ins.modifiers
    a, known_a = state.fetch(left)
    b, known_b = state.fetch(right)
    if a is None or b is None:
        return _unknown(first, second)
    if "U32" not in words:
        a, b = a.view(I32), b.view(I32)
    known = both(known_a, known_b)
    word = next((row for row in words if row in _COMPARE), None)
    if word is None:  # .T, .F, of which none was seen
        return _unknown(first, second)
    result = _COMPARE[word](a, b)
    if "EX" in words:
        low, mask = state.flag(flags[1])
        if low is None:
            return _unknown(first, second)
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
        return _unknown(first, second)
    known = both(known, mask)
    kind = next(row for row in words if row in ("AND", "OR", "XOR"))
    function = {"AND": np.logical_and, "OR": np.logical_or, "XOR": np.logical_xor}[kind]
    return [(first, (function(result, joined), known)), (second, (function(~result, joined), known))]


def select(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, left, right, flag = ins.operands
    if ins.opcode == "FSEL" and (left.negated or right.negated or left.absolute or right.absolute):
        return _unknown(target)
    chosen, known = state.flag(flag)
    if chosen is None:
        return _unknown(target)
    (a, known_a), (b, known_b) = state.fetch(left), state.fetch(right)
    if a is None and b is None:
        return _unknown(target)
    if a is None or b is None:
        keep = chosen if b is None else ~chosen
        value, mask = (a, known_a) if b is None else (b, known_b)
        return [(target, (value, both(keep, mask, known)))] if keep.any() else _unknown(target)
    if known_a is None and known_b is None:
        return [(target, (np.where(chosen, a, b), known))]
    true = np.ones((1, 1), dtype=bool)
    of_source = np.where(chosen, true if known_a is None else known_a, true if known_b is None else known_b)
    return [(target, (np.where(chosen, a, b), both(of_source, known)))]


def permute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    target, left, selector, right = ins.operands[:4]
    (a, known_a), (s, known_s), (c, known_c) = state.fetch(left), state.fetch(selector), state.fetch(right)
    if ins.modifiers or s is None:
        return _unknown(target)
    needs_a = needs_c = True
    if s.size == 1:
        nibbles = [int(s.flat[0]) >> (4 * n) & 7 for n in range(4)]
        needs_a, needs_c = any(n < 4 for n in nibbles), any(n >= 4 for n in nibbles)
    if (a is None and needs_a) or (c is None and needs_c):
        return _unknown(target)
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
    return [(target, (_low(value), known))]


def _binary(function: Callable[[Any, Any, SassInstruction], Any]) -> Compute:
    def compute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
        target = ins.operands[0]
        a, known_a = state.fetch(ins.operands[1])
        b, known_b = state.fetch(ins.operands[2])
        if a is None or b is None:
            return _unknown(target)
        return [(target, (function(a, b, ins), both(known_a, known_b)))]

    return compute


def _unary(function: Callable[[Any, SassInstruction], Any]) -> Compute:
    def compute(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
        target, source = ins.operands[0], next(row for row in ins.operands[1:] if not _is_flag(row))
        a, known = state.fetch(source)
        outs = [row for row in ins.operands[1:] if _is_flag(row) and row.number != ZERO]
        if a is None:
            return _unknown(target, *outs)
        return [(target, (function(a, ins), known)), *_unknown(*outs)]

    return compute


def _sign_extended(a: Any, n: Any, ins: SassInstruction) -> Any:
    bits = np.minimum(n, U32(32)).astype(U64)
    kept = a.astype(U64) & ((U64(1) << bits) - U64(1))
    if "U32" in ins.modifiers:
        return _low(kept)
    sign = (kept >> np.maximum(bits, U64(1)) - U64(1)) & U64(1)
    return _low((kept - (sign << bits)) & _LOW)


def _bit_count(a: Any, _ins: SassInstruction) -> Any:
    value = a.astype(U64)
    found = np.zeros_like(value)
    for bit in range(32):
        found = found + (value >> U64(bit) & U64(1))
    return _low(found)


def _leading(a: Any, ins: SassInstruction) -> Any:
    """`FLO`: the place of the highest bit that is set; -1 where none is."""
    if "U32" not in ins.modifiers:
        a = np.where(a.view(I32) < 0, ~a, a)
    place = np.floor(np.log2(np.maximum(a, 1).astype(np.float64))).astype(I64)
    place = 31 - place if "SH" in ins.modifiers else place
    return np.where(a == 0, -1, place).astype(I64).astype(U32)


def _reversed(a: Any, _ins: SassInstruction) -> Any:
    found = np.zeros_like(a)
    for bit in range(32):
        found = found | (a >> U32(bit) & U32(1)) << U32(31 - bit)
    return found


def extreme(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`IMNMX R, a, b, P`: the smaller where P holds; `VIADDMNMX R, a, b, c, P` adds a and b before."""
    target, *sources = ins.operands
    least, mask = state.flag(sources[-1])
    values = [state.fetch(row) for row in sources[:-1]]
    if least is None or any(value is None for value, _ in values) or {"U16x2", "S16x2"} & set(ins.modifiers):
        return _unknown(target)
    known = both(mask, *(row for _, row in values))
    arrays: list[Any] = [value for value, _ in values]
    if ins.opcode == "VIADDMNMX":
        arrays = [arrays[0] + arrays[1], arrays[2]]
    a, b = arrays if "U32" in ins.modifiers else (row.view(I32) for row in arrays)
    return [(target, (np.where(least, np.minimum(a, b), np.maximum(a, b)).view(U32), known))]


def _to_float(a: Any, ins: SassInstruction) -> Any:
    exact = (a if "U32" in ins.modifiers else a.view(I32)).astype(np.float64)
    near = exact.astype(np.float32)
    if "RP" in ins.modifiers:
        near = np.where(near.astype(np.float64) < exact, np.nextafter(near, np.float32(np.inf)), near)
    return near.astype(np.float32).view(U32)


def to_float(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """From 32-bit integers to fp32, as integer divisions need it."""
    if any(word[:1] in "SUFB" and word not in ("S32", "U32", "F32") for word in ins.modifiers):
        return _unknown(*_destinations(ins))
    return _unary(_to_float)(state, ins)


def to_integer(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "TRUNC" not in ins.modifiers or any(
        w in ins.modifiers for w in ("F16", "F64", "S64", "U64", "S16", "U16", "S8", "U8")
    ):
        return _unknown(*_destinations(ins))

    def function(a: Any, _ins: SassInstruction) -> Any:
        with np.errstate(all="ignore"):
            value = np.nan_to_num(a.view(np.float32).astype(np.float64), nan=0.0)
            low, high = (0, 2**32 - 1) if "U32" in ins.modifiers else (-(2**31), 2**31 - 1)
            return np.clip(np.trunc(value), low, high).astype(I64).astype(U32)

    return _unary(function)(state, ins)


def reciprocal(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    if "RCP" not in ins.modifiers or "RCP64H" in ins.modifiers:
        return _unknown(ins.operands[0])

    def function(a: Any, _ins: SassInstruction) -> Any:
        with np.errstate(all="ignore"):
            return (np.float32(1) / a.view(np.float32)).astype(np.float32).view(U32)

    return _unary(function)(state, ins)


def half_constant(_state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`HFMA2.MMA R, -RZ, RZ, x, y` moves two halves: ptxas writes constants so."""
    target, a, b, *rest = ins.operands
    literal = all(row.kind in ("float", "imm") or "INF" in row.text for row in rest)
    if not (a.number == b.number == ZERO and a.kind == b.kind == "R" and literal and len(rest) == 2):
        return _unknown(target)
    if "BF16_V2" in ins.modifiers:
        halves = [int(np.float32(_number(row)).view(U32)) >> 16 for row in rest]
    else:
        with np.errstate(over="ignore"):
            halves = [int(np.float16(_number(row)).view(np.uint16)) for row in rest]
    return [(target, (np.array([[halves[0] << 16 | halves[1]]], dtype=U32), None))]


def _number(operand: Operand) -> float:
    if operand.kind == "imm":
        return -float(operand.number) if operand.negated else float(operand.number)
    text = operand.text.replace("+", "").replace("QNAN", "nan").strip()
    return float(text)


def flags_to_register(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    """`P2R R, PR, R, mask`: predicates as bits."""
    target, _, before, mask = ins.operands
    value, known = state.fetch(before)
    if value is None or mask.kind != "imm" or any(word.startswith("B") for word in ins.modifiers):
        return _unknown(target)
    value = value & U32(~mask.number & 0xFFFFFFFF)
    for bit in range(7):
        if mask.number >> bit & 1:
            flag, lanes = state.registers["P"].get(bit, UNKNOWN)
            if flag is None:
                return _unknown(target)
            value, known = value | flag.astype(U32) << U32(bit), both(known, lanes)
    return [(target, (value, known))]


def register_to_flags(state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    _, source, mask = ins.operands
    value, known = state.fetch(source)
    bits = [bit for bit in range(7) if mask.number >> bit & 1]
    if value is None or any(word.startswith("B") for word in ins.modifiers):
        return _unknown(*(Operand("P", bit) for bit in bits))
    return [(Operand("P", bit), ((value >> U32(bit) & U32(1)) != 0, known)) for bit in bits]


def _destinations(ins: SassInstruction) -> list[Operand]:
    """Every register that an instruction which is not computed writes."""
    return written(ins)


_WIDTHS = {"64": 2, "128": 4, "U8": 1, "S8": 1, "U16": 1, "S16": 1}
_NO_RESULT = frozenset(
    [
        "ST",
        "STG",
        "STS",
        "STL",
        "STSM",
        "REDG",
        "RED",
        "REDS",
        "LDGSTS",
        "UTMALDG",
        "UTMASTG",
        "UTMAPF",
        "UTMAREDG",
        "UTMACMDFLUSH",
        "UTMACCTL",
        "UBLKCP",
        "UBLKPF",
        "BAR",
        "BRA",
        "BRX",
        "EXIT",
        "BSSY",
        "BSYNC",
        "BREAK",
        "CALL",
        "RET",
        "JMP",
        "NOP",
        "MEMBAR",
        "ERRBAR",
        "CGAERRBAR",
        "FENCE",
        "CCTL",
        "CCTLL",
        "DEPBAR",
        "LDGDEPBAR",
        "WARPSYNC",
        "WARPGROUP",
        "YIELD",
        "NANOSLEEP",
        "BMOV",
        "UCGABAR_ARV",
        "UCGABAR_WAIT",
        "ACQBULK",
        "ARRIVES",
        "BPT",
        "KILL",
        "ENDCOLLECTIVE",
        "PREEXIT",
        "STAS",
        "UVIADD_",
    ]
)


@functools.lru_cache(maxsize=1 << 14)
def _count(ins: InstructionForm) -> int:
    """Registers of the first destination."""
    words = ins.modifiers
    if ins.opcode in ("HGMMA", "QGMMA", "IGMMA", "BGMMA"):
        shape = next(word for word in words if "x" in word)
        columns = int(shape.split("x")[1])
        half = "F32" not in words[:2] and ins.opcode != "IGMMA"
        return max(1, columns // (4 if half else 2))
    if ins.opcode in ("HMMA", "QMMA", "IMMA", "BMMA", "OMMA"):
        return 2 if "F16" in words[1:2] else 4
    if ins.opcode == "DMMA":
        return 8
    if ins.opcode in ("LDSM", "LDTM"):
        return {"M88": 1, "MT88": 1}.get(words[-1], int(words[-1]) if words[-1].isdigit() else 4)
    if ins.opcode in ("DADD", "DMUL", "DFMA", "DMNMX") or (ins.opcode == "I2F" and "F64" in words):
        return 2
    if ins.opcode in ("F2F", "F2I", "FRND", "I2F") and any("64" in word for word in words):
        return 2
    if any("x4" in word for word in words if word.startswith(("F32", "F16", "BF16"))):
        return 4
    if any("x2" in word for word in words if word.startswith("F32")):
        return 2
    return max([_WIDTHS.get(word, 1) for word in words] + [1])


_TWO_FLAGS = frozenset({"FSETP", "DSETP", "HSETP2", "ISETP", "UISETP", "PLOP3", "UPLOP3"})
_FLAG_THEN_VALUE = frozenset({"SHFL", "ATOM", "ATOMG", "ATOMS", "MATCH", "LDG", "LD", "R2UR"})


@functools.lru_cache(maxsize=1 << 14)
def _written(ins: InstructionForm) -> tuple[Operand, ...]:
    if ins.opcode in _NO_RESULT or not ins.operands:
        return ()
    if (
        ins.opcode in _TWO_FLAGS
        or (ins.opcode in _FLAG_THEN_VALUE and _is_flag(ins.operands[0]))
        or (ins.opcode in ("ELECT", "VOTE", "VOTEU") and len(ins.operands) > 2)
    ):
        targets = ins.operands[:2]
    else:
        targets = ins.operands[:1]
    found: list[Operand] = []
    for target in targets:
        if target.number == ZERO or target.kind not in ("R", "UR", "P", "UP"):
            continue
        count = 1 if _is_flag(target) else _count(ins)
        found += [Operand(target.kind, target.number + n) for n in range(count)]
    return tuple(found)


def written(ins: SassInstruction | InstructionForm) -> list[Operand]:
    return list(_written(ins.form if isinstance(ins, SassInstruction) else ins))


def forget(_state: WarpState, ins: SassInstruction) -> list[tuple[Operand, Value]]:
    return [(row, UNKNOWN) for row in _written(ins.form)]


COMPUTED: dict[str, Compute] = {
    "MOV": move,
    "UMOV": move,
    "LDC": load_constant,
    "ULDC": load_constant,
    "LDCU": load_constant,
    "S2R": special,
    "S2UR": special,
    "CS2R": special,
    "IADD3": add3,
    "UIADD3": add3,
    "IMAD": multiply_add,
    "UIMAD": multiply_add,
    "LEA": shift_add,
    "ULEA": shift_add,
    "SHF": shift,
    "USHF": shift,
    "LOP3": logic,
    "ULOP3": logic,
    "PLOP3": logic_of_flags,
    "UPLOP3": logic_of_flags,
    "ISETP": compare,
    "UISETP": compare,
    "SEL": select,
    "USEL": select,
    "FSEL": select,
    "PRMT": permute,
    "UPRMT": permute,
    "VIADD": _binary(lambda a, b, _ins: a + b),
    "SGXT": _binary(_sign_extended),
    "USGXT": _binary(_sign_extended),
    "IABS": _unary(lambda a, _ins: np.abs(a.view(I32)).view(U32)),
    "POPC": _unary(_bit_count),
    "UPOPC": _unary(_bit_count),
    "FLO": _unary(_leading),
    "UFLO": _unary(_leading),
    "BREV": _unary(_reversed),
    "UBREV": _unary(_reversed),
    "IMNMX": extreme,
    "UIMNMX": extreme,
    "VIMNMX": extreme,
    "VIADDMNMX": extreme,
    "I2F": to_float,
    "I2FP": to_float,
    "F2I": to_integer,
    "MUFU": reciprocal,
    "HFMA2": half_constant,
    "P2R": flags_to_register,
    "R2P": register_to_flags,
}
