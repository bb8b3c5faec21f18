"""The table of values: what is equal by the rules of integer arithmetic has one number. Pure.

A value is a node: an operation and the numbers of its operands. Sums, products with constants and shifts to
the left are linear forms modulo 2^width, so another order or grouping of an address is the same value.
Comparisons have one of their forms. Integers wrap around (PTX ISA "Integer Arithmetic Instructions", LLVM
LangRef "add"; flags like `nsw` promise more and are not used). A constant is its value as a signed number.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

Key = tuple[Any, ...]
PIECES = 64
"""`piece` takes the place of a part times this, and how many parts there are."""
_THREAD = re.compile(r"(?:.*\.)?%?tid\.[xyz]$|.*workitem\.id\.[xyz]$")
"""At most 1023."""


def _ones(width: int) -> int:
    return (1 << width) - 1


class Values:
    """Numbers of nodes. Both sides of a comparison share one table."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self.keys: list[Key] = []
        self._masks: dict[int, int] = {}

    def node(self, *key: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def compute(self, name: str, width: int, operands: Sequence[int]) -> int:
        return _FUNCTIONS[name](self, width, *operands)

    def constant(self, value: int, width: int = 64) -> int:
        value &= (1 << width) - 1
        return self.node("const", value - (value >> (width - 1) << width) if width > 1 else value)

    def value_of(self, number: int) -> int | None:
        key = self.keys[number]
        return int(key[1]) if key[0] == "const" else None

    # linear forms: ("sum", width, constant, ((atom, factor), ...))

    def linear(self, width: int, number: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        key = self.keys[number]
        if key[0] == "const":
            return key[1], ()
        return (key[2], key[3]) if key[0] == "sum" and key[1] == width else (0, ((number, 1),))

    def _sum(self, width: int, constant: int, terms: Mapping[int, int]) -> int:
        ones = (1 << width) - 1
        kept = tuple(sorted((atom, factor & ones) for atom, factor in terms.items() if factor & ones))
        constant = int(self.keys[self.constant(constant, width)][1])
        if not kept:
            return self.constant(constant, width)
        if not constant and len(kept) == 1 and kept[0][1] == 1:
            return kept[0][0]
        return self.node("sum", width, constant, kept)

    def add(self, width: int, left: int, right: int, factor: int = 1) -> int:
        (a, ours), (b, theirs) = self.linear(width, left), self.linear(width, right)
        terms = dict(ours)
        for atom, times in theirs:
            terms[atom] = terms.get(atom, 0) + times * factor
        return self._sum(width, a + b * factor, terms)

    def moved(self, width: int, value: int, offset: int) -> int:
        """An address some bytes further."""
        key = self.keys[value]
        return self.add(key[1] if key[0] == "sum" else width, value, self.constant(offset))

    def scaled(self, width: int, value: int, factor: int) -> int:
        constant, terms = self.linear(width, value)
        return self._sum(width, constant * factor, {atom: times * factor for atom, times in terms})

    def mul(self, width: int, left: int, right: int) -> int:
        for one, other in ((left, right), (right, left)):
            factor = self.value_of(other)
            if factor is not None:
                return self.scaled(width, one, factor)
        return self.node("mul", width, *sorted((left, right)))

    # bits: what is known to be 0 decides whether a sum is an `or`, and whether it may wrap around

    def bits(self, number: int) -> int:
        """A mask of the bits that may be 1; negative where all beyond may be."""
        found = self._masks.get(number)
        if found is None:
            found = self._masks[number] = self._bits_of(self.keys[number])
        return found

    def _bits_of(self, key: Key) -> int:
        match key:
            case "const", value:
                return int(value)
            case (("eq" | "lt" | "not"), *_):
                return 1
            case "and", _, one, other:
                return self.bits(one) & self.bits(other)
            case (("or" | "xor"), _, one, other):
                return self.bits(one) | self.bits(other)
            case "select", _, one, other:
                return self.bits(one) | self.bits(other)
            case "zext", _, source, value:
                return self.bits(value) & _ones(source)
            case "shr", width, value, places if (count := self.value_of(places)) is not None:
                return (self.bits(value) & _ones(width)) >> count
            case "sum", width, constant, terms:
                ones = _ones(width)
                rows = [(constant & ones, 1), *((self.bits(atom) & ones, times) for atom, times in terms)]
                aligned = -min(most * times & -(most * times) or 1 << width for most, times in rows)
                if self._parts(width, self.node(*key)):
                    return functools.reduce(operator.or_, (int(most * times & ones) for most, times in rows))
                total = sum(int(most * times) for most, times in rows)
                return int(aligned & (ones if total > ones else _ones(total.bit_length())))
        return 1023 if _THREAD.match(str(key[-1])) and len(key) < 3 else -1

    def _parts(self, width: int, number: int) -> list[tuple[int, int]]:
        """Values and how far each is shifted to the left, where no two have a bit in common."""
        constant, terms = self.linear(width, number)
        rows, seen = [(self.constant(constant, width), 0)] if constant else [], constant & _ones(width)
        for atom, times in terms:
            most = self.bits(atom) * times & _ones(width)
            if times & (times - 1) or most & seen:
                return []
            seen |= most
            rows.append((atom, times.bit_length() - 1))
        return rows

    def _total(self, width: int, constant: int, terms: Iterable[tuple[int, int]]) -> int:
        total = self.constant(constant, width)
        for value, times in terms:
            total = self.add(width, total, self.scaled(width, value, times))
        return total

    def masked(self, width: int, value: int, mask: int) -> int:
        key, most, mask = self.keys[value], self.bits(value) & _ones(width), mask & _ones(width)
        if most & mask == most:
            return value
        if key[0] == "const" or not most & mask:
            return self.constant(most & mask, width)
        if key[1:2] == (width,):
            if key[0] == "sum" and (parts := self._parts(width, value)):
                found = (
                    (self.masked(width, part, self._beyond(width, part, n, mask)), 1 << n)
                    for part, n in parts
                )
                return self._total(width, 0, found)
            if key[0] == "and" and (inner := self._under(key)):
                return self.masked(width, inner[0], mask & inner[1])
            if key[0] == "zext":
                return self.extend("z", key[2] * 1000 + width, self.masked(key[2], key[3], mask))
        return self.node("and", width, *sorted((value, self.constant(most & mask, width))))

    def _beyond(self, width: int, part: int, places: int, mask: int) -> int:
        """The mask of a part before it is shifted; bits that the shift drops stay where all others do."""
        left = _ones(width - places)
        kept = self.bits(part) & left
        return -1 if kept & mask >> places == kept else mask >> places & left

    def _under(self, key: Key) -> tuple[int, int] | None:
        """What an `and` with a constant has bits of, and the constant."""
        for value, other in (key[2:], key[:1:-1]):
            known = self.value_of(other)
            if known is not None:
                return value, known
        return None

    def shift(self, name: str, width: int, value: int, places: int) -> int:
        count, known, most = self.value_of(places), self.value_of(value), self.bits(value) & _ones(width)
        if count is None or not 0 <= count < width:
            return self.node(name, width, value, places)
        if name == "shl":
            return self.scaled(width, value, 1 << count)
        if name == "sar" and known is not None:
            return self.constant(known >> count, width)
        if not count:
            return value
        if name == "sar" and most >> (width - 1):
            return self.node(name, width, value, places)
        if not most >> count or known is not None:
            return self.constant(most >> count, width)
        return self._shifted(width, value, count)

    def _shifted(self, width: int, value: int, count: int) -> int:
        """To the right, with zeros."""
        key = self.keys[value]
        if key[1:2] != (width,):
            return self.node("shr", width, value, self.constant(count))
        if key[0] == "sum" and (parts := self._parts(width, value)):
            places = [(self.masked(width, part, _ones(width - n)), n) for part, n in parts]
            down = [
                (self.shift("shr", width, part, self.constant(max(count - n, 0))), n) for part, n in places
            ]
            return self._total(width, 0, ((part, 1 << max(n - count, 0)) for part, n in down))
        if key[0] == "and" and (inner := self._under(key)):
            shifted = self.shift("shr", width, inner[0], self.constant(count))
            return self.masked(width, shifted, (inner[1] & _ones(width)) >> count)
        if key[0] == "zext":
            shifted = self.shift("shr", key[2], key[3], self.constant(count))
            return self.extend("z", key[2] * 1000 + width, shifted)
        if key[0] == "shr" and (before := self.value_of(key[3])) is not None:
            return self.shift("shr", width, key[2], self.constant(before + count))
        return self.node("shr", width, value, self.constant(count))

    def field(self, width: int, value: int, first: int, count: int) -> int:
        """Some bits of a value."""
        places, length = self.value_of(first), self.value_of(count)
        if places is None or length is None or not 0 <= places < width or not 0 <= length < 32:
            return self.node("field", width, value, first, count)
        return self.masked(width, self.shift("shr", width, value, first), _ones(length))

    def bitwise(self, name: str, width: int, left: int, right: int) -> int:
        ours, theirs = self.value_of(left), self.value_of(right)
        if ours is not None and theirs is not None:
            found = {"and": ours & theirs, "or": ours | theirs, "xor": ours ^ theirs}[name]
            return self.constant(found, width)
        if left == right:
            return self.constant(0, width) if name == "xor" else left
        for value, known in ((left, theirs), (right, ours)):
            if width == 1 and known is not None:
                return {
                    "and": value if known else self.constant(0, 1),
                    "or": self.constant(1, 1) if known else value,
                    "xor": self.invert(value) if known else value,
                }[name]
            if name == "and" and known is not None:
                return self.masked(width, value, known)
        if name != "and" and width > 1 and not self.bits(left) & self.bits(right) & _ones(width):
            return self.add(width, left, right)
        return self.node(name, width, *sorted((left, right)))

    def extend(self, sign: str, widths: int, value: int) -> int:
        """The widths are in one number: 32064 extends 32 bits to 64."""
        source, width = divmod(widths, 1000)
        known, key, ones = self.value_of(value), self.keys[value], _ones(source)
        if known is not None:
            return self.constant(known if sign == "s" and source > 1 else known & ones, width)
        if source > 1 and not self.bits(value) >> (source - 1) & 1:
            sign = "z"
        if key[0] == "sum" and key[1] == source and sign == "z":
            most = (key[2] & ones) + sum((self.bits(atom) & ones) * times for atom, times in key[3])
            if most <= ones:
                terms = [(self.extend("z", widths, atom), times) for atom, times in key[3]]
                return self._total(width, key[2] & ones, terms)
        if key[0] == "zext" and key[1] == source and sign == "z":
            return self.extend("z", key[2] * 1000 + width, key[3])
        return self.node(f"{sign}ext", width, source, value)

    def trunc(self, width: int, value: int) -> int:
        known, key = self.value_of(value), self.keys[value]
        if known is not None:
            return self.constant(known, width)
        if key[0] in ("zext", "sext") and key[2] == width:
            return int(key[3])
        if key[0] in ("zext", "sext"):
            is_wider = width > key[2]
            return (
                self.extend(key[0][0], key[2] * 1000 + width, key[3])
                if is_wider
                else self.trunc(width, key[3])
            )
        if key[0] == "sum" and key[1] > width:
            return self._total(width, key[2], [(self.trunc(width, atom), times) for atom, times in key[3]])
        return self.node("trunc", width, value)

    def widening(self, sign: str, width: int, left: int, right: int, added: int | None = None) -> int:
        widths = width // 2 * 1000 + width
        found = self.mul(width, *(self.extend(sign, widths, part) for part in (left, right)))
        return found if added is None else self.add(width, found, added)

    # truth

    def invert(self, value: int) -> int:
        known = self.value_of(value)
        if known is not None:
            return self.constant(known ^ 1, 1)
        key = self.keys[value]
        return int(key[1]) if key[0] == "not" else self.node("not", value)

    def select(self, condition: int, one: int, other: int) -> int:
        known = self.value_of(condition)
        if one == other or known is not None:
            return one if known or one == other else other
        key = self.keys[condition]
        if key[0] == "not":
            return self.node("select", key[1], other, one)
        return self.node("select", condition, one, other)

    def compare(self, kind: str, width: int, left: int, right: int) -> int:
        """`slt`, `ult`, `eq`, …: as `lt` or `eq`, and whether it is not so."""
        if kind[1:] in ("gt", "le"):
            left, right = right, left
        both = self.bits(left) | self.bits(right)
        if width > 1 and not both >> (width - 1) & 1:  # neither is negative
            kind = kind.replace("s", "u")
        if kind in ("eq", "ne"):
            found = self.node("eq", width, *sorted((left, right)))
        else:
            found = self.node("lt", f"{kind[0]}{width}", left, right)
        return self.invert(found) if kind == "ne" or kind[1:] in ("ge", "le") else found

    # vectors, structures, and 64 bits in two registers

    def pack(self, *parts: int) -> int:
        first = self.keys[parts[0]]
        whole = first[0] == "part" and all(
            self.keys[each] == ("part", first[1], place, len(parts)) for place, each in enumerate(parts)
        )
        return int(first[1]) if whole else parts[0] if len(parts) == 1 else self.node("pack", *parts)

    def part(self, value: int, place: int, count: int = 0) -> int:
        """`count` parts make up the value; 0 where that is not known."""
        key = self.keys[value]
        while key[0] == "put":
            if key[2] == place:
                return int(key[3])
            value, key = key[1], self.keys[key[1]]
        if key[0] == "pack" and count in (0, len(key) - 1) and place < len(key) - 1:
            return int(key[1 + place])
        return self.node("part", value, place, count)

    def half(self, value: int, place: int) -> int:
        """One of two registers of 32 bits."""
        known = self.value_of(value)
        return self.part(value, place, 2) if known is None else self.constant(known >> (32 * place), 32)


def _ext(sign: str) -> Callable[..., int]:
    return lambda values, widths, value: values.extend(sign, widths, value)


_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "copy": lambda _values, _width, value: value,
    "add": Values.add,
    "sub": lambda values, width, left, right: values.add(width, left, right, -1),
    "neg": lambda values, width, value: values.scaled(width, value, -1),
    "mul": Values.mul,
    "mad": lambda values, width, one, other, added: values.add(width, values.mul(width, one, other), added),
    "not": lambda values, width, value: (
        values.invert(value)
        if width == 1
        else values.add(width, values.constant(-1), values.scaled(width, value, -1))
    ),
    "zext": _ext("z"),
    "sext": _ext("s"),
    "trunc": Values.trunc,
    "select": lambda values, _, condition, one, other: values.select(condition, one, other),
    "pack": lambda values, _, *parts: values.pack(*parts),
    "part": lambda values, place, value: values.part(value, place),
    "half": lambda values, place, value: values.half(value, place),
    "piece": lambda values, code, value: values.part(value, *divmod(code, PIECES)),
    "field": Values.field,
    "mask": lambda values, _, truth, lanes: values.node("mask", truth, lanes),
    "put": lambda values, place, value, part: values.node("put", value, place, part),
    **{
        name: lambda values, width, value, places, name=name: values.shift(name, width, value, places)
        for name in ("shl", "shr", "sar")
    },
    **{
        name: lambda values, width, left, right, name=name: values.bitwise(name, width, left, right)
        for name in ("and", "or", "xor")
    },
    **{
        f"wide {sign}": lambda values, width, *parts, sign=sign: values.widening(sign, width, *parts)
        for sign in "sz"
    },
    **{
        kind: lambda values, width, left, right, kind=kind: values.compare(kind, width, left, right)
        for kind in ("eq", "ne", *(sign + order for sign in "su" for order in ("lt", "le", "gt", "ge")))
    },
}
