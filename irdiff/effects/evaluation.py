"""What a node of the table of values gives for samples of its operands. Pure."""

from __future__ import annotations

from irdiff.effects import floats
from irdiff.effects.floats import Bits, to_int
from irdiff.effects.nodes import Key, is_pack, signed

ONES = (1 << 64) - 1
Tried = tuple[Bits, ...]
"""A value in each sample."""


def of_samples(key: Key, parts: list[Tried]) -> Tried | None:
    try:
        return _evaluated(key, parts)
    except (TypeError, OverflowError, ValueError, IndexError, KeyError):
        return None


def literal(text: str) -> Bits | None:
    """Of a floating-point number as each text writes it."""
    if text[:2] in ("0f", "0d") and len(text) in (10, 18):
        return int(text[2:], 16)
    if text[:2] == "0x" and len(text) == 18:  # LLVM IR: of a double
        return floats.decode("f64", int(text, 16))
    try:
        return float(text)
    except ValueError:
        return None


def _evaluated(key: Key, parts: list[Tried]) -> Tried | None:  # noqa: PLR0912 - a case a kind of node
    rows = zip(*parts, strict=True)
    match key:
        case "bits", constant, terms:
            shifts = [(places, mask) for (_, places), mask in terms]
            return tuple(_xored(constant, shifts, row) for row in rows)
        case "sum", width, constant, terms:
            times = [factor for _, factor in terms]
            return tuple(_total(width, constant, times, row) for row in rows)
        case "not", _:
            return tuple(to_int(value) & 1 ^ 1 for (value,) in rows)
        case "part", _, place, count if count:
            return tuple(_part(value, place, count) for (value,) in rows)
        case _ if is_pack(key):
            whole = int(key[0].partition(" ")[2] or 0)
            return tuple(to_int(tuple(row), whole) if whole else tuple(row) for row in rows)
        case ("select", _, _, _):
            return tuple(one if to_int(truth, 64) else other for truth, one, other in rows)
        case ("mask", _, _):
            return tuple(ONES * bool(to_int(a, 64) and to_int(b, 64)) for a, b in rows)
        case "trunc", width, _:
            return tuple(to_int(value, width) for (value,) in rows)
        case "sext", width, source, _:
            return tuple(signed(to_int(value, source), source) & (1 << width) - 1 for (value,) in rows)
        case (("mul" | "shl" | "shr" | "sar" | "and" | "or" | "xor"), width, _, _):
            return tuple(_arithmetic(key[0], width, to_int(a, width), to_int(b, width)) for a, b in rows)
        case "eq", width, _, _:
            return tuple(int(to_int(a, width) == to_int(b, width)) for a, b in rows)
        case "lt", kind, _, _:
            width = int(kind[1:])
            values = ([to_int(each, width) for each in row] for row in rows)
            if kind[0] == "s":
                values = ([signed(each, width) for each in row] for row in values)
            return tuple(int(a < b) for a, b in values)
        case (("zfield" | "sfield"), width, *_):
            return tuple(_field(key[0], *(to_int(each, width) for each in row)) for row in rows)
        case ("put", *_):
            return None
    computation = floats.computation(str(key[0]))
    return None if computation is None or not parts else tuple(computation.function(*row) for row in rows)


def _xored(constant: int, shifts: list[tuple[int, int]], row: tuple[Bits, ...]) -> int:
    for value, (places, mask) in zip(row, shifts, strict=True):
        whole = to_int(value, 64)
        constant ^= (whole << places if places >= 0 else whole >> -places) & mask
    return constant


def _total(width: int, constant: int, times: list[int], row: tuple[Bits, ...]) -> int:
    total = sum(to_int(value, width) * factor for value, factor in zip(row, times, strict=True))
    return (constant + total) & (1 << width) - 1


def _part(value: Bits, place: int, count: int) -> Bits:
    if isinstance(value, tuple):
        return value[place]
    width = count >> 8 ^ 32
    return to_int(value, 64) >> width * place & (1 << width) - 1


def _arithmetic(name: str, width: int, one: int, other: int) -> int:
    match name:
        case "mul":
            result = one * other
        case "shl":
            result = one << min(other, width)
        case "shr":
            result = one >> min(other, width)
        case "sar":
            result = signed(one, width) >> min(other, width)
        case "and":
            result = one & other
        case "or":
            result = one | other
        case _:
            result = one ^ other
    return result & (1 << width) - 1


def _field(name: str, value: int, first: int, count: int) -> int:
    bits = value >> (first & 63) & (1 << (count & 63)) - 1
    return signed(bits, count) & ONES if name == "sfield" and count else bits
