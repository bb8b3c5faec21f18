"""Predicates that differ: whether one opposes the other, or other threads do the same work. Pure.

A store may be executed by other threads of the block on head than on base. For example, all four warps of a
block compute the same tile; on base each warp stores it, and on head only the first one does. Both stores are
the same under three conditions (`Threads.are_equal`):

- The value and the address depend only on some bits of the thread number. In the example these are the bits
  of the lane.
- For each value of these bits, either both sides have a thread that stores, or neither has.
- All threads of the block reach the store, and a barrier of all threads stands between it and any other
  access to these bytes, before or behind it. Such barriers must also separate each load that the value, the
  address or the predicate depends on from every other access to its bytes. Otherwise the threads that store
  on head may load another value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from typing import Any

from irdiff.effects import order, ways
from irdiff.effects.lanes import Lanes
from irdiff.effects.nodes import Key, operands_of, reached
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.uniform import Uniform
from irdiff.effects.values import Values
from irdiff.ir.program import Act

_LANES = 31
"""The bits of a thread's number that are those of its lane."""


def are_opposite(values: Values, base: int, head: int) -> bool:
    """True if two comparisons differ where their operands are equal, or have bounds that are 1 apart."""
    keys = [values.keys[each] for each in (base, head)]
    bare = [values.keys[key[1]] if key[0] == "not" else key for key in keys]
    if not all(key[0] in ("lt", "eq") for key in bare):
        return False
    if {*bare[0][2:]} != {*bare[1][2:]}:
        bounds = [_bound(values, key) for key in bare]
        is_alike = (keys[0][0] == "not") == (keys[1][0] == "not") and bounds[0][:2] == bounds[1][:2] != ()
        return is_alike and abs(bounds[0][2] - bounds[1][2]) == 1  # `x < 64` and `x <= 64`
    return len({(key[0] == "eq") != (whole[0] == "not") for key, whole in zip(bare, keys, strict=True)}) == 2


def _bound(values: Values, key: Key) -> tuple[Any, ...]:
    """Returns the comparison, x and c of `x < c`, also of `x == 0`: only 0 is below 1, if no sign counts."""
    numbers = [values.value_of(each) for each in key[2:]]
    if key[0] == "lt":
        return () if numbers[1] is None else (key[1], key[2], numbers[1])
    if 0 not in numbers:
        return ()
    return f"u{key[1]}", key[3 - numbers.index(0)], 1


class Threads:
    """Tells which threads of a function may do the same work."""

    def __init__(self, side: NumberedFunction) -> None:
        self._side, self._values, self._lanes = side, side.values, Lanes(side.values)

    @cached_property
    def _uniform(self) -> Uniform:
        return Uniform(self._side)

    def choose(self, base: int, head: int, event: Event) -> bool:
        """True if the predicates only choose which thread of several does the same work.

        As many have to, or one that is elected; or the others store the same.
        """
        values = self._values
        ours, theirs = (_parts(values, each) for each in (base, head))
        if not all(_is_of_thread(values, each) for each in ours ^ theirs):
            return False
        if event.effect.act is Act.STORE and not self._bits(event) & _LANES:
            return True
        sides = ours - theirs, theirs - ours
        counts = {_count(values, own) for own in sides}
        is_as_often = all(sides) and (len(counts) == 1 or None in counts)
        return is_as_often or self._store_the_same(base, head, event)

    def are_equal(self, base: int, head: int, event: Event) -> bool:
        """True if a store is the same under either predicate, whichever of the threads makes it."""
        return (
            self._store_the_same(base, head, event)
            and self._uniform.is_reached_by_all(event)
            and all(
                self._is_kept_apart(each, step)
                for each in (event, *self._loads(base, head, *event.address, *event.operands))
                for step in (1, -1)
            )
        )

    def _store_the_same(self, base: int, head: int, event: Event) -> bool:
        """True if some thread stores under both predicates, or none does under either, for each value of the
        bits of the thread's number that decide what is stored, and where.
        """
        if event.effect.act is not Act.STORE or event.operation.keeps_order:
            return False
        ours, theirs = (_parts(self._values, each) for each in (base, head))
        bits = self._bits(event) | self._lanes.vary(ours & theirs)
        classes = [self._classes(own, bits) for own in (ours - theirs, theirs - ours)]
        return None not in classes and classes[0] == classes[1]

    def _loads(self, *numbers: int) -> Iterator[Event]:
        """Those that values depend on."""
        events = {event.number: event for block in self._side.blocks for event in block.events}

        def below(number: int) -> list[int]:
            event = events.get(number)
            if event is None:
                return operands_of(self._values.keys[number])
            return [*event.address, *event.operands, *([] if event.guard is None else [event.guard])]

        found = (events[each] for each in reached(numbers, below) if each in events)
        return (event for event in found if event.effect.act is Act.LOAD)

    def _bits(self, event: Event) -> int:
        return self._lanes.vary((*event.address, *event.operands))

    def _classes(self, parts: Collection[int], bits: int) -> set[int] | None:
        """Some bits of the numbers of the threads in which all parts are true."""
        truths_of = [self._values.in_threads(each) for each in (*parts, self._values.node("const", 1))]
        known = [row for row in truths_of if row is not None]
        if len(known) < len(truths_of):
            return None
        return {n & bits for n, truths in enumerate(zip(*known, strict=True)) if all(truths)}

    def _is_kept_apart(self, event: Event, step: int) -> bool:
        """True if each way from an event, or to it (step -1), has a barrier of all threads before an access
        of the same bytes.
        """
        graph, blocks = self._side.graph, self._side.blocks
        start = next(n for n, block in enumerate(blocks) if event in block.events)
        place = blocks[start].events.index(event)
        own = blocks[start].events
        waiting, seen = [(start, own[place + 1 :] if step > 0 else own[:place][::-1])], set[int]()
        while waiting:
            number, events = waiting.pop()
            for each in events:
                if ways.is_of_all(self._values, each):
                    break
                if order.meet(self._values, event, each):
                    return False
            else:
                node = graph[number]
                new = {*(node.targets if step > 0 else node.sources)} - seen
                seen |= new
                waiting += [(other, blocks[other].events[::step]) for other in new]
        return True


def _parts(values: Values, number: int) -> set[int]:
    """Returns the predicates that a predicate is the conjunction of."""
    key = values.keys[number]
    if key[0] == "and":
        return _parts(values, key[2]) | _parts(values, key[3])
    return {number} if values.value_of(number) != 1 else set()


def _is_of_thread(values: Values, number: int) -> bool:
    made = values.made_by.get(number)
    is_elected = made is not None and made.word.startswith("elect.")
    return is_elected or values.in_threads(number) is not None


def _count(values: Values, parts: Collection[int]) -> int | None:
    """In how many threads all of them are true; None where that is not known."""
    rows = [values.in_threads(each) for each in parts]
    known = [row for row in rows if row is not None]
    return sum(map(all, zip(*known, strict=True))) if len(known) == len(rows) else None
