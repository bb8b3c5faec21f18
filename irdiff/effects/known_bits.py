"""The table of values, and which bits of an integer may be 1. Pure."""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Iterable
from typing import Any

from irdiff.effects.nodes import Key, ones

_SPECIAL = re.compile(
    r".*?(?:(?P<thread>\btid\.[xyz]|workitem\.id\.[xyz])|(?P<wide>n?ctaid\.x)|(?P<block>n?ctaid\.[yz])|(?P<lane>laneid))$"
)
_MOST = {"thread": 1023, "wide": (1 << 31) - 1, "block": (1 << 16) - 1, "lane": 31}
"""Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
_THREADS = frozenset({("text", "%tid.x"), ("workitem.id.x",)})
_SHARED = frozenset({("text", "global_smem"), ("text", "@global_smem")})
_MOST_OF_BLOCK = 227 << 10
"""Bytes of shared memory (source: likewise)."""
MOST_SHARED = (1 << 18) - 1
"""Above each place in it: what Triton uses begins in the first 29 KB, since a kernel has nothing else."""
_SHARED_BITS = MOST_SHARED | 0xF << 24
"""Bits of an address there: its place, then its block's number in a cluster (as CUTLASS masks it off)."""


Range = tuple[int, int]


def _bits_of_sum(width: int, most: Iterable[int]) -> int:
    """The bits that may be 1 in a sum of multiples of the lowest bit of each, up to each.

    Terms whose sum stays below the lowest bit of all others have bits of their own.
    """
    bits, total, lowest = 0, 0, 1 << width
    for each in sorted(filter(None, most), key=lambda each: each & -each):
        if total.bit_length() < (each & -each).bit_length():
            bits, total, lowest = bits | -lowest & ones(total.bit_length()), 0, 1 << width
        total, lowest = total + each, min(lowest, each & -each)
    return bits | -lowest & ones(min(total.bit_length(), width))


def _fits_signed(least: int, most: int) -> bool:
    return least >= -(1 << 31) and most < 1 << 31


def _bits_up_to(range_: Range | None) -> int:
    return ones(range_[1].bit_length()) if range_ and range_[0] >= 0 else -1


class NodeTable:
    """Numbers of nodes. Both sides of a comparison share one table."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self.keys: list[Key] = []
        self._masks: dict[int, int] = {}
        self.uniform_masks: set[int] = set()
        """Joins that are zero or all ones."""
        self.threads = 0
        """How many a block has in one row; 0 where that is not known."""

    def node(self, *key: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def constant(self, value: int, width: int = 64) -> int:
        value &= (1 << width) - 1
        return self.node("const", value - (value >> (width - 1) << width) if width > 1 else value)

    def value_of(self, number: int) -> int | None:
        key = self.keys[number]
        return int(key[1]) if key[0] == "const" else None

    def uniform_mask(self, value: int) -> tuple[int, int, int] | None:
        """A value that is all ones or zero, as a choice: the condition and the two constants."""
        if value in self.uniform_masks:
            is_zero = self.node("eq", 32, *sorted((value, self.constant(0))))
            return is_zero, self.constant(0), self.constant(-1)
        key = self.keys[value]
        is_mask = key[0] == "select" and {self.value_of(key[2]), self.value_of(key[3])} == {0, -1}
        return (key[1], key[2], key[3]) if is_mask else None

    def bits(self, number: int) -> int:
        """A mask of the bits that may be 1; negative where all beyond may be."""
        mask = self._masks.get(number)
        if mask is None:
            mask = self._masks[number] = self._bits_of(self.keys[number])
        return mask

    def zeros(self, number: int) -> int:
        """How many of the lowest bits are always 0."""
        most = self.bits(number)
        return (most & -most).bit_length() - 1 if most else 64

    def _bits_of(self, key: Key) -> int:
        match key:
            case "const", value:
                return int(value)
            case "join", _, class_:
                return -(1 << int(class_.zeros)) & _bits_up_to(class_.range)
            case "sext", _, source, value:
                return self.bits(value) | -(1 << int(source) - 1)
            case (("eq" | "lt" | "not"), *_):
                return 1
            case "and", _, one, other:
                return self.bits(one) & self.bits(other)
            case "or", _, one, other:
                return self.bits(one) | self.bits(other)
            case "select", _, one, other:
                return (self.bits(one) | self.bits(other)) & _bits_up_to(self._range_of_select(key))
            case "v_readfirstlane_b32", value, *_:
                return self.bits(value)
            case "bits", constant, terms:
                return int(functools.reduce(operator.or_, (mask for _, mask in terms), constant))
            case "mul", width, one, other:
                return self._bits_of_product(width, one, other)
            case "sum", width, constant, terms:
                all_ones = ones(width)
                most = [constant & all_ones, *((self.bits(atom) & all_ones) * times for atom, times in terms)]
                bits = _bits_of_sum(width, most) & _bits_up_to(self._range_of_sum(key))
                return bits & _SHARED_BITS if self.is_shared(key) else bits
        return self._bits_of_register(key)

    def range_of(self, number: int) -> Range | None:
        """The least and the greatest value, as signed numbers of 32 bits; None where that is not known."""
        key = self.keys[number]
        match key:
            case "const", value:
                return (value, value) if _fits_signed(value, value) else None
            case "join", _, class_ if class_.range:
                return class_.range  # type: ignore[no-any-return]
            case ("sum", *_) if range_ := self._range_of_sum(key):
                return range_
            case ("select", *_) if range_ := self._range_of_select(key):
                return range_
        bits = self.bits(number)
        return (0, bits) if _fits_signed(0, bits) and bits >= 0 else None

    def _range_of_sum(self, key: Key) -> Range | None:
        _, width, least, terms = key
        most = least
        for atom, times in terms if width == 32 else ():
            range_ = self.range_of(atom)
            if range_ is None:
                return None
            ends = [times * each for each in range_]
            least, most = least + min(ends), most + max(ends)
        return (least, most) if width == 32 and _fits_signed(least, most) else None

    def _range_of_select(self, key: Key) -> Range | None:
        """Limited by what the condition says of the value that is chosen."""
        _, condition, one, other = key
        ranges = [self._limited(condition, each, is_true=each == one) for each in (one, other)]
        if None in ranges:
            return None
        least, most = zip(*filter(None, ranges), strict=True)
        return min(least), max(most)

    def _limited(self, condition: int, value: int, *, is_true: bool) -> Range | None:
        range_ = self.range_of(value)
        if range_ is None:
            return None
        least, most = range_
        match self.keys[condition]:
            case "lt", ("s32" | "u32") as kind, left, right if kind == "s32" or least >= 0:
                bound = self.range_of(right if left == value else left)
                if value not in (left, right) or bound is None or (kind == "u32" and bound[0] < 0):
                    return range_
                if left == value:  # value < bound, or not
                    least, most = (
                        (least, min(most, bound[1] - 1)) if is_true else (max(least, bound[0]), most)
                    )
                else:
                    least, most = (
                        (max(least, bound[0] + 1), most) if is_true else (least, min(most, bound[1]))
                    )
        return (least, most) if least <= most else range_

    def _bits_of_product(self, width: int, left: int, right: int) -> int:
        """A multiple of the product of both lowest bits, and at most the product of both values."""
        one, other = self.bits(left), self.bits(right)
        lowest = (one & -one) * (other & -other)
        if self.fits(width, left, right):
            return -lowest & ones((one * other).bit_length())
        return -lowest & ones(width) if lowest > 1 else -1

    def fits(self, width: int, left: int, right: int) -> bool:
        """True if a product never wraps around."""
        one, other = self.bits(left), self.bits(right)
        return one >= 0 and other >= 0 and not one * other >> width

    def _bits_of_register(self, key: Key) -> int:
        if key in _SHARED:
            return _SHARED_BITS
        if key[0] == "text" and "_param_" in str(key[1]):
            return ones(32)  # an address in the space of parameters
        special = _SPECIAL.match(str(key[-1])) if len(key) < 3 else None
        if key in _THREADS and self.threads:
            return (1 << (self.threads - 1).bit_length()) - 1
        return _MOST[str(special.lastgroup)] if special else -1

    def is_shared(self, key: Key) -> bool:
        """True for an address in shared memory: where that begins, plus at most what a block has of it."""
        if key[:2] != ("sum", 32):
            return key in _SHARED
        _, _, constant, terms = key
        added = [(times, self.bits(atom)) for atom, times in terms if self.keys[atom] not in _SHARED]
        is_begun = [times for atom, times in terms if self.keys[atom] in _SHARED] == [1]
        is_limited = constant >= 0 and all(times > 0 and bits >= 0 for times, bits in added)
        return is_begun and is_limited and constant + sum(map(math.prod, added)) <= _MOST_OF_BLOCK
