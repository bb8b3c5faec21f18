"""Tells on which bits of a thread's number a value may depend. Threads that differ in other bits have the
same value. Pure.

A butterfly that combines a value with that of the lane whose number differs in one bit, by an operation that
commutes, gives both the same. Loads of one address give all threads the same, if none races with a store.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Iterable

from irdiff.effects.nodes import operands_of, used_bits
from irdiff.effects.uniform import PER_THREAD
from irdiff.effects.values import Values

_ALL = 1023
_NUMBERS = {"%tid.x": _ALL, "%laneid": 31}
_SAME = frozenset({"const", "parameter", "undefined"})
_LOAD = re.compile(r"ld\.(?:shared|global|const)(?:\.nc)?\.[bsuf]\d")
"""One that reads what is there, and for which all threads stand in the same place."""
_LOAD_OF_MATRIX = re.compile(r"ldmatrix\.sync\b")
"""A lane gets its part of rows that lanes of its warp name (PTX ISA, "ldmatrix")."""
_OF_LANE = 31


class Lanes:
    def __init__(self, values: Values) -> None:
        self._values = values
        self._known: list[int] = []

    def varies(self, number: int) -> int:
        """The bits of the thread's number in its block; all where that is not known."""
        # operands first, which have lower numbers: a sum of a thousand terms is as deep as it is long
        while len(self._known) <= number:
            self._known.append(self._of(len(self._known)))
        return self._known[number]

    def vary(self, numbers: Iterable[int]) -> int:
        return functools.reduce(operator.or_, map(self.varies, numbers), 0)

    def _bits(self, operand: int) -> int:
        return self._known[operand] if operand < len(self._known) else _ALL

    def _of(self, number: int) -> int:
        key, values = self._values.keys[number], self._values
        match key:
            case "text", name:
                return _NUMBERS.get(name, _ALL if PER_THREAD.search(name) else 0)
            case "bits", _, terms:
                varying = 0
                for (atom, places), mask in terms:
                    own = self._bits(atom)
                    is_number = values.keys[atom][0] == "text" and values.keys[atom][1] in _NUMBERS
                    varying |= used_bits(places, mask) & own if is_number else own
                return varying
            case "sum", _, _, terms:
                return self._any(atom for atom, _ in terms)
            case "part", value, _, _:
                exchange = self._butterfly(value)  # an event itself has all bits
                return self._bits(exchange[0] if exchange else value)
            case name, *_ if name in _SAME:
                return 0
            case "event", name, guard, like, _ if _LOAD.match(name) or _LOAD_OF_MATRIX.match(name):
                *_, address, others = values.keys[like]
                own = self._any([*address, *others, *([] if guard is None else [guard])])
                return own | _OF_LANE * bool(_LOAD_OF_MATRIX.match(name))
            case (("join" | "event" | "waited for" | "like"), *_):
                return _ALL
            case name, *_ if PER_THREAD.search(name):
                return _ALL
        operands = operands_of(key)
        made_by = values.made_by.get(number)
        is_whole = made_by is not None and (made_by.associates or (made_by.commutes and len(operands) == 2))
        for other in operands if is_whole else ():
            part = values.keys[other]
            exchange = self._butterfly(part[1]) if part[0] == "part" else None
            if exchange is None:
                continue
            parts = values.joined(key[0], exchange[0]) if len(operands) > 2 else exchange[:1]
            if {other, *parts} == {*operands}:
                return self._bits(exchange[0]) & ~exchange[1]
        return self._any(operands)

    def _any(self, numbers: Iterable[int]) -> int:
        bits = 0
        for each in numbers:
            bits |= self._bits(each)
        return bits

    def _butterfly(self, number: int) -> tuple[int, int] | None:
        """Returns the value that lanes exchange whose numbers differ in one bit, and the bit."""
        key = self._values.keys[number]
        if key[0] != "event" or not key[1].startswith("shfl.sync.bfly") or key[2] is not None:
            return None
        value, bit, *rest = self._values.keys[key[3]][-1]
        constants = [self._values.value_of(each) for each in (bit, *rest)]
        return (
            (value, int(constants[0] or 0))
            if constants[0] in (1, 2, 4, 8, 16) and constants[1:] == [31, -1]
            else None
        )
