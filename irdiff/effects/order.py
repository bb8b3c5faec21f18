"""Which effects of one block may not change places, and whether any did. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.effects.numbering import Event
from irdiff.effects.program import Act
from irdiff.effects.values import Values

_WITHOUT_ORDER = frozenset({Act.LANES, Act.STATES})
_IN_ORDER = frozenset({Act.SYNC, Act.OPAQUE, Act.MATRIX, Act.COPY})
_READS = frozenset({Act.LOAD})


def meet(values: Values, one: Event, other: Event) -> bool:
    """Whether the order of two effects counts."""
    ours, theirs = one.effect, other.effect
    acts = {ours.act, theirs.act}
    if acts & _WITHOUT_ORDER or acts <= _READS:
        return False
    if acts & _IN_ORDER or not ours.space or not theirs.space:
        return True
    return ours.space == theirs.space and not _are_apart(values, one, other)


def same_bytes(values: Values, one: Event, other: Event) -> bool:
    """Whether two accesses surely touch a common byte."""
    base, first, end = _place(values, one)
    behind, begin, last = _place(values, other)
    return one.effect.space == other.effect.space and base == behind != () and first < last and begin < end


def _are_apart(values: Values, one: Event, other: Event) -> bool:
    (base, first, end), (behind, begin, last) = _place(values, one), _place(values, other)
    return base == behind != () and (end <= begin or last <= first)


def _place(values: Values, event: Event) -> tuple[tuple[object, ...], int, int]:
    """What accesses of one buffer have in common, and the first byte and the one after the last."""
    if not event.address or not event.effect.size:
        return (), 0, 0
    key = values.keys[event.address[-1]]
    constant, terms = values.linear(key[1] if key[0] == "sum" else 64, event.address[-1])
    return (event.address[:-1], terms), constant, constant + event.effect.size


def exchanged(values: Values, base: Sequence[Event], head: Sequence[Event]) -> tuple[Event, Event] | None:
    """Of the same effects in two orders: two that meet, the first of which stands behind the second at head.

    The pair that a reader wants to hear of first: with synchronization, with a matrix unit.
    """
    place = {event.number: n for n, event in enumerate(head)}
    found = [place[event.number] for event in base]
    start = next((n for n, at in enumerate(found) if n != at), len(found))
    pairs = (
        (base[earlier], base[later])
        for later in range(start, len(found))
        for earlier in range(start, later)
        if found[earlier] > found[later] and meet(values, base[earlier], base[later])
    )
    return max(
        pairs,
        key=lambda pair: [act in (each.effect.act for each in pair) for act in _TOLD_FIRST],
        default=None,
    )


_TOLD_FIRST = (Act.SYNC, Act.MATRIX, Act.COPY, Act.STORE)
