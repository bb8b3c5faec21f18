"""Evaluates a node of the table of values for many values of its operands at once. Pure."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from irdiff.effects import floats
from irdiff.effects.floats import Bits, to_int, to_ints
from irdiff.effects.nodes import Key, is_pack, ones, signed

ONES = ones(64)
Tried = tuple[Bits, ...]
"""A value in each sample."""


def of_samples(key: Key, parts: list[Tried]) -> Tried | None:
    try:
        return _evaluated(key, parts)
    except (TypeError, OverflowError, ValueError, IndexError, KeyError):
        return None


def literal(text: str) -> Bits | None:
    """Reads a floating-point number as each text writes it."""
    if text[:2] in ("0f", "0d") and len(text) in (10, 18):
        return int(text[2:], 16)
    if text[:2] == "0x" and len(text) == 18:  # LLVM IR: of a double
        return floats.decoded("f64", [int(text, 16)])[0]
    try:
        return float(text)
    except ValueError:
        return None


def _evaluated(key: Key, parts: Sequence[Tried]) -> Tried | None:
    if is_pack(key):
        whole = int(key[0].partition(" ")[2] or 0)
        rows = zip(*parts, strict=True)
        return tuple([to_int(row, whole) for row in rows] if whole else rows)
    match key:
        case ("bits" | "sum" | "not" | "eq" | "lt" | "and" | "or" | "xor", *_):
            return of_integers(key, parts)
        case "part", _, place, count if count:
            return tuple(_part(value, place, count) for value in parts[0])
        case ("select", _, _, _):
            rows = zip(*parts, strict=True)
            return tuple(one if to_int(truth, 64) else other for truth, one, other in rows)
        case ("mask", _, _):
            columns = (to_ints(each, 64) for each in parts)
            return tuple(ONES * bool(a and b) for a, b in zip(*columns, strict=True))
        case "trunc", width, _:
            return tuple(to_ints(parts[0], width))
        case "sext", width, source, _:
            return tuple(signed(each, source) & ones(width) for each in to_ints(parts[0], source))
        case (("mul" | "shl" | "shr" | "sar") as name, width, _, _):
            columns = (to_ints(each, width) for each in parts)
            return tuple(_arithmetic(name, width, a, b) & ones(width) for a, b in zip(*columns, strict=True))
        case (("zfield" | "sfield") as name, width, *_):
            columns = (to_ints(each, width) for each in parts)
            return tuple(_field(name, *row) for row in zip(*columns, strict=True))
        case ("put", *_):
            return None
    computation = floats.computation(str(key[0]))
    return None if computation is None or not parts else tuple(computation.function(*parts))


def of_integers(key: Key, parts: Sequence[Sequence[Bits]]) -> tuple[int, ...]:
    """Evaluates a sum, a form of bits, a comparison or an operation of bits."""
    results: Iterable[int]
    match key:
        case "bits", constant, terms:
            results = [constant] * len(parts[0])
            for ((_, places), mask), part in zip(terms, parts, strict=True):
                whole = to_ints(part, 64)
                results = (
                    [result ^ value << places & mask for result, value in zip(results, whole, strict=True)]
                    if places >= 0
                    else [
                        result ^ value >> -places & mask for result, value in zip(results, whole, strict=True)
                    ]
                )
            return tuple(results)
        case "sum", width, constant, terms:
            results = [constant] * len(parts[0])
            for (_, factor), part in zip(terms, parts, strict=True):
                whole = to_ints(part, width)
                results = [result + value * factor for result, value in zip(results, whole, strict=True)]
            mask = ones(width)
            return tuple([result & mask for result in results])
        case "not", _:
            return tuple([each & 1 ^ 1 for each in to_ints(parts[0])])
        case "eq", width, *_:
            results = map(operator.eq, *(to_ints(each, width) for each in parts))
        case "lt", kind, *_:
            width = int(kind[1:])
            sign = 1 << width - 1 if kind[0] == "s" else 0
            results = map(operator.lt, *([each ^ sign for each in to_ints(part, width)] for part in parts))
        case name, width, *_:
            results = map(_OF_BITS[name], *(to_ints(each, width) for each in parts))
    return tuple(map(int, results))


_OF_BITS = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


def _part(value: Bits, place: int, count: int) -> Bits:
    if isinstance(value, tuple):
        return value[place]
    width = count >> 8 ^ 32
    return to_int(value, 64) >> width * place & ones(width)


def _arithmetic(name: str, width: int, one: int, other: int) -> int:
    if name == "mul":
        return one * other
    places = min(other, width)
    return one << places if name == "shl" else (signed(one, width) if name == "sar" else one) >> places


def _field(name: str, value: int, first: int, count: int) -> int:
    bits = value >> (first & 63) & ones(count & 63)
    return signed(bits, count) & ONES if name == "sfield" and count else bits
