"""The table of values: what is equal by the rules of arithmetic and logic has one number. Pure.

A value is a node: an operation and the numbers of its operands. Comparisons have one of their forms. A
constant is its value as a signed number.
"""

from __future__ import annotations

import re
from typing import Any

from irdiff.effects.evaluation import of_integers
from irdiff.effects.integers import Integers
from irdiff.effects.nodes import Key, is_pack, ones, signed
from irdiff.ir import program
from irdiff.ir.program import Operation

_PRODUCT = re.compile(r"mul\.(?:r[nzmp]\.)?(?:ftz\.)?f32$")
_ONE = "text", "0f3F800000"
_LITERAL = re.compile(r"0f([0-9A-F]{8})$")
_TRUTHS = frozenset({"eq", "lt", "not", "and", "or", "xor"})


class Values(Integers):
    """Both sides of a comparison share one table."""

    def __init__(self) -> None:
        super().__init__()
        self.made_by: dict[int, Operation] = {}
        """By value, the first operation that computes it."""
        self.results: dict[Key, tuple[int, ...]] = {}
        """By operation and all that it reads, the values that it gives."""
        self.event_parts: dict[Key, Any] = {}
        self.extents: dict[int, Any] = {}
        """By event, the bytes of shared memory that all threads touch."""
        self._of_threads: dict[int, tuple[int, ...] | None] = {}
        self._true_in: dict[tuple[int, ...], int] = {}

    def take(self, base: int, head: int) -> None:
        """Takes what gave one value for another from now on, where both sides are numbered anew."""
        self._numbers[self.keys[head]] = base
        self.results.clear()

    def times_one(self, name: str, *operands: int) -> int | None:
        """Returns a literal that is multiplied by 1 if it is normal: others may be NaN, or flushed to 0."""
        if not _PRODUCT.match(name):
            return None
        for one, other in (operands, operands[::-1]):
            literal = _LITERAL.match(str(self.keys[other][-1]))
            if self.keys[one] == _ONE and literal and 0 < int(literal[1], 16) >> 23 & 255 < 255:
                return other
        return None

    def joined(self, name: str, value: int) -> tuple[int, ...]:
        """Flattens a value built by an associative operation into its operands."""
        key = self.keys[value]
        return key[1:] if key[0] == name else (value,)

    def normal(self, number: int) -> int:
        """Returns for a predicate the first value that is true in the same threads; another value itself."""
        return self._truth(number) if self.keys[number][0] in _TRUTHS else number

    def bitwise(self, name: str, width: int, left: int, right: int) -> int:
        ours, theirs = self.value_of(left), self.value_of(right)
        if ours is not None and theirs is not None:
            result = {"and": ours & theirs, "or": ours | theirs, "xor": ours ^ theirs}[name]
            return self.constant(result, width)
        if left == right:
            return self.constant(0, width) if name == "xor" else left
        for value, other in ((left, right), (right, left)):
            if mask := self.uniform_mask(value):
                condition, *masks = mask
                return self.select(condition, *(self.bitwise(name, width, each, other) for each in masks))
        all_ones = ones(width)
        for value, constant in ((left, theirs), (right, ours)):
            if constant is None:
                continue
            if width == 1:
                return {
                    "and": value if constant else self.constant(0, 1),
                    "or": self.constant(1, 1) if constant else value,
                    "xor": self.invert(value) if constant else value,
                }[name]
            if name == "and":
                return self.masked(width, value, constant & all_ones)
            if name == "or":
                return self._xor(
                    width, self.masked(width, value, ~constant & all_ones), self.constant(constant, width)
                )
            if constant & all_ones == all_ones:
                return self.invert_all(width, value)
        is_apart = name == "or" and not self.bits(left) & self.bits(right) & all_ones
        if width > 1 and (name == "xor" or is_apart):
            return self._xor(width, left, right)
        return self.node(name, width, *sorted((left, right)))

    # truth

    def invert(self, value: int) -> int:
        constant = self.value_of(value)
        if constant is not None:
            return self.constant(constant ^ 1, 1)
        key = self.keys[value]
        return int(key[1]) if key[0] == "not" else self._truth(self.node("not", value))

    def _truth(self, value: int) -> int:
        """The first value that is true in the same threads, if nothing but a thread's number decides."""
        truths = self.in_threads(value)
        if truths is None or not {*truths} <= {0, 1}:
            return value
        return self._true_in.setdefault(truths, value) if len({*truths}) > 1 else self.constant(truths[0], 1)

    def in_threads(self, number: int, depth: int = 0) -> tuple[int, ...] | None:
        """The value in each thread of a block; None where it is not of the thread's number alone."""
        if number not in self._of_threads:
            self._of_threads[number] = self._evaluated(self.keys[number], depth) if depth < 16 else None
        return self._of_threads[number]

    def _evaluated(self, key: Key, depth: int) -> tuple[int, ...] | None:
        match key:
            case "const", value:
                return (value,) * self.threads or None
            case "text", "%tid.x":
                return tuple(range(self.threads)) or None
            case ("bits", _, terms) | ("sum", _, _, terms):
                atoms = [where[0] if key[0] == "bits" else where for where, _ in terms]
            case (("eq" | "lt" | "and" | "or" | "xor"), _, _, _):
                atoms = list(key[2:])
            case "not", value:
                atoms = [value]
            case _:
                return None
        truths = [self.in_threads(atom, depth + 1) for atom in atoms]
        of_operands = [each for each in truths if each is not None]
        return of_integers(key, of_operands) if len(of_operands) == len(truths) else None

    def select(self, condition: int, one: int, other: int) -> int:
        truth = self.value_of(condition)
        if one == other or truth is not None:
            return one if truth or one == other else other
        key = self.keys[condition]
        if key[0] == "not":
            return self.select(key[1], other, one)
        if mask := self.uniform_mask(condition):
            ours, theirs = (one if self.value_of(each) else other for each in mask[1:])
            return self.select(mask[0], ours, theirs)
        one, other = (self._chosen(condition, each, n) for n, each in enumerate((one, other)))
        if one == other:
            return one
        for value, default, is_true in ((one, other, True), (other, one, False)):
            inner = self.keys[value]
            if inner[0] == "select" and default in inner[2:]:
                return self._all_true(condition, is_true, value, default)
        return self.node("select", condition, one, other)

    def _all_true(self, condition: int, is_true: bool, value: int, default: int) -> int:
        """A value where several conditions are true, and else another: in whichever order they are asked."""
        truths = {condition: is_true}
        while self.keys[value][0] == "select" and default in self.keys[value][2:]:
            _, condition, one, other = self.keys[value]
            is_true = other == default
            if truths.setdefault(condition, is_true) is not is_true:
                return default
            value = one if is_true else other
        for condition in sorted(truths, reverse=True):
            value = self.node(
                "select", condition, *((value, default) if truths[condition] else (default, value))
            )
        return value

    def _chosen(self, condition: int, value: int, place: int) -> int:
        """Returns what a value is where a condition is true (place 0) or not (1)."""
        while self.keys[value][:2] == ("select", condition):
            value = int(self.keys[value][2 + place])
        return value

    def compare(self, kind: str, width: int, left: int, right: int) -> int:
        """`slt`, `ult`, `eq`, …: as `lt` or `eq`, and whether it is not so."""
        if kind[1:] in ("gt", "le"):
            left, right = right, left
        both = self.bits(left) | self.bits(right)
        if width > 1 and not both >> (width - 1) & 1:  # neither is negative
            kind = kind.replace("s", "u")
        if kind in ("eq", "ne"):
            truth = self._equal(width, *sorted((left, right)))
        else:
            truth = self._less(kind[0], width, left, right)
        return self.invert(truth) if kind == "ne" or kind[1:] in ("ge", "le") else truth

    def _less(self, sign: str, width: int, left: int, right: int) -> int:
        """A constant stands behind a value: `c < x` is not `x < c + 1`. What is true of one value is `eq`."""
        node = "lt", f"{sign}{width}"
        one, other = (self._bound(sign, width, each) for each in (left, right))
        if one is not None and other is not None:
            return self.constant(one < other, 1)
        if other is not None:
            value, bound, is_below = left, other, True
        elif one is not None:
            value, bound, is_below = right, one + 1, False
        else:
            return self.node(*node, left, right)
        least = -1 << width - 1 if sign == "s" else 0
        greatest = least + ones(width)
        if bound in (least, greatest + 1):  # below the least is nothing, and above the greatest
            return self.constant(0, 1)
        if bound == least + 1:
            truth = self._equal(width, *sorted((value, self.constant(least, width))))
        elif bound == greatest:
            truth = self.invert(self._equal(width, *sorted((value, self.constant(greatest, width)))))
        else:
            truth = self.node(*node, value, self.constant(bound, width))
        return truth if is_below else self.invert(truth)

    def _bound(self, sign: str, width: int, number: int) -> int | None:
        """A constant as a comparison of this sign and width reads it; None for a variable or a truth."""
        constant = self.value_of(number)
        if constant is None or width < 2:
            return None
        return signed(constant & ones(width), width) if sign == "s" else constant & ones(width)

    def chosen_of(self, width: int, condition: int, one: int, other: int) -> int:
        """The lesser or the greater of two values has one form, however they are compared."""
        key = self.keys[condition]
        if key[0] == "not":
            return self.chosen_of(width, key[1], other, one)
        if key[0] == "lt" and key[1][1:] == str(width) and key[2] in (one, other):
            _, kind, left, right = key
            bound, second = self.value_of(right), other if one == left else one
            if bound is not None and self.value_of(second) == bound - 1:  # at the bound both are it
                condition = self.compare(f"{kind[0]}lt", width, left, second)
            elif bound is None and second == right and right < left:
                condition, one, other = self.node("lt", kind, right, left), other, one
        return self.select(condition, one, other)

    def extreme(self, kind: str, width: int, one: int, other: int) -> int:
        """kind: `smin`, `umin`, `smax` or `umax`."""
        truth = self.compare(f"{kind[0]}lt", width, one, other)
        return self.chosen_of(width, truth, *((one, other) if kind[1:] == "min" else (other, one)))

    def _equal(self, width: int, left: int, right: int) -> int:
        for value, other in ((left, right), (right, left)):
            key, constant = self.keys[value], self.value_of(other)
            if value in self.uniform_masks and constant == 0:
                return self.node("eq", 32, left, right)
            if key[0] == "select" and constant is not None and self.bits(key[1]) == 1:
                match [self._is_constant(width, each, constant) for each in key[2:]]:
                    case True, False:
                        return int(key[1])
                    case False, True:
                        return self.invert(key[1])
        return self.node("eq", width, left, right)

    def _is_constant(self, width: int, value: int, constant: int) -> bool | None:
        """True if a value is a certain constant; None if nobody knows. A wave that runs has a lane."""
        if self.keys[value] == ("all lanes",) and not constant:
            return False
        own = self.value_of(value)
        return None if own is None else not (own ^ constant) & ones(width)

    # vectors, structures, and 64 bits in two registers

    def pack(self, *parts: int, width: int = 0) -> int:
        """width: of all parts, where it is not that of as many registers; a pair of integers of 64 bits, of
        which one is known, is a sum.
        """
        first, count = self.keys[parts[0]], len(parts)
        code = program.parts(count, width // count) if width else count
        if width != 64 and len({*parts}) == 1 and len(parts) == 2 and self.uniform_mask(parts[0]):
            return parts[0]
        if width == 64 and len(parts) == 2 and any(self.keys[each][0] == "const" for each in parts):
            low, high = (self.extend("z", 32_064, each) for each in parts)
            return self.add(64, low, self.scaled(64, high, 1 << 32))
        name = f"pack {width}" if width not in (0, 32 * count) else "pack"
        whole = first[0] == "part" and all(
            self.keys[each] == ("part", first[1], place, code) for place, each in enumerate(parts)
        )
        return int(first[1]) if whole else parts[0] if count == 1 else self.node(name, *parts)

    def part(self, value: int, place: int, count: int = 0) -> int:
        """count: as of `parts`; 0 where that is not known."""
        key = self.keys[value]
        while key[0] == "put":
            if key[2] == place:
                return int(key[3])
            value, key = key[1], self.keys[key[1]]
        if is_pack(key) and count & 255 in (0, len(key) - 1) and place < len(key) - 1:
            return int(key[1 + place])
        if key[0] == "bits" and count:
            width = count >> 8 ^ 32
            constant, terms = self.form(width * (place + 1), value)
            return self._shifted(width, constant, terms, width * place)
        return self.node("part", value, place, count)

    def half(self, value: int, place: int) -> int:
        """One of two registers of 32 bits."""
        constant = self.value_of(value)
        if self.uniform_mask(value):
            return value
        return self.part(value, place, 2) if constant is None else self.constant(constant >> (32 * place), 32)
