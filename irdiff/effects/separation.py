"""Which accesses of memory may run without a barrier between them, over all paths. Pure.

A barrier that is gone matters where two accesses that may touch the same bytes, one of them a writer, are
kept apart at base and not at head. Where head keeps all of them apart, it is not missed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from irdiff.effects import order
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.program import Act
from irdiff.effects.values import Values

_ACCESSES = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC, Act.COPY, Act.MATRIX, Act.SYNC, Act.OPAQUE})
"""And what other synchronization a barrier makes known to other threads, as a wait."""
_ORDERS = frozenset({Act.SYNC, Act.OPAQUE})
_GROUP = re.compile(r"(?:cp\.async|wgmma)\.(?:bulk\.)?(commit|wait)[._]group")
_MAX_ACCESSES = 700


class Lost(NamedTuple):
    pair: tuple[Event, Event] | None
    """Two that are not kept apart any more; None where there are none."""
    is_complete: bool
    """Whether all accesses are the same, and none stands on another side of another synchronization."""


def lost(base: NumberedFunction, head: NumberedFunction, barrier: Event) -> Lost:
    """By barriers like this."""
    ours, theirs = _Separation(base, barrier), _Separation(head, barrier)
    is_complete = ours.accesses.keys() == theirs.accesses.keys()
    if len(ours.accesses) > _MAX_ACCESSES:
        return Lost(None, False)
    before, found = ours.together(), list[tuple[Event, Event]]()
    for one, behind in theirs.together().items():
        for other in behind - before.get(one, set()):
            if {one, other} <= ours.accesses.keys():
                pair = ours.accesses[one], ours.accesses[other]
                acts = {event.effect.act for event in pair}
                if _is_own(*pair):
                    continue
                if _ORDERS & acts:
                    is_complete = False
                elif _may_race(base.values, *pair, barrier.instruction.name):
                    found.append(pair)
    best = (pair for pair in found if Act.STORE in (event.effect.act for event in pair))
    return Lost(next(best, found[0] if found else None), is_complete)


def _is_own(one: Event, other: Event) -> bool:
    """Whether the second is a thread's own wait or group, or the first its group: no other thread sees it."""
    return bool(_GROUP.search(other.instruction.name) or "commit" in (_GROUP.findall(one.instruction.name)))


def kind_of(barrier: Event) -> tuple[object, ...]:
    return barrier.instruction.name, barrier.guard, barrier.operands


class _Separation:
    def __init__(self, side: NumberedFunction, barrier: Event) -> None:
        self._side, self._barrier = side, kind_of(barrier)
        events = (event for block in side.blocks for event in block.events)
        self.accesses = {
            event.number: event
            for event in events
            if event.effect.act in _ACCESSES and kind_of(event) != self._barrier
        }

    def together(self) -> dict[int, set[int]]:
        """By access, those that may follow before the next barrier."""
        entering: list[set[int]] = [set() for _ in self._side.graph]
        found: dict[int, set[int]] = {}
        waiting = list(range(len(entering)))[::-1]
        while waiting:
            number = waiting.pop()
            leaving = self._through(number, entering[number], found)
            for target in self._side.graph[number].targets:
                if not leaving <= entering[target]:
                    entering[target] |= leaving
                    waiting.append(target)
        return found

    def _through(self, number: int, entering: set[int], found: dict[int, set[int]]) -> set[int]:
        before = set(entering)
        for event in self._side.blocks[number].events:
            if kind_of(event) == self._barrier:
                before.clear()
            elif event.number in self.accesses:
                for each in before:
                    found.setdefault(each, set()).add(event.number)
                before.add(event.number)
        return before


def _may_race(values: Values, one: Event, other: Event, fence: str) -> bool:
    """Two that may touch the same bytes, a writer among them; for the fence of a proxy, one by that proxy."""
    acts = one.effect.act, other.effect.act
    if acts[0] is acts[1] in (Act.LOAD, Act.MATRIX) or order.never_meet(values, one, other):
        return False
    if "proxy" in fence and not any(
        each.effect.act is Act.MATRIX or "bulk" in each.instruction.name for each in (one, other)
    ):
        return False
    spaces = [each.effect.space or "shared" for each in (one, other)]  # a copy has shared memory at one end
    return spaces[0] == spaces[1]
