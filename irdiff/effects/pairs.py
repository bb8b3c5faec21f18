"""Finds effects that only one side of a block has, and pairs those that are likely the same, edited. Pure."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence

from irdiff.compare import alignment
from irdiff.effects import memory_order
from irdiff.effects.numbering import Event
from irdiff.ir.program import Act, Slot


def unequal(events: Sequence[Event], others: Sequence[Event]) -> list[Event]:
    """Those that the other side has fewer of: of equal ones those that stand where it has none."""
    if {event.number for event in events} <= {event.number for event in others}:
        return []
    pairs = alignment.matching([event.like for event in events], [event.like for event in others])
    matched, left = {n for n, _ in pairs}, Counter(event.like for event in others)
    left.subtract(events[n].like for n in matched)
    found = []
    for n, event in enumerate(events):
        left[event.like] -= n not in matched
        found += [event] if n not in matched and left[event.like] < 0 else []
    return found


def paired(gone: list[Event], new: list[Event]) -> Iterator[tuple[Event | None, Event | None]]:
    """The likeliest first: the same operation and address, the same operation, the same act and space."""
    units = [[event for event in side if event.effect.act is Act.MATRIX] for side in (gone, new)]
    if len(units[0]) == len(units[1]):  # these work in their order
        yield from zip(*units, strict=True)
        gone, new = ([event for event in side if event.effect.act is not Act.MATRIX] for side in (gone, new))
    keys: tuple[Callable[[Event], object], ...] = (
        lambda event: (event.operation.name, event.address, texts(event)),
        lambda event: (event.operation.word, event.guard, event.address, event.operands),
        lambda event: (event.operation.name, event.guard, event.operands),
        lambda event: event.operation.name,
        lambda event: memory_order.unordered(event.operation.word),
        lambda event: (
            event.effect.act,
            event.effect.space,
            re.split("[. ]", event.operation.word)[:2],
        ),
        lambda event: (
            event.effect.act,
            event.effect.space if event.effect.act is not Act.SYNC else event.number,
        ),
    )
    for key in keys:
        waiting: defaultdict[str, list[Event]] = defaultdict(list)
        for event in new[::-1]:
            waiting[repr(key(event))].append(event)
        left, taken = [], set[int]()
        for event in gone:
            if others := waiting[repr(key(event))]:
                taken.add(id(others[-1]))
                yield event, others.pop()
            else:
                left.append(event)
        gone, new = left, [each for each in new if id(each) not in taken]
    yield from ((event, None) for event in gone)
    yield from ((None, event) for event in new)


def texts(event: Event) -> list[object]:
    """The operands that are no registers."""
    return [each for each in event.operation.operands if not isinstance(each, Slot)]
