"""What instructions compute of bits: floating-point operations and the integer ones that `Values` has no rule
for, of PTX, LLVM IR and AMD assembly. Pure.

Used to try values on samples, never to prove: a double stands for every format, so results are near, not
exact.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import struct
from collections.abc import Callable, Mapping, Sequence

Bits = int | float | tuple["Bits", ...]
"""Of a register; a float for a literal whose format the instruction decides; the parts of a vector."""
Function = Callable[..., Bits]
_FORMATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_SIZES = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_LLVM_TYPES = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
_TYPE = r"(b?f16|f32|f64)"


def to_int(bits: Bits, width: int = 32) -> int:
    if isinstance(bits, tuple):
        own = width // len(bits)
        return sum((to_int(part, own) & (1 << own) - 1) << own * n for n, part in enumerate(bits))
    return encode(f"f{width}", bits) if isinstance(bits, float) else bits & (1 << max(width, 1)) - 1


def decode(kind: str, bits: Bits) -> float:
    if isinstance(bits, float):
        return bits
    value = to_int(bits, _SIZES[kind])
    if kind == "bf16":
        kind, value = "f32", value << 16
    return float(struct.unpack(_FORMATS[kind], value.to_bytes(_SIZES[kind] // 8, "little"))[0])


def encode(kind: str, value: float) -> int:
    if kind == "bf16":
        return (
            encode("f32", value) + 0x8000 >> 16 & 0xFFFF
            if math.isfinite(value)
            else encode("f32", value) >> 16
        )
    try:
        raw = struct.pack(_FORMATS[kind], value)
    except OverflowError:
        raw = struct.pack(_FORMATS[kind], math.copysign(math.inf, value))
    return int.from_bytes(raw, "little")


def are_near(kinds: Sequence[str], one: Bits, other: Bits) -> bool:
    """Whether two results are the same up to rounding in one of these formats."""
    return any(_near(kind, one, other) for kind in kinds)


def _near(kind: str, one: Bits, other: Bits) -> bool:
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(_near(kind, a, b) for a, b in zip(one, other, strict=True))
    size = 32 if kind in ("f16", "bf16") else _SIZES[kind]
    ours, theirs = to_int(one, size), to_int(other, size)
    for shift in range(0, size, _SIZES[kind]):
        a, b = (decode(kind, each >> shift & (1 << _SIZES[kind]) - 1) for each in (ours, theirs))
        bound = {"f16": 0.02, "bf16": 0.06}.get(kind, 2e-3)
        if (
            a != b
            and not (math.isnan(a) and math.isnan(b))
            and not abs(a - b) <= bound * max(abs(a), abs(b), 0.05)
        ):
            return False
    return True


def _safe(function: Callable[..., float]) -> Callable[..., float]:
    def safe(*values: float) -> float:
        try:
            return float(function(*values))
        except (ZeroDivisionError, ValueError, OverflowError):
            return math.nan

    return safe


def _divided(a: float, b: float) -> float:
    return a / b if b else math.nan if not a or math.isnan(a) else math.copysign(math.inf, a)


_REAL: Mapping[str, Callable[..., float]] = {
    name: _safe(function)
    for names, function in (
        ("add fadd", operator.add), ("sub fsub", operator.sub), ("subrev", lambda a, b: b - a),
        ("mul fmul legacy", operator.mul), ("div fdiv", _divided),
        ("fma mad fmac fmuladd", lambda a, b, c: a * b + c),
        ("neg fneg", operator.neg), ("abs fabs", abs), ("rcp", lambda a: _divided(1.0, a)),
        ("sqrt", math.sqrt), ("rsqrt rsq", lambda a: 1 / math.sqrt(a)), ("ex2 exp exp2", lambda a: 2.0**a),
        ("lg2 log log2", math.log2),
        ("sin", math.sin), ("cos", math.cos), ("tanh", math.tanh), ("floor", math.floor), ("ceil", math.ceil),
        ("trunc", math.trunc), ("rndne rint nearbyint", round), ("copysign", math.copysign),
        ("fract", lambda a: a - math.floor(a)), ("med3", lambda *parts: sorted(parts)[1]),
        ("max maxnum maximum", lambda *parts: max(p for p in parts if not math.isnan(p))),
        ("min minnum minimum", lambda *parts: min(p for p in parts if not math.isnan(p))),
        ("div_fmas", lambda a, b, c, *_: a * b + c), ("div_fixup", lambda _, b, a: _divided(a, b)),
        ("canonicalize", lambda a: a),
    )
    for name in names.split()
}  # fmt: skip
_ORDERS: Mapping[str, Callable[[float, float], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "neq": operator.ne, "lt": operator.lt, "le": operator.le,
    "gt": operator.gt, "ge": operator.ge, "lg": operator.ne,
}  # fmt: skip
_TRUTHS: Mapping[str, Function] = {
    "is zero": lambda bits: int(not to_int(bits, 64)),
    "not zero": lambda bits: int(bool(to_int(bits, 64))),
}
_UNORDERED = re.compile(r"u(eq|ne|lt|le|gt|ge)$|(eq|ne|lt|le|gt|ge)u$|n(eq|lt|le|gt|ge|lg)$")


@functools.lru_cache(maxsize=1 << 12)
def function_of(name: str) -> Function | None:
    """Of an operation by its name; None where nothing here says what it computes."""
    if name in _TRUTHS:
        return _TRUTHS[name]
    for rule in (_of_amd, _of_llvm, _of_ptx):
        if found := rule(name):
            return found
    return None


@functools.lru_cache(maxsize=1 << 12)
def formats_of(name: str) -> tuple[str, ...]:
    """The formats that a result of this operation may have."""
    found = [
        _LLVM_TYPES.get(each, each)
        for each in re.findall(rf"(?<![a-z0-9]){_TYPE}|half|bfloat|float|double", name)
    ]
    words = [_LLVM_TYPES.get(each, each) for each in re.findall(r"\b(?:half|bfloat|float|double)\b", name)]
    return tuple(dict.fromkeys([*filter(None, found), *words]))


def _real(word: str, kind: str, signs: Sequence[int] = ()) -> Function | None:
    function = _REAL.get(word)
    if function is None:
        return None

    def computed(*parts: Bits) -> Bits:
        values = [decode(kind, part) for part in parts]
        for place in signs:
            values[place] = -values[place]
        return encode(kind, function(*values))

    return computed


def _compared(order: str, kind: str, true: int = 1) -> Function | None:
    found = _UNORDERED.match(order)
    name = next(filter(None, found.groups())) if found else order.removeprefix("o")
    function = _ORDERS.get(name)
    if function is None:
        return None
    is_negated = order.startswith("n") and order not in ("ne", "neq")

    def computed(one: Bits, other: Bits, *_: Bits) -> Bits:
        a, b = decode(kind, one), decode(kind, other)
        if math.isnan(a) or math.isnan(b):
            return true * bool(found)
        return true * (function(a, b) != is_negated)

    return computed


def _halves(function: Function, size: int) -> Function:
    def computed(*parts: Bits) -> Bits:
        rows = [
            [to_int(part, 2 * size) >> place * size & (1 << size) - 1 for part in parts] for place in (0, 1)
        ]
        return to_int(tuple(function(*row) for row in rows), 2 * size)

    return computed


def _dot(target: str, source: str) -> Function:
    """Of two pairs, and what is added."""

    def computed(one: Bits, other: Bits, added: Bits, *_: Bits) -> Bits:
        pairs = [to_int(each, 32) for each in (one, other)]
        halves = [[decode(source, each >> shift & 0xFFFF) for each in pairs] for shift in (0, 16)]
        return encode(target, sum(a * b for a, b in halves) + decode(target, added))

    return computed


def _pair(own: Function, *, is_high_first: bool) -> Function:
    def computed(one: Bits, other: Bits) -> Bits:
        low, high = (other, one) if is_high_first else (one, other)
        return to_int((own(low), own(high)))

    return computed


def _converted(target: str, source: str) -> Function | None:
    """Between two formats, or integers as `s32`, `u8`."""

    def computed(bits: Bits) -> Bits:
        if source in _SIZES:
            value = decode(source, bits)
        else:
            width = int(source[1:])
            value = float(
                to_int(bits, width) - (to_int(bits, width) >> width - 1 << width if source[0] == "s" else 0)
            )
        if target in _SIZES:
            return encode(target, value)
        return int(value) & (1 << int(target[1:])) - 1 if math.isfinite(value) else 0

    return computed


def _of_ptx(name: str) -> Function | None:
    word, *rest = name.split(".")
    if not rest:
        return None
    last = rest[-1]
    if word == "cvt":
        found = re.findall(r"\.(b?f16x2|b?f16|f32|f64|[su]\d+)(?=\.|$)", name)
        if len(found) == 2 and found[0].endswith("x2"):
            own = _converted(found[0][:-2], found[1])
            return _pair(own, is_high_first=True) if own else None
        return _converted(*found) if len(found) == 2 else None
    if word in ("setp", "set") and last in _SIZES and len(rest) < 4 and word == "setp":
        return _compared(rest[0], last)
    if last.endswith("x2") and (own := _real(word, last[:-2])) and last[:-2] in _SIZES:
        return _halves(own, _SIZES[last[:-2]])
    if rest[-2:-1] == ["f32"] and last in ("f16", "bf16"):
        return _mixed(word, last)
    if last in _SIZES:
        return _real(word, last)
    return _integer(word, rest)


def _mixed(word: str, source: str) -> Function | None:
    """All but the last operand have the smaller format (PTX ISA, "Mixed Precision Floating-Point")."""
    function = _REAL.get(word)

    def computed(*parts: Bits) -> Bits:
        *others, last = parts
        return encode("f32", function(*(decode(source, each) for each in others), decode("f32", last)))  # type: ignore[misc]

    return computed if function and word in ("add", "sub", "fma") else None


def _integer(word: str, rest: Sequence[str]) -> Function | None:
    if not re.fullmatch(r"[subp]\w*\d+", rest[-1]) or not rest[-1][1:].isdigit():
        return None
    width, is_signed = int(rest[-1][1:]), rest[-1][0] == "s"

    def number(bits: Bits) -> int:
        value = to_int(bits, width)
        return value - (value >> width - 1 << width) if is_signed else value

    functions: Mapping[str, Callable[..., int]] = {
        "min": lambda *parts: min(map(number, parts)), "max": lambda *parts: max(map(number, parts)),
        "div": lambda a, b: math.trunc(number(a) / number(b)) if number(b) else 0,
        "rem": lambda a, b: int(math.fmod(number(a), number(b))) if number(b) else 0,
        "abs": lambda a: abs(number(a)),
        "lop3": lambda a, b, c, table: _by_table(to_int(table, 8), *(to_int(each) for each in (a, b, c))),
        "prmt": lambda a, b, c: _permuted(to_int(a) | to_int(b) << 32, to_int(c)),
    }  # fmt: skip
    if word == "mul" and "hi" in rest:
        return lambda a, b: number(a) * number(b) >> width & (1 << width) - 1
    found = functions.get(word)
    return found and (lambda *parts: found(*parts) & (1 << width) - 1)


def _by_table(table: int, *parts: int) -> int:
    return sum(
        (table >> (4 * (a >> n & 1) + 2 * (b >> n & 1) + (c >> n & 1)) & 1) << n
        for n in range(32)
        for a, b, c in [parts]
    )


def _permuted(whole: int, chosen: int) -> int:
    """Of eight bytes four, by four bits each; the highest repeats the byte's sign."""
    found = 0
    for n in range(4):
        place = chosen >> 4 * n & 15
        byte = whole >> 8 * (place & 7) & 255
        found |= (255 * (byte >> 7) if place & 8 else byte) << 8 * n
    return found


_AMD = re.compile(rf"v_(pk_)?(\w+?)_(?:legacy_)?{_TYPE}((?: \d-)*)$")
_AMD_CONVERT = re.compile(r"v_cvt_(b?f16|f32|f64|[iu](?:32|16))_(b?f16|f32|f64|[iu](?:32|16))$")
_LANES_ON = (1 << 64) - 1


def _of_amd(name: str) -> Function | None:
    if found := re.match(rf"v_cmp_(\w+?)_{_TYPE}$", name):
        return _compared(found[1], found[2], _LANES_ON)
    if found := _AMD_CONVERT.match(name):
        return _converted(found[1].replace("i", "s"), found[2].replace("i", "s"))
    if found := re.match(r"v_cvt_pk(?:rtz)?_(b?f16)_f32$", name):
        own = _converted(found[1], "f32")
        return _pair(own, is_high_first=False) if own else None
    if found := re.match(r"v_(?:ldexp|div_scale)_(f32|f64)$", name):
        kind = found[1]
        if "ldexp" in name:
            return lambda a, n: encode(kind, decode(kind, a) * 2.0 ** _signed(to_int(n)))
        return lambda a, *_: (a, 0)
    if name == "v_perm_b32":
        return lambda a, b, c: _bytes_of(to_int(b) | to_int(a) << 32, to_int(c))
    if not (found := _AMD.match(name)):
        return None
    packed, word, kind, signs = found.groups()
    places = [int(each[0]) - 1 for each in signs.split()]
    if word == "add" and places:  # both have a sign
        places = [0, 1]
    own = _real(word, kind, places)
    return _halves(own, _SIZES[kind]) if packed and own else own


def _signed(value: int) -> int:
    return max(-999, min(999, value - (value >> 31 << 32)))


def _bytes_of(whole: int, chosen: int) -> int:
    places = [chosen >> 8 * n & 255 for n in range(4)]
    return sum(
        (whole >> 8 * place & 255 if place < 8 else 255 * (place > 12)) << 8 * n
        for n, place in enumerate(places)
    )


def _of_llvm(name: str) -> Function | None:
    word, *rest = name.split()
    if (
        word in ("fptrunc", "fpext", "sitofp", "uitofp", "fptosi", "fptoui")
        and len(rest) > 2
        and rest[1] == "to"
    ):
        sign = "s" if "s" in word[:1] + word[-2:-1] else "u"
        kinds = [_LLVM_TYPES.get(each) or sign + each[1:] for each in (rest[2], rest[0])]
        return _converted(*kinds) if all(k in _SIZES or k[1:].isdigit() for k in kinds) else None
    if word in ("fadd", "fsub", "fmul", "fdiv", "fneg") and rest and rest[0] in _LLVM_TYPES:
        return _real(word, _LLVM_TYPES[rest[0]])
    if word == "fcmp" and len(rest) > 1 and rest[1] in _LLVM_TYPES:
        return _compared(rest[0], _LLVM_TYPES[rest[1]])
    if found := re.match(rf"llvm\.(?:nvvm\.|amdgcn\.)?(\w+?)(?:\.(?:approx|full|rn|ftz))*\.{_TYPE}$", word):
        return _real(found[1], found[2])
    if found := re.match(r"llvm\.amdgcn\.fdot2\.(f32|b?f16)\.(b?f16)$", word):
        return _dot(found[1], found[2])
    found = re.match(r"llvm\.nvvm\.(\w+?)(?:\.\w+)*?\.(f|d)$", word)
    names = {"fmax": "max", "fmin": "min"}
    return _real(names.get(found[1], found[1]), "f32" if found[2] == "f" else "f64") if found else None
