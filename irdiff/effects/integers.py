"""Integers: what is equal by the rules of their arithmetic has one number. Pure.

Sums, products with constants and shifts to the left are linear forms modulo 2^width, so another order or
grouping of an address is the same value. What has no carries is a form of bits. Integers wrap around (PTX ISA
"Integer Arithmetic Instructions", LLVM LangRef "add"; flags like `nsw` promise more and are not used).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

from irdiff.effects.known_bits import MOST_SHARED, NodeTable
from irdiff.effects.nodes import ones, signed

_MAX_PRODUCTS = 16
"""A product of sums with more terms stays one."""


def _places(factor: int) -> Iterator[int]:
    """Yields the places of the bits that are 1, the lowest first."""
    while factor:
        yield (factor & -factor).bit_length() - 1
        factor &= factor - 1


class Integers(NodeTable):
    def __init__(self) -> None:
        super().__init__()
        self._linear: dict[tuple[int, int], tuple[int, tuple[tuple[int, int], ...]]] = {}

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
        form = self._linear.get((width, number))
        if form is not None:
            return form
        first, terms = self.form(width, number)
        seen, meeting = first, 0
        for mask in terms.values():
            meeting |= seen & mask
            seen |= mask
        constant, factors = first & ~meeting, dict[int, int]()
        for (atom, places), mask in terms.items():
            own = mask & ~meeting
            if not own:
                continue
            if places >= 0 and own == self.bits(atom) << places & ones(width):
                offset, below = self.linear(width, atom)
                constant += offset << places
                for value, factor in below:
                    factors[value] = factors.get(value, 0) + (factor << places)
            else:
                factor = own & -own
                where = atom, places - factor.bit_length() + 1
                value = self.xored(width, 0, {where: own // factor})
                factors[value] = factors.get(value, 0) + factor
        if meeting:
            factor = meeting & -meeting
            down = factor.bit_length() - 1
            met = {(a, n - down): m // factor for (a, n), mask in terms.items() if (m := mask & meeting)}
            value = self.xored(width, (first & meeting) // factor, met)
            factors[value] = factors.get(value, 0) + factor
        form = self._linear[width, number] = constant, tuple(sorted(factors.items()))
        return form

    def _sum(self, width: int, constant: int, terms: Mapping[int, int]) -> int:
        all_ones = ones(width)
        constant &= all_ones
        kept = {atom: factor & all_ones for atom, factor in terms.items() if factor & all_ones}
        if not kept:
            return self.constant(constant, width)
        if not constant and len(kept) == 1 and 1 in kept.values():
            return next(iter(kept))
        bounded = {atom: factor for atom, factor in kept.items() if self.bits(atom) >= 0}
        if len(kept) - len(bounded) < 2:  # the highest bit of two of which nothing is known may be 1
            whole = self._joined(width, constant, kept)
            if whole is not None:
                return whole
        if len(bounded) > 1:
            apart = self._apart(width, bounded)
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
        terms_of_bits = dict[tuple[int, int], int]()
        for atom, places in shifted:
            flipped, form = self.form(width, atom)
            constant ^= flipped << places & all_ones
            for (each, n), own in form.items():
                where = each, n + places
                terms_of_bits[where] = terms_of_bits.get(where, 0) ^ own << places & all_ones
        return self.xored(width, constant, terms_of_bits)

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
        """Multiplies in 32 bits where the product has no more."""
        own_width = min(width, 32) if self.fits(32, left, right) else width
        return self.node("mul", own_width, *sorted((left, right)))

    # forms of bits: ("bits", constant, (((atom, places), mask), ...)), the `xor` of the constant and of each
    # atom shifted to the left, under its mask

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
        shifted = {(atom, n - places): own >> places & mask for (atom, n), own in terms.items()}
        return self.xored(width, constant >> places & mask, shifted)

    def _address_part(self, width: int, value: int, mask: int, places: int) -> int | None:
        """A part of an address in shared memory: no sum of addresses wraps around.

        So what is a multiple of 2^places is shifted alone. Where a shifted address was added to, under a
        mask, the sum is that of the address.
        """
        constant, terms = self.linear(width, value)
        if self.is_shared(self.keys[value]) and places and not MOST_SHARED >> places & ~mask:
            parts = {
                atom: times >> places
                for atom, times in terms
                if not times & ones(places) and 0 <= self.bits(atom) * times <= ones(width)
            }
            part = self._sum(width, constant >> places, parts)
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
                        and self.is_shared(self.keys[start])
                        and mask < 1 << width + down
                        and not places
                    ):
                        rest = self.scaled(width, self.add(width, value, atom, -1), 1 << -down)
                        return self.masked(width, self.add(width, start, rest), mask, -down)
        return None

    def shift(self, name: str, width: int, value: int, places: int) -> int:
        count, constant = self.value_of(places), self.value_of(value)
        if count is None or not 0 <= count < width:
            return self.node(name, width, value, places)
        if name == "shl":
            return self.scaled(width, value, 1 << count)
        if name == "sar" and constant is not None:
            return self.constant(constant >> count, width)
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
        bits = self.masked(width, value, ones(length), places)
        if sign == "s" and length > 1:
            return self.node("sfield", width, value, first, count)
        return self.scaled(width, bits, -1) if sign == "s" else bits

    def _xor(self, width: int, left: int, right: int) -> int:
        (a, ours), (b, theirs) = self.form(width, left), self.form(width, right)
        for where, mask in theirs.items():
            ours[where] = ours.get(where, 0) ^ mask
        constant, terms = self.linear(width, self.xored(width, a ^ b, ours))
        return self._sum(width, constant, dict(terms))

    def invert_all(self, width: int, value: int) -> int:
        if mask := self.uniform_mask(value):
            condition, one, other = mask
            return self.node("select", condition, other, one)
        return self.add(width, self.constant(-1), value, -1)

    def extend(self, sign: str, widths: int, value: int) -> int:
        """The widths are in one number: 32064 extends 32 bits to 64."""
        source, width = divmod(widths, 1000)
        constant, key, all_ones = self.value_of(value), self.keys[value], ones(source)
        if constant is not None:
            whole = constant & all_ones
            return self.constant(signed(whole, source) if sign == "s" else whole, width)
        if sign == "s" and (source == 1 or self.bits(value) >> (source - 1) & 1):
            return self._sign_extended(widths, value)
        if key[0] == "sum" and key[1] == source:
            most = (key[2] & all_ones) + sum((self.bits(atom) & all_ones) * times for atom, times in key[3])
            if most <= all_ones:
                extended = ((self.extend("z", widths, atom), times) for atom, times in key[3])
                return self._total(width, key[2] & all_ones, extended)
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
        constant, key = self.value_of(value), self.keys[value]
        if constant is not None:
            return self.constant(constant, width)
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

    def in_reverse(self, width: int, value: int) -> int:
        """The lowest bit becomes the highest."""
        constant = self.value_of(value)
        if constant is None:
            return self.node("reversed", value)
        return self.constant(int(f"{constant & ones(width):0{width}b}"[::-1], 2), width)

    def low(self, width: int, value: int) -> int:
        """A value of which only the lowest bits count. It may keep other bits, where that is no integer."""
        key = self.keys[value]
        match key[0]:
            case "const" | "bits":
                return self.trunc(width, value)
            case "sext" if key[2] >= width:
                return self.low(width, key[3])
            case "sar":
                places = self.value_of(key[3])
                if places is not None and 0 <= places <= key[1] - width:  # no sign is shifted in
                    return self.trunc(width, self.shift("shr", *key[1:]))
        return value

    def widening(self, sign: str, width: int, left: int, right: int, added: int | None = None) -> int:
        widths = width // 2 * 1000 + width
        product = self.mul(width, *(self.extend(sign, widths, part) for part in (left, right)))
        return product if added is None else self.add(width, product, added)

    def high(self, sign: str, width: int, left: int, right: int) -> int:
        """The upper half of a product of twice the width."""
        constants = [self.value_of(each) for each in (left, right)]
        if 0 in constants:
            return self.constant(0, width)
        if None in constants:
            return self.node(f"mul.hi.{sign}{width}", *sorted((left, right)))
        one, other = (int(each or 0) & ones(width) for each in constants)
        if sign == "s":
            one, other = (signed(each, width) for each in (one, other))
        return self.constant(one * other >> width, width)

    def descriptor(self, group: int, value: int) -> int:
        """Returns a descriptor without the bits that `wgmma` does not read.

        These are bits 16 to 29, the leading stride, where the layout is swizzled and K-major (`group` is 0),
        or where all `group` bytes that it multiplies of a line are in one group.

        Source: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout", "Strides".
        """
        constant, terms = self.linear(64, value)
        most = (constant & 0xFFFF) + sum((self.bits(atom) & ones(64)) * times for atom, times in terms)
        mode = constant >> 62 & 3  # 1, 2, 3: a line of 128, 64, 32 bytes
        is_read = not mode or group > 256 >> mode or most >= 1 << 16
        return value if is_read else self._sum(64, constant & ~(0x3FFF << 16), dict(terms))
