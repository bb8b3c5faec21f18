"""Computes instructions on bits: floating-point operations and the integer ones that `Values` has no rule
for, of PTX, LLVM IR and AMD assembly. Pure.

Used to try values on samples, never to prove: each result is rounded to its format, to nearest, whatever the
operation says, and its computation says by how much it may be off. An operation is computed of all samples at
once.
"""

from __future__ import annotations

import functools
import math
import operator
import random
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from irdiff.effects.nodes import signed

Bits = int | float | tuple["Bits", ...]
"""The bits of a register; a float for a literal whose format the instruction decides; a vector's parts."""
Column = Sequence[Bits]
"""A value in each sample."""
Function = Callable[..., Column]
_FORMATS = {"f16": ("e", "H"), "f32": ("f", "I"), "f64": ("d", "Q")}
"""How `struct` names each, and an integer of its size."""
SIZES = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_LLVM_TYPES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_TYPE = r"(b?f16|f32|f64)"
ERRORS: Mapping[str, float] = {"f16": 2.0**-10, "bf16": 2.0**-7, "f32": 2.0**-22, "f64": 2.0**-51}
"""By what a result of each format may be off, as a part of it: rounded to nearest or not, or approximated."""
SMALLEST: Mapping[str, float] = {"f16": 2.0**-22, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}
"""Added to each error: a number below the smallest normal one may be flushed to zero (not in f16)."""
_COARSE: Mapping[str, float] = {"tanh": 2.0**-10, "sin": 2.0**-18, "cos": 2.0**-18, "sin_of_turns": 2.0**-16,
                                "cos_of_turns": 2.0**-16}  # fmt: skip
"""Approximations that are less exact."""


_CHOICES = frozenset({"med3", "max", "maxnum", "maximum", "min", "minnum", "minimum", "max_magnitude"})
"""They take one of their operands."""
_SINGULAR = frozenset(
    "div fdiv div_fixup rcp sqrt rsqrt rsq lg2 log log2 log_e log10".split()  # noqa: SIM905
)
_EXACT = _CHOICES | {
    "neg", "fneg", "abs", "fabs", "floor", "ceil", "trunc", "rndne", "rint", "nearbyint", "copysign",
    "canonicalize",
}  # fmt: skip


class Computation(NamedTuple):
    function: Function
    formats: tuple[str, ...] = ()
    """The formats of the floats in the result, from the lowest bits on; empty for integers and truths."""
    error: float = 0.0
    """By what the result may be off, as a part of it."""
    is_choice: bool = False
    """True if it compares, or takes one of its operands."""
    is_singular: bool = False
    """True if some numbers have no result that is a number: it divides, or takes a root or a logarithm."""

    def disturbed(self, results: Column, dice: random.Random) -> tuple[Bits, ...]:
        """Other results that the operation might have as well."""
        size, error, chance = SIZES[self.formats[0]], self.error, dice.random
        whole = to_ints(results, size * len(self.formats))
        halves = [decoded(kind, [each >> size * n for each in whole]) for n, kind in enumerate(self.formats)]
        values = [each for row in zip(*halves, strict=True) for each in row]
        least = SMALLEST[self.formats[0]]
        values = [value * (1 + error * (2 * chance() - 1)) + least * (2 * chance() - 1) for value in values]
        parts = encoded(self.formats[0], values)
        return tuple(_joined(size, *(parts[n :: len(halves)] for n in range(len(halves)))))


def _joined(size: int, *parts: Sequence[int]) -> Iterable[int]:
    """Integers that consist of parts, the lowest first."""
    if len(parts) == 1:
        return parts[0]
    return (sum(part << size * n for n, part in enumerate(row)) for row in zip(*parts, strict=True))


def to_int(bits: Bits, width: int = 32) -> int:
    if isinstance(bits, tuple):
        own = width // len(bits)
        return sum((to_int(part, own) & (1 << own) - 1) << own * n for n, part in enumerate(bits))
    return encoded(f"f{width}", [bits])[0] if isinstance(bits, float) else bits & (1 << max(width, 1)) - 1


def to_ints(column: Column, width: int = 32) -> list[int]:
    mask = (1 << max(width, 1)) - 1
    try:
        return [each & mask for each in column]  # type: ignore[operator]
    except TypeError:  # literals and vectors
        return [to_int(each, width) for each in column]


def decoded(kind: str, column: Column) -> list[float]:
    mask = (1 << SIZES[kind]) - 1
    try:
        whole = [each & mask for each in column]  # type: ignore[operator]
    except TypeError:  # literals and vectors
        return [
            each if isinstance(each, float) else decoded(kind, [to_int(each, SIZES[kind])])[0]
            for each in column
        ]
    if kind == "bf16":
        kind, whole = "f32", [each << 16 for each in whole]
    letter, integer = _FORMATS[kind]
    return [*struct.unpack(f"<{len(whole)}{letter}", struct.pack(f"<{len(whole)}{integer}", *whole))]


def encoded(kind: str, column: Sequence[float]) -> Sequence[int]:
    if kind == "bf16":
        whole = encoded("f32", column)
        return [
            each + 0x8000 * math.isfinite(value) >> 16 & 0xFFFF
            for each, value in zip(whole, column, strict=True)
        ]
    letter, integer = _FORMATS[kind]
    try:
        raw = struct.pack(f"<{len(column)}{letter}", *column)
    except OverflowError:
        raw = b"".join(_packed(letter, each) for each in column)
    return struct.unpack(f"<{len(column)}{integer}", raw)


def _packed(letter: str, value: float) -> bytes:
    try:
        return struct.pack(f"<{letter}", value)
    except OverflowError:
        return struct.pack(f"<{letter}", math.copysign(math.inf, value))


def _each(function: Callable[..., Bits]) -> Function:
    """Computes each sample by itself."""
    return lambda *columns: tuple(map(function, *columns))


def _safe(function: Callable[..., float]) -> Callable[..., float]:
    def safe(*values: float) -> float:
        try:
            return float(function(*values))
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    return safe


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)


def _or_infinite(function: Callable[[float], float]) -> Callable[[float], float]:
    def limited(value: float) -> float:
        try:
            return function(value)
        except OverflowError:
            return math.inf

    return limited


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if value else -math.inf


def _whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda value: function(value) if math.isfinite(value) else value


_REAL: Mapping[str, Callable[..., float]] = {
    name: _safe(function)
    for names, function in (
        ("add fadd", operator.add), ("sub fsub", operator.sub), ("subrev", lambda a, b: b - a),
        ("mul fmul legacy", operator.mul), ("div fdiv", _divided),
        ("fma mad fmac fmuladd", lambda a, b, c: a * b + c),
        ("neg fneg", operator.neg), ("abs fabs", abs), ("rcp", lambda a: _divided(1.0, a)),
        ("sqrt", math.sqrt), ("rsqrt rsq", lambda a: _divided(1.0, math.sqrt(a))),
        ("ex2 exp exp2", _or_infinite(lambda a: 2.0**a)), ("lg2 log log2", _logarithm(math.log2)),
        ("sin", math.sin), ("cos", math.cos), ("sin_of_turns", lambda a: math.sin(math.tau * a)),
        ("cos_of_turns", lambda a: math.cos(math.tau * a)),
        ("exp_e", _or_infinite(math.exp)), ("log_e", _logarithm(math.log)), ("log10", _logarithm(math.log10)),
        ("tanh", math.tanh), ("floor", _whole(math.floor)), ("ceil", _whole(math.ceil)),
        ("trunc", _whole(math.trunc)), ("rndne rint nearbyint", _whole(round)), ("copysign", math.copysign),
        ("fract", lambda a: a - math.floor(a)), ("med3", lambda *parts: sorted(parts)[1]),
        ("max maxnum maximum", lambda *parts: max(p for p in parts if not math.isnan(p))),
        ("min minnum minimum", lambda *parts: min(p for p in parts if not math.isnan(p))),
        ("div_fmas", lambda a, b, c, *_: a * b + c), ("div_fixup", lambda _, b, a: _divided(a, b)),
        ("canonicalize", lambda a: a),
        ("max_magnitude", lambda a, b: max(abs(a), abs(b)) * math.copysign(1, a) * math.copysign(1, b)),
    )
    for name in names.split()
}  # fmt: skip
_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "neq": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "lg": operator.ne,
}  # fmt: skip
_UNORDERED = re.compile(r"u(eq|ne|lt|le|gt|ge)$|(eq|ne|lt|le|gt|ge)u$|n(eq|lt|le|gt|ge|lg)$")


@functools.lru_cache(maxsize=1 << 12)
def computation(name: str) -> Computation | None:
    """Returns None for an operation that no rule here computes."""
    for rule in (_of_amd, _of_llvm, _of_ptx):
        if found := rule(name):
            return found
    return None


def _real(word: str, kind: str, signs: Sequence[int] = ()) -> Computation | None:
    function = _REAL.get(word)
    if function is None:
        return None

    def computed(*parts: Column) -> Column:
        values = [decoded(kind, part) for part in parts]
        for place in signs:
            values[place] = [-each for each in values[place]]
        return encoded(kind, [*map(function, *values)])

    return Computation(computed, (kind,), _error(word, kind), word in _CHOICES, word in _SINGULAR)


def _error(word: str, kind: str) -> float:
    return 0.0 if word in _EXACT else max(ERRORS[kind], _COARSE.get(word, 0.0))


def _compared(order: str, kind: str, true: int = 1) -> Computation | None:
    found = _UNORDERED.match(order)
    name = next(filter(None, found.groups())) if found else order.removeprefix("o")
    function = _ORDERS.get(name)
    if function is None:
        return None
    is_negated = order.startswith("n") and order not in ("ne", "neq")

    def compared(a: float, b: float) -> int:
        if math.isnan(a) or math.isnan(b):
            return true * bool(found)
        return true * (function(a, b) != is_negated)

    def computed(one: Column, other: Column, *_: Column) -> Column:
        return [*map(compared, decoded(kind, one), decoded(kind, other))]

    return Computation(computed, is_choice=True)


def _halves(own: Computation) -> Computation:
    size = SIZES[own.formats[0]]

    def computed(*parts: Column) -> Column:
        whole = [to_ints(part, 2 * size) for part in parts]
        upper = [[each >> size for each in part] for part in whole]
        results = [to_ints(own.function(*half), size) for half in (whole, upper)]
        return [*_joined(size, *results)]

    return own._replace(function=computed, formats=own.formats * 2)


def _pair(own: Computation | None, *, is_high_first: bool) -> Computation | None:
    if own is None:
        return None
    function = own.function

    def computed(one: Column, other: Column) -> Column:
        low, high = (other, one) if is_high_first else (one, other)
        return [*_joined(16, *(to_ints(function(each), 16) for each in (low, high)))]

    return Computation(computed, own.formats * 2, own.error)


def _converted(target: str, source: str, whole: Callable[[float], float] | None = None) -> Computation | None:
    """Between two formats, or integers as `s32`, `u8`; whole: how it is rounded to an integer, if it is."""
    is_float = target in SIZES

    def computed(column: Column) -> Column:
        if source in SIZES:
            values = decoded(source, column)
        else:
            width = int(source[1:])
            numbers = to_ints(column, width)
            values = [float(signed(each, width) if source[0] == "s" else each) for each in numbers]
        if whole:
            values = [float(whole(each)) if math.isfinite(each) else each for each in values]
        return encoded(target, values) if is_float else [_limited(target, each) for each in values]

    is_wider = source in SIZES and SIZES[source] < SIZES.get(target, 0)
    error = 0.0 if whole or is_wider or not is_float else ERRORS[target]
    return Computation(computed, (target,) if is_float else (), error)


def _limited(kind: str, value: float) -> int:
    """An integer, or the least or greatest that there is."""
    width, is_signed = int(kind[1:]), kind[0] == "s"
    least, most = (-(1 << width - 1), (1 << width - 1) - 1) if is_signed else (0, (1 << width) - 1)
    number = 0 if math.isnan(value) else int(max(least, min(most, value)))
    return number & (1 << width) - 1


_WHOLE: Mapping[str, Callable[[float], float]] = {
    "rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil,
}  # fmt: skip
_PLAIN = re.compile(r"r[nzmp]i?|rna|ftz|approx|full|NaN|b?f16(x2)?|f32|f64|[su]\d+")
"""Modifiers of PTX that change no more of a result than how exact it is."""


def _of_ptx(name: str) -> Computation | None:
    word, *rest = name.split(".")
    if not rest:
        return None
    last = rest[-1]
    if word == "setp":
        return _compared(rest[0], last) if last in SIZES and {*rest[1:-1]} <= {"ftz"} else None
    if word == "max" and rest[-3:] == ["xorsign", "abs", last] and last in SIZES:
        return _real("max_magnitude", last)
    if last in SIZES or last.removesuffix("x2") in SIZES or word == "cvt":
        return _float_of_ptx(word, rest) if all(map(_PLAIN.fullmatch, rest)) else None
    return _integer(word, rest)


def _float_of_ptx(word: str, rest: Sequence[str]) -> Computation | None:
    last = rest[-1]
    if word == "cvt":
        kinds = [each for each in rest if re.fullmatch(r"b?f16(x2)?|f32|f64|[su]\d+", each)]
        if len(kinds) != 2:
            return None
        target, source = kinds
        if target.endswith("x2"):
            return _pair(_converted(target[:-2], source), is_high_first=True)
        return _converted(target, source, next((_WHOLE[each] for each in rest if each in _WHOLE), None))
    if last.endswith("x2"):
        own = _real(word, last[:-2])
        return _halves(own) if own else None
    return _mixed(word, last) if rest[-2:-1] == ["f32"] and last in ("f16", "bf16") else _real(word, last)


def _mixed(word: str, source: str) -> Computation | None:
    """All but the last operand have the smaller format (PTX ISA, "Mixed Precision Floating-Point")."""
    function = _REAL.get(word)

    def computed(*parts: Column) -> Column:
        *others, last = parts
        columns = *(decoded(source, each) for each in others), decoded("f32", last)
        return encoded("f32", [*map(function, *columns)])  # type: ignore[arg-type]

    is_mixed = function and word in ("add", "sub", "fma")
    return Computation(computed, ("f32",), ERRORS["f32"]) if is_mixed else None


def _integer(word: str, rest: Sequence[str]) -> Computation | None:
    if not re.fullmatch(r"[subp]\w*\d+", rest[-1]) or not rest[-1][1:].isdigit():
        return None
    width, is_signed = int(rest[-1][1:]), rest[-1][0] == "s"

    def number(bits: Bits) -> int:
        value = to_int(bits, width)
        return signed(value, width) if is_signed else value

    functions: Mapping[str, Callable[..., int]] = {
        "min": lambda *parts: min(map(number, parts)), "max": lambda *parts: max(map(number, parts)),
        "div": lambda a, b: math.trunc(number(a) / number(b)) if number(b) else 0,
        "rem": lambda a, b: int(math.fmod(number(a), number(b))) if number(b) else 0,
        "abs": lambda a: abs(number(a)),
        "lop3": lambda a, b, c, table: _by_table(to_int(table, 8), *(to_int(each) for each in (a, b, c))),
        "prmt": lambda a, b, c: _permuted(to_int(a) | to_int(b) << 32, to_int(c)),
    }  # fmt: skip
    if word == "mul" and "hi" in rest:
        return Computation(_each(lambda a, b: number(a) * number(b) >> width & (1 << width) - 1))
    found = functions.get(word)
    if found is None:
        return None
    return Computation(_each(lambda *parts: found(*parts) & (1 << width) - 1), is_choice=word in _CHOICES)


def _by_table(table: int, *parts: int) -> int:
    return sum(
        (table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n
        for n in range(32)
        for a, b, c in [parts]
    )


def _permuted(whole: int, chosen: int) -> int:
    """Picks four of eight bytes, by four bits each; the highest of these repeats the byte's sign."""
    found = 0
    for n in range(4):
        place = chosen >> 4 * n & 15
        byte = whole >> 8 * (place & 7) & 255
        found |= (255 * (byte >> 7) if place & 8 else byte) << 8 * n
    return found


_AMD = re.compile(rf"v_(pk_)?(\w+?)_(?:legacy_)?{_TYPE}((?: \d-)*)$")
_AMD_CONVERT = re.compile(r"v_cvt_(b?f16|f32|f64|[iu](?:32|16))_(b?f16|f32|f64|[iu](?:32|16))$")
_LANES_ON = (1 << 64) - 1


def _of_amd(name: str) -> Computation | None:
    if found := re.match(rf"v_cmp_(\w+?)_{_TYPE}$", name):
        return _compared(found[1], found[2], _LANES_ON)
    if found := _AMD_CONVERT.match(name):
        return _converted(found[1].replace("i", "s"), found[2].replace("i", "s"))
    if found := re.match(r"v_cvt_pk(?:rtz)?_(b?f16)_f32$", name):
        return _pair(_converted(found[1], "f32"), is_high_first=False)
    if found := re.match(r"v_(?:ldexp|div_scale)_(f32|f64)$", name):
        kind = found[1]
        if "ldexp" in name:
            return Computation(functools.partial(_scaled, kind), (kind,))
        return Computation(_each(lambda a, *_: (a, 0)))
    if name == "v_perm_b32":
        return Computation(_each(lambda a, b, c: _bytes_of(to_int(b) | to_int(a) << 32, to_int(c))))
    if not (found := _AMD.match(name)):
        return None
    packed, word, kind, signs = found.groups()
    places = [int(each[0]) - 1 for each in signs.split()]
    if word == "add" and places:  # both have a sign
        places = [0, 1]
    own = _real(f"{word}_of_turns" if word in ("sin", "cos") else word, kind, places)
    return _halves(own) if packed and own else own


def _scaled(kind: str, column: Column, exponents: Column) -> Column:
    limited = (max(-999, min(999, signed(each, 32))) for each in to_ints(exponents))
    return encoded(kind, [value * 2.0**n for value, n in zip(decoded(kind, column), limited, strict=True)])


def _bytes_of(whole: int, chosen: int) -> int:
    places = [chosen >> 8 * n & 255 for n in range(4)]
    return sum(
        (whole >> 8 * place & 255 if place < 8 else 255 * (place > 12)) << 8 * n
        for n, place in enumerate(places)
    )


_NATURAL = {"llvm.exp": "exp_e", "llvm.log": "log_e", "llvm.log10": "log10",
            "llvm.amdgcn.sin": "sin_of_turns", "llvm.amdgcn.cos": "cos_of_turns"}  # fmt: skip


def _of_llvm(name: str) -> Computation | None:
    word, *rest = name.split()
    if (
        word in ("fptrunc", "fpext", "sitofp", "uitofp", "fptosi", "fptoui")
        and len(rest) > 2
        and rest[1] == "to"
    ):
        sign = "s" if "s" in word[:1] + word[-2:-1] else "u"
        kinds = [_LLVM_TYPES.get(each) or sign + each[1:] for each in (rest[2], rest[0])]
        return _converted(kinds[0], kinds[1]) if all(k in SIZES or k[1:].isdigit() for k in kinds) else None
    if word in ("fadd", "fsub", "fmul", "fdiv", "fneg") and rest and rest[0] in _LLVM_TYPES:
        return _real(word, _LLVM_TYPES[rest[0]])
    if word == "fcmp" and len(rest) > 1 and rest[1] in _LLVM_TYPES:
        return _compared(rest[0], _LLVM_TYPES[rest[1]])
    if found := re.match(rf"(llvm\.(?:nvvm\.|amdgcn\.)?(\w+?))(?:\.(?:approx|full|rn|ftz))*\.{_TYPE}$", word):
        return _real(_NATURAL.get(found[1], found[2]), found[3])
    found = re.match(r"llvm\.nvvm\.(\w+?)(?:\.\w+)*?\.(f|d)$", word)
    names = {"fmax": "max", "fmin": "min"}
    return _real(names.get(found[1], found[1]), "f32" if found[2] == "f" else "f64") if found else None
