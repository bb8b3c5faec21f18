"""Which values are the same in several lanes of a warp: it does not matter which of these stores them. Pure.

A value is described by the bits of the lane's number that it may depend on. A butterfly that combines a value
with that of the lane whose number differs in one bit, by an operation that commutes, gives both the same. A
store under the predicate that those bits are 0 then writes what all lanes would.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from irdiff.effects.nodes import WITH_WIDTH, used_bits
from irdiff.effects.values import Values

_ALL = 31
_LANE = frozenset({"%tid.x", "%laneid"})
_SAME = frozenset({"const", "parameter", "undefined"})
_OF_ONE_LANE = "elect.", "llvm.nvvm.elect."


class Lanes:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: list[int] = []

    def relevant(self, guard: int, stored: Collection[int]) -> int | None:
        """The predicate of a store of these values without lanes that write the same; None: all may write."""
        key = self._values.keys[guard]
        if key[0] == "and":
            one, other = (self.relevant(part, (*stored, *key[2:])) for part in key[2:])
            for left, part in ((one, key[3]), (other, key[2])):
                if left is None:
                    return self.relevant(part, stored)
        bits = self._zero_bits(guard)
        if bits and not any(self.varies(each) & bits for each in stored if each != guard):
            return None
        return guard

    def _zero_bits(self, guard: int) -> int:
        """The bits of the lane that a predicate wants to be 0, where it wants nothing else."""
        key = self._values.keys[guard]
        if key[0] != "eq":
            return 0
        zero, form = sorted(
            (self._values.keys[each] for each in key[2:]), key=lambda each: each[0] != "const"
        )
        if zero != ("const", 0) or form[0] != "bits" or form[1] or len(form[2]) > 1:
            return 0
        ((atom, places), mask), *_ = form[2]
        return self._lane_bits(atom, places, mask)

    def _lane_bits(self, atom: int, places: int, mask: int) -> int:
        found = used_bits(places, mask)
        return found if self._is_lane(atom) and not found & ~_ALL else 0

    def _is_lane(self, number: int) -> bool:
        key = self._values.keys[number]
        return key[0] == "text" and key[1] in _LANE

    def varies(self, number: int) -> int:
        """The bits of the lane's number that a value may depend on."""
        # operands first, which have lower numbers: a sum of a thousand terms is as deep as it is long
        while len(self._known) <= number:
            self._known.append(self._of(len(self._known)))
        return self._known[number]

    def _bits(self, operand: int) -> int:
        return self._known[operand] if operand < len(self._known) else _ALL

    def _of(self, number: int) -> int:
        key, values = self._values.keys[number], self._values
        match key:
            case "text", name:
                return _ALL if name in _LANE else 0
            case "bits", _, terms:
                found = 0
                for (atom, places), mask in terms:
                    found |= used_bits(places, mask) & _ALL if self._is_lane(atom) else self._bits(atom)
                return found
            case "sum", _, _, terms:
                return self._any(atom for atom, _ in terms)
            case "part", value, _, _:
                made = self._butterfly(value)  # an event itself has all bits
                return self._bits(made[0] if made else value)
            case name, *_ if name in _SAME:
                return 0
            case (("join" | "event" | "waited for" | "like"), *_):
                return _ALL
            case name, *_ if name.startswith(_OF_ONE_LANE):
                return _ALL
        operands = key[1 + (key[0] in WITH_WIDTH) :]
        made_by = values.made_by.get(number)
        is_whole = made_by is not None and (made_by.associates or (made_by.commutes and len(operands) == 2))
        for other in operands if is_whole else ():
            part = values.keys[other]
            made = self._butterfly(part[1]) if part[0] == "part" else None
            if made is None:
                continue
            parts = values.joined(key[0], made[0]) if len(operands) > 2 else made[:1]
            if {other, *parts} == {*operands}:
                return self._bits(made[0]) & ~made[1]
        return self._any(operands)

    def _any(self, numbers: Iterable[int]) -> int:
        found = 0
        for each in numbers:
            found |= self._bits(each)
        return found

    def _butterfly(self, number: int) -> tuple[int, int] | None:
        """What lanes exchange whose numbers differ in one bit, and the bit."""
        key = self._values.keys[number]
        if key[0] != "event" or not key[1].startswith("shfl.sync.bfly") or key[2] is not None:
            return None
        value, bit, *rest = self._values.keys[key[3]][-1]
        found = [self._values.value_of(each) for each in (bit, *rest)]
        return (value, int(found[0] or 0)) if found[0] in (1, 2, 4, 8, 16) and found[1:] == [31, -1] else None
