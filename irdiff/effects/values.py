"""The table of values: what is equal by the rules of integer arithmetic has one number. Pure.

A value is a node: an operation and the numbers of its operands. Sums, products with constants and shifts to
the left are linear forms modulo 2^width, so another order or grouping of an address is the same value.
Comparisons have one of their forms. Integers wrap around (PTX ISA "Integer Arithmetic Instructions", LLVM
LangRef "add"; flags like `nsw` promise more and are not used). A constant is its value as a signed number.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from irdiff.effects.nodes import Key, evaluate, ones
from irdiff.ir import program
from irdiff.ir.program import Operation

_SPECIAL = re.compile(
    r".*?(?:(?P<thread>\btid\.[xyz]|workitem\.id\.[xyz])|(?P<wide>n?ctaid\.x)|(?P<block>n?ctaid\.[yz])|(?P<lane>laneid))$"
)
_MOST = {"thread": 1023, "wide": (1 << 31) - 1, "block": (1 << 16) - 1, "lane": 31}
"""Source: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
_THREADS = frozenset({("text", "%tid.x"), ("workitem.id.x",)})
_SHARED = frozenset({("text", "global_smem"), ("text", "@global_smem")})
_MOST_SHARED = (1 << 18) - 1
"""Above each place in shared memory: the most that a block has is 227 KB (source: likewise)."""
_SHARED_BITS = _MOST_SHARED | 0xF << 24
"""Of an address there: above the place, the number of its block in a cluster (as CUTLASS masks it off)."""
_PRODUCT = re.compile(r"mul\.(?:r[nzmp]\.)?(?:ftz\.)?f32$")
_ONE = "text", "0f3F800000"
_LITERAL = re.compile(r"0f([0-9A-F]{8})$")
_TRUTHS = frozenset({"eq", "lt", "not", "and", "or", "xor"})
_MAX_PRODUCTS = 16
"""A product of sums with more terms stays one."""


def _places(factor: int) -> Iterator[int]:
    """Of the bits that are 1, the lowest first."""
    while factor:
        yield (factor & -factor).bit_length() - 1
        factor &= factor - 1


def _bits_of_sum(width: int, most: Iterable[int]) -> int:
    """The bits that may be 1 in a sum of multiples of the lowest bit of each, up to each.

    Terms whose sum stays below the lowest bit of all others have bits of their own.
    """
    found, total, lowest = 0, 0, 1 << width
    for each in sorted(filter(None, most), key=lambda each: each & -each):
        if total.bit_length() < (each & -each).bit_length():
            found, total, lowest = found | -lowest & ones(total.bit_length()), 0, 1 << width
        total, lowest = total + each, min(lowest, each & -each)
    return found | -lowest & ones(min(total.bit_length(), width))


class Values:
    """Numbers of nodes. Both sides of a comparison share one table."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self.keys: list[Key] = []
        self._masks: dict[int, int] = {}
        self.made_by: dict[int, Operation] = {}
        """What computes a value, the first that does."""
        self.known: dict[Key, tuple[int, ...]] = {}
        """What an operation gives, by itself and all that it reads."""
        self.known_events: dict[Key, Any] = {}
        self.extents: dict[int, Any] = {}
        """By event, the bytes of shared memory that all threads touch."""
        self._linear: dict[tuple[int, int], tuple[int, tuple[tuple[int, int], ...]]] = {}
        self.threads = 0
        """How many a block has in one row; 0 where that is not known."""
        self.uniform_masks: set[int] = set()
        """Joins that are zero or all ones."""
        self._of_threads: dict[int, tuple[int, ...] | None] = {}
        self._true_in: dict[tuple[int, ...], int] = {}

    def take(self, base: int, head: int) -> None:
        """Takes what gave one value for another from now on, where both sides are numbered anew."""
        self._numbers[self.keys[head]] = base
        self.known.clear()

    def times_one(self, name: str, *operands: int) -> int | None:
        """What a literal gives that is multiplied by 1: itself. Other floats may be NaN, or flushed to 0."""
        if not _PRODUCT.match(name):
            return None
        for one, other in (operands, operands[::-1]):
            literal = _LITERAL.match(str(self.keys[other][-1]))
            if self.keys[one] == _ONE and literal and 0 < int(literal[1], 16) >> 23 & 255 < 255:
                return other
        return None

    def joined(self, name: str, value: int) -> tuple[int, ...]:
        """What a value is made of by an operation that associates; itself, if it is of no such."""
        key = self.keys[value]
        return key[1:] if key[0] == name else (value,)

    def node(self, *key: Any) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number

    def normal(self, number: int) -> int:
        """Of a predicate the first value that is true in the same threads; another value itself."""
        return self._truth(number) if self.keys[number][0] in _TRUTHS else number

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
        if key[0] == "sum" and key[1] == width:
            return key[2], key[3]
        return self._split(width, number) if key[0] == "bits" else (0, ((number, 1),))

    def _split(self, width: int, number: int) -> tuple[int, tuple[tuple[int, int], ...]]:
        """A form of bits as a sum: bits that one term has alone, and those where terms meet as one atom."""
        found = self._linear.get((width, number))
        if found is not None:
            return found
        first, terms = self.form(width, number)
        seen, meeting = first, 0
        for mask in terms.values():
            meeting |= seen & mask
            seen |= mask
        constant, rows = first & ~meeting, dict[int, int]()
        for (atom, places), mask in terms.items():
            own = mask & ~meeting
            if not own:
                continue
            if places >= 0 and own == self.bits(atom) << places & ones(width):
                offset, below = self.linear(width, atom)
                constant += offset << places
                for value, factor in below:
                    rows[value] = rows.get(value, 0) + (factor << places)
            else:
                factor = own & -own
                where = atom, places - factor.bit_length() + 1
                value = self.xored(width, 0, {where: own // factor})
                rows[value] = rows.get(value, 0) + factor
        if meeting:
            factor = meeting & -meeting
            down = factor.bit_length() - 1
            met = {(a, n - down): m // factor for (a, n), mask in terms.items() if (m := mask & meeting)}
            value = self.xored(width, (first & meeting) // factor, met)
            rows[value] = rows.get(value, 0) + factor
        found = self._linear[width, number] = constant, tuple(sorted(rows.items()))
        return found

    def _sum(self, width: int, constant: int, terms: Mapping[int, int]) -> int:
        all_ones = ones(width)
        constant &= all_ones
        kept = {atom: factor & all_ones for atom, factor in terms.items() if factor & all_ones}
        if not kept:
            return self.constant(constant, width)
        if not constant and len(kept) == 1 and 1 in kept.values():
            return next(iter(kept))
        known = {atom: factor for atom, factor in kept.items() if self.bits(atom) >= 0}
        if len(kept) - len(known) < 2:  # the highest bit of two of which nothing is known may be 1
            whole = self._joined(width, constant, kept)
            if whole is not None:
                return whole
        if len(known) > 1:
            apart = self._apart(width, known)
            joined = self._joined(width, 0, apart) if len(apart) > 1 else None
            if joined is not None:
                kept = {atom: factor for atom, factor in kept.items() if atom not in apart}
                for atom, factor in self.linear(width, joined)[1]:
                    kept[atom] = kept.get(atom, 0) + factor & all_ones
        constant = int(self.keys[self.constant(constant, width)][1])
        return self.node("sum", width, constant, tuple(sorted(kept.items())))

    def _joined(self, width: int, constant: int, terms: Mapping[int, int]) -> int | None:
        """A sum as a form of bits; None where terms may have bits in common, so bits are carried."""
        seen, all_ones, shifted = constant, ones(width), list[tuple[int, int]]()
        for atom, factor in terms.items():
            most = self.bits(atom) & all_ones
            for places in _places(factor):
                mask = most << places & all_ones
                if mask & seen:
                    return None
                seen |= mask
                shifted.append((atom, places))
        found = dict[tuple[int, int], int]()
        for atom, places in shifted:
            flipped, form = self.form(width, atom)
            constant ^= flipped << places & all_ones
            for (each, n), own in form.items():
                where = each, n + places
                found[where] = found.get(where, 0) ^ own << places & all_ones
        return self.xored(width, constant, found)

    def _apart(self, width: int, terms: Mapping[int, int]) -> dict[int, int]:
        """The terms that have no bit in common with another."""
        seen, twice, masks = 0, 0, dict[int, int]()
        for atom, factor in terms.items():
            most, mask = self.bits(atom), 0
            for places in _places(factor):
                part = most << places & ones(width)
                twice |= mask & part
                mask |= part
            masks[atom], twice, seen = mask, twice | seen & mask, seen | mask
        return {atom: factor for atom, factor in terms.items() if not masks[atom] & twice}

    def add(self, width: int, left: int, right: int, factor: int = 1) -> int:
        (a, ours), (b, theirs) = self.linear(width, left), self.linear(width, right)
        terms = dict(ours)
        for atom, times in theirs:
            terms[atom] = terms.get(atom, 0) + times * factor
        return self._sum(width, a + b * factor, terms)

    def _total(self, width: int, constant: int, terms: Iterable[tuple[int, int]]) -> int:
        total = self.constant(constant, width)
        for value, factor in terms:
            total = self.add(width, total, value, factor)
        return total

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
        (a, ours), (b, theirs) = self.linear(width, left), self.linear(width, right)
        if (not a and not b and len(ours) == len(theirs) == 1) or len(ours) * len(theirs) > _MAX_PRODUCTS:
            return self._product(width, left, right)
        total = self.add(width, self.scaled(width, right, a), self.scaled(width, left, b))
        total = self.add(width, total, self.constant(a * b, width), -1)
        for (one, times), (other, factor) in itertools.product(ours, theirs):
            product = self._product(width, one, other)
            total = self.add(width, total, self.scaled(width, product, times * factor))
        return total

    def _product(self, width: int, left: int, right: int) -> int:
        """Of 32 bits where it has no more."""
        own_width = min(width, 32) if self._fits(32, left, right) else width
        return self.node("mul", own_width, *sorted((left, right)))

    # forms of bits: ("bits", constant, (((atom, places), mask), ...)), the `xor` of the constant and of each
    # atom shifted to the left, under its mask

    def bits(self, number: int) -> int:
        """A mask of the bits that may be 1; negative where all beyond may be."""
        found = self._masks.get(number)
        if found is None:
            found = self._masks[number] = self._bits_of(self.keys[number])
        return found

    def zeros(self, number: int) -> int:
        """As many of the lowest bits are 0."""
        most = self.bits(number)
        return (most & -most).bit_length() - 1 if most else 64

    def _bits_of(self, key: Key) -> int:
        match key:
            case "const", value:
                return int(value)
            case "join", _, class_:
                return -(1 << int(class_.zeros))
            case "sext", _, source, value:
                return self.bits(value) | -(1 << int(source) - 1)
            case (("eq" | "lt" | "not"), *_):
                return 1
            case "and", _, one, other:
                return self.bits(one) & self.bits(other)
            case (("or" | "select"), _, one, other):
                return self.bits(one) | self.bits(other)
            case "v_readfirstlane_b32", value, *_:
                return self.bits(value)
            case "bits", constant, terms:
                return int(functools.reduce(operator.or_, (mask for _, mask in terms), constant))
            case "mul", width, one, other:
                return self._bits_of_product(width, one, other)
            case "sum", width, constant, terms:
                all_ones = ones(width)
                most = [constant & all_ones, *((self.bits(atom) & all_ones) * times for atom, times in terms)]
                found = _bits_of_sum(width, most)
                return found & _SHARED_BITS if self._is_shared(key) else found
        return self._bits_of_register(key)

    def _bits_of_product(self, width: int, left: int, right: int) -> int:
        """A multiple of the product of both lowest bits, and at most the product of both values."""
        one, other = self.bits(left), self.bits(right)
        lowest = (one & -one) * (other & -other)
        if self._fits(width, left, right):
            return -lowest & ones((one * other).bit_length())
        return -lowest & ones(width) if lowest > 1 else -1

    def _fits(self, width: int, left: int, right: int) -> bool:
        """Whether a product never wraps around."""
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

    def _is_shared(self, key: Key) -> bool:
        """Whether it is an address in shared memory: one, and what is added to it."""
        if key[:2] != ("sum", 32):
            return key in _SHARED
        return key[2] >= 0 and [times for atom, times in key[3] if self.keys[atom] in _SHARED] == [1]

    def form(self, width: int, number: int) -> tuple[int, dict[tuple[int, int], int]]:
        key, all_ones = self.keys[number], ones(width)
        if key[0] == "const":
            return key[1] & all_ones, {}
        if key[0] == "bits":
            return key[1] & all_ones, {where: mask & all_ones for where, mask in key[2] if mask & all_ones}
        return 0, {(number, 0): self.bits(number) & all_ones}

    def xored(self, width: int, constant: int, terms: Mapping[tuple[int, int], int]) -> int:
        kept = sorted(item for item in terms.items() if item[1])
        if not kept:
            return self.constant(constant, width)
        ((atom, places), mask), most = kept[0], self.bits(kept[0][0][0])
        is_whole = mask == most or (most < 0 and mask == most & ones(width))
        is_here = self.keys[atom][0] != "sum" or self.keys[atom][1] == width
        if len(kept) == 1 and not constant and not places and is_whole and is_here:
            return atom
        return self.node("bits", constant, tuple(kept))

    def masked(self, width: int, value: int, mask: int, places: int = 0) -> int:
        """The value shifted to the right, under a mask."""
        part = self._address_part(width, value, mask, places) if self.keys[value][0] == "sum" else None
        if part is not None:
            return part
        constant, terms = self.form(width, value)
        return self._shifted(width, constant, terms, places, mask)

    def _shifted(
        self, width: int, constant: int, terms: Mapping[tuple[int, int], int], places: int, mask: int = -1
    ) -> int:
        found = {(atom, n - places): own >> places & mask for (atom, n), own in terms.items()}
        return self.xored(width, constant >> places & mask, found)

    def _address_part(self, width: int, value: int, mask: int, places: int) -> int | None:
        """A part of an address in shared memory: no sum of addresses wraps around.

        So what is a multiple of 2^places is shifted alone. Where a shifted address was added to, under a
        mask, the sum is that of the address.
        """
        constant, terms = self.linear(width, value)
        if self._is_shared(self.keys[value]) and places and not _MOST_SHARED >> places & ~mask:
            rows = {
                atom: times >> places
                for atom, times in terms
                if not times & ones(places) and 0 <= self.bits(atom) * times <= ones(width)
            }
            part = self._sum(width, constant >> places, rows)
            if part == self.constant(0):
                return None
            start = self.add(width, value, self.scaled(width, part, 1 << places), -1)
            return self.add(width, self.masked(width, start, mask, places), part)
        for atom, times in terms:
            match self.keys[atom]:
                case "bits", 0, (((start, down), kept),) if times == 1 and down < 0:
                    is_whole = not self.bits(start) >> -down & ones(mask.bit_length()) & ~kept
                    if (
                        is_whole
                        and self._is_shared(self.keys[start])
                        and mask < 1 << width + down
                        and not places
                    ):
                        rest = self.scaled(width, self.add(width, value, atom, -1), 1 << -down)
                        return self.masked(width, self.add(width, start, rest), mask, -down)
        return None

    def shift(self, name: str, width: int, value: int, places: int) -> int:
        count, known = self.value_of(places), self.value_of(value)
        if count is None or not 0 <= count < width:
            return self.node(name, width, value, places)
        if name == "shl":
            return self.scaled(width, value, 1 << count)
        if name == "sar" and known is not None:
            return self.constant(known >> count, width)
        if not count:
            return value
        if (
            name == "sar" and self.bits(value) >> (width - 1) & 1
        ):  # the bits that are shifted out do not count
            return self.node(
                name, width, self.masked(width, value, ones(width) << count & ones(width)), places
            )
        return self.masked(width, value, ones(width), count)

    def field(self, width: int, value: int, first: int, count: int, sign: str = "z") -> int:
        """Some bits of a value."""
        places, length = self.value_of(first), self.value_of(count)
        if places is None or length is None or not 0 <= places < width or not 0 <= length < 32:
            return self.node(f"{sign}field", width, value, first, count)
        found = self.masked(width, value, ones(length), places)
        if sign == "s" and length > 1:
            return self.node("sfield", width, value, first, count)
        return self.scaled(width, found, -1) if sign == "s" else found

    def bitwise(self, name: str, width: int, left: int, right: int) -> int:
        ours, theirs = self.value_of(left), self.value_of(right)
        if ours is not None and theirs is not None:
            found = {"and": ours & theirs, "or": ours | theirs, "xor": ours ^ theirs}[name]
            return self.constant(found, width)
        if left == right:
            return self.constant(0, width) if name == "xor" else left
        for value, other in ((left, right), (right, left)):
            if mask := self._uniform_mask(value):
                condition, *masks = mask
                return self.select(condition, *(self.bitwise(name, width, each, other) for each in masks))
        all_ones = ones(width)
        for value, known in ((left, theirs), (right, ours)):
            if known is None:
                continue
            if width == 1:
                return {
                    "and": value if known else self.constant(0, 1),
                    "or": self.constant(1, 1) if known else value,
                    "xor": self.invert(value) if known else value,
                }[name]
            if name == "and":
                return self.masked(width, value, known & all_ones)
            if name == "or":
                return self._xor(
                    width, self.masked(width, value, ~known & all_ones), self.constant(known, width)
                )
            if known & all_ones == all_ones:
                return self.invert_all(width, value)
        is_apart = name == "or" and not self.bits(left) & self.bits(right) & all_ones
        if width > 1 and (name == "xor" or is_apart):
            return self._xor(width, left, right)
        return self.node(name, width, *sorted((left, right)))

    def _xor(self, width: int, left: int, right: int) -> int:
        (a, ours), (b, theirs) = self.form(width, left), self.form(width, right)
        for where, mask in theirs.items():
            ours[where] = ours.get(where, 0) ^ mask
        constant, terms = self.linear(width, self.xored(width, a ^ b, ours))
        return self._sum(width, constant, dict(terms))

    def invert_all(self, width: int, value: int) -> int:
        if mask := self._uniform_mask(value):
            condition, one, other = mask
            return self.node("select", condition, other, one)
        return self.add(width, self.constant(-1), value, -1)

    def extend(self, sign: str, widths: int, value: int) -> int:
        """The widths are in one number: 32064 extends 32 bits to 64."""
        source, width = divmod(widths, 1000)
        known, key, all_ones = self.value_of(value), self.keys[value], ones(source)
        if known is not None:
            return self.constant(known if sign == "s" and source > 1 else known & all_ones, width)
        if sign == "s" and (source == 1 or self.bits(value) >> (source - 1) & 1):
            return self._sign_extended(widths, value)
        if key[0] == "sum" and key[1] == source:
            most = (key[2] & all_ones) + sum((self.bits(atom) & all_ones) * times for atom, times in key[3])
            if most <= all_ones:
                rows = ((self.extend("z", widths, atom), times) for atom, times in key[3])
                return self._total(width, key[2] & all_ones, rows)
        return self.xored(width, *self.form(source, value))

    def _sign_extended(self, widths: int, value: int) -> int:
        """Extends each term of a form of bits by itself."""
        source, width = divmod(widths, 1000)
        above, sign = ones(width) & ~ones(source), 1 << source - 1
        constant, terms = self.form(source, value)
        wide = dict[tuple[int, int], int]()
        for where, mask in terms.items():
            if not mask & sign:
                wide[where] = mask
                continue
            part = self.xored(source, 0, {where: mask})
            if part == value:
                return self.node("sext", width, source, value)
            wide[self.extend("s", widths, part), 0] = mask | above
        return self.xored(width, constant | above * bool(constant & sign), wide)

    def trunc(self, width: int, value: int) -> int:
        known, key = self.value_of(value), self.keys[value]
        if known is not None:
            return self.constant(known, width)
        if key[0] == "sext":
            source = key[2]
            if source < width:
                return self.extend("s", source * 1000 + width, key[3])
            return int(key[3]) if source == width else self.trunc(width, key[3])
        if key[0] == "sum" and key[1] > width:
            return self._total(width, key[2], ((self.trunc(width, atom), times) for atom, times in key[3]))
        if key[0] == "bits" or self.bits(value) >= 0:
            return self.xored(width, *self.form(width, value))
        return self.node("trunc", width, value)

    def widening(self, sign: str, width: int, left: int, right: int, added: int | None = None) -> int:
        widths = width // 2 * 1000 + width
        found = self.mul(width, *(self.extend(sign, widths, part) for part in (left, right)))
        return found if added is None else self.add(width, found, added)

    def high(self, sign: str, width: int, left: int, right: int) -> int:
        """The upper half of a product of twice the width."""
        known = [self.value_of(each) for each in (left, right)]
        if 0 in known:
            return self.constant(0, width)
        if None in known:
            return self.node(f"mul.hi.{sign}{width}", *sorted((left, right)))
        one, other = (int(each or 0) & ones(width) for each in known)
        if sign == "s":
            one, other = (each - (each >> width - 1 << width) for each in (one, other))
        return self.constant(one * other >> width, width)

    def descriptor(self, group: int, value: int) -> int:
        """What `wgmma` reads of a descriptor.

        Not bits 16 to 29, the leading stride, where the layout is swizzled and K-major (`group` is 0), or
        where all `group` bytes that it multiplies of a line are in one group.

        Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Strides".
        """
        constant, terms = self.linear(64, value)
        most = (constant & 0xFFFF) + sum((self.bits(atom) & ones(64)) * times for atom, times in terms)
        mode = constant >> 62 & 3  # 1, 2, 3: a line of 128, 64, 32 bytes
        is_read = not mode or group > 256 >> mode or most >= 1 << 16
        return value if is_read else self._sum(64, constant & ~(0x3FFF << 16), dict(terms))

    # truth

    def invert(self, value: int) -> int:
        known = self.value_of(value)
        if known is not None:
            return self.constant(known ^ 1, 1)
        key = self.keys[value]
        return int(key[1]) if key[0] == "not" else self._truth(self.node("not", value))

    def _truth(self, value: int) -> int:
        """The first value that is true in the same threads, if nothing but a thread's number decides."""
        found = self.in_threads(value)
        if found is None or not {*found} <= {0, 1}:
            return value
        return self._true_in.setdefault(found, value) if len({*found}) > 1 else self.constant(found[0], 1)

    def in_threads(self, number: int, depth: int = 0) -> tuple[int, ...] | None:
        """The value in each thread of a block; None where it is not of the thread's number alone."""
        if number not in self._of_threads:
            self._of_threads[number] = self._evaluated(self.keys[number], depth) if depth < 16 else None
        return self._of_threads[number]

    def _evaluated(self, key: Key, depth: int) -> tuple[int, ...] | None:
        rows: list[tuple[int, ...] | None]
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
        rows = [self.in_threads(atom, depth + 1) for atom in atoms]
        return None if None in rows else tuple(evaluate(key, each) for each in zip(*rows, strict=True))

    def select(self, condition: int, one: int, other: int) -> int:
        known = self.value_of(condition)
        if one == other or known is not None:
            return one if known or one == other else other
        key = self.keys[condition]
        if key[0] == "not":
            return self.select(key[1], other, one)
        if mask := self._uniform_mask(condition):
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

    def _uniform_mask(self, value: int) -> tuple[int, int, int] | None:
        """A value that is all ones or zero, as a choice: the condition and the two constants."""
        if value in self.uniform_masks:
            return (
                self.node("eq", 32, *sorted((value, self.constant(0)))),
                self.constant(0),
                self.constant(-1),
            )
        key = self.keys[value]
        is_mask = key[0] == "select" and {self.value_of(key[2]), self.value_of(key[3])} == {0, -1}
        return (key[1], key[2], key[3]) if is_mask else None

    def _chosen(self, condition: int, value: int, place: int) -> int:
        """What a value is where a condition is known to be true (place 0) or not (1)."""
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
            found = self._equal(width, *sorted((left, right)))
        else:
            found = self.node("lt", f"{kind[0]}{width}", left, right)
        return self.invert(found) if kind == "ne" or kind[1:] in ("ge", "le") else found

    def _equal(self, width: int, left: int, right: int) -> int:
        for value, other in ((left, right), (right, left)):
            key, known = self.keys[value], self.value_of(other)
            if value in self.uniform_masks and known == 0:
                return self.node("eq", 32, left, right)
            if key[0] == "select" and known is not None and self.bits(key[1]) == 1:
                match [self._is_constant(width, each, known) for each in key[2:]]:
                    case True, False:
                        return int(key[1])
                    case False, True:
                        return self.invert(key[1])
        return self.node("eq", width, left, right)

    def _is_constant(self, width: int, value: int, known: int) -> bool | None:
        """Whether a value is a known one; None if nobody knows. A wave that runs has a lane."""
        if self.keys[value] == ("all lanes",) and not known:
            return False
        own = self.value_of(value)
        return None if own is None else not (own ^ known) & ones(width)

    # vectors, structures, and 64 bits in two registers

    def pack(self, *parts: int, width: int = 0) -> int:
        """width: of all parts, where it is not that of as many registers; a pair of integers of 64 bits, of
        which one is known, is a sum.
        """
        first, count = self.keys[parts[0]], len(parts)
        code = program.parts(count, width // count) if width else count
        if width != 64 and len({*parts}) == 1 and len(parts) == 2 and self._uniform_mask(parts[0]):
            return parts[0]
        if width == 64 and len(parts) == 2 and any(self.keys[each][0] == "const" for each in parts):
            low, high = (self.extend("z", 32_064, each) for each in parts)
            return self.add(64, low, self.scaled(64, high, 1 << 32))
        whole = first[0] == "part" and all(
            self.keys[each] == ("part", first[1], place, code) for place, each in enumerate(parts)
        )
        return int(first[1]) if whole else parts[0] if len(parts) == 1 else self.node("pack", *parts)

    def part(self, value: int, place: int, count: int = 0) -> int:
        """count: as of `parts`; 0 where that is not known."""
        key = self.keys[value]
        while key[0] == "put":
            if key[2] == place:
                return int(key[3])
            value, key = key[1], self.keys[key[1]]
        if key[0] == "pack" and count & 255 in (0, len(key) - 1) and place < len(key) - 1:
            return int(key[1 + place])
        if key[0] == "bits" and count:
            width = count >> 8 ^ 32
            constant, terms = self.form(width * (place + 1), value)
            return self._shifted(width, constant, terms, width * place)
        return self.node("part", value, place, count)

    def half(self, value: int, place: int) -> int:
        """One of two registers of 32 bits."""
        known = self.value_of(value)
        if self._uniform_mask(value):
            return value
        return self.part(value, place, 2) if known is None else self.constant(known >> (32 * place), 32)
