"""Compares head as if its buffers of shared memory were at the addresses that they have on base. Pure.

Buffers do not overlap, and each access of each thread lies in one of them. So a load gets only what was
stored in its own buffer, and it does not matter where the buffer begins. The conditions:

- The addresses of all accesses are known for all threads.
- The bytes that the accesses touch form equally many buffers, of the same sizes, on both sides. Buffers
  correspond in the order in which they are accessed first.
- Each buffer moved by a multiple of 16 bytes, and the buffers of head do not end behind those of base.
- Addresses are used for accesses only: the kernel does not store or compare them.

Sometimes the addresses are not known, for example because a loop cycles through the slots of a buffer. Then
`doubts` decides: if only loads or only stores are at other addresses, this is a hazard. If both are, the
kernel may have moved the whole buffer, so this is not shown.
"""

from __future__ import annotations

from collections.abc import Iterator

from irdiff.effects import order
from irdiff.effects.nodes import operands_of, reached
from irdiff.effects.numbering import Event, Move, NumberedFunction
from irdiff.ir.program import Act, Effect, Operation, ReadError

_ALIGNED = 16
"""Bytes of the widest access: a buffer that is moved by a multiple stays aligned."""
_NOWHERE = frozenset({Act.LANES, Act.STATES})
_ELSEWHERE = frozenset({"global", "local", "param", "const"})
_Buffer = tuple[int, int]
"""The first byte, and the one after the last."""


def move(base: NumberedFunction, head: NumberedFunction) -> Move | None:
    """None where not all accesses are known, or buffers are not moved."""
    ours, theirs = _buffers(base), _buffers(head)
    if not ours or not theirs or ours == theirs or len(ours) != len(theirs):
        return None
    places = {buffer: other[0] - buffer[0] for other, buffer in zip(ours, theirs, strict=True)}
    sizes = [[last - first for first, last in buffers] for buffers in (ours, theirs)]
    is_larger = max(last for _, last in theirs) > max(last for _, last in ours)
    if sizes[0] != sizes[1] or is_larger or any(each % _ALIGNED for each in places.values()):
        return None
    values = head.values

    def moved(operation: Operation, effect: Effect, address: tuple[int, ...]) -> tuple[int, ...]:
        if not _touches_shared(effect):
            return address
        found = order.extent_of(values, operation, effect, address)
        by = [
            by for (first, last), by in places.items() if found and first <= found.first and found.end <= last
        ]
        if not by:
            raise ReadError("an access of shared memory that lies in no buffer")
        return values.moved(32, address[0], by[0]), *address[1:]

    return moved


def _touches_shared(effect: Effect) -> bool:
    """True if an effect may touch shared memory: a copy always, synchronization where it has an address."""
    if effect.act in _NOWHERE or (effect.space in _ELSEWHERE and effect.act is not Act.COPY):
        return False
    return bool(effect.address) or effect.act is not Act.SYNC


def _buffers(side: NumberedFunction) -> list[_Buffer]:
    """In the order in which they are accessed first; none where that is not known."""
    events = [event for block in side.blocks for event in block.events]
    accesses = [event for event in events if _touches_shared(event.effect)]
    extents = [order.extent(side.values, event) for event in accesses]
    known = [each for each in extents if each]
    symbols = {each.symbol for each in known}
    is_opaque = any(event.effect.act is Act.OPAQUE for event in events)
    if len(known) < len(extents) or len(symbols) != 1 or is_opaque or _is_read(side, events, symbols):
        return []
    merged: list[_Buffer] = []
    for first, last in sorted((each.first, each.end) for each in known):
        if merged and first < merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return list(dict.fromkeys(next(b for b in merged if b[0] <= each.first < b[1]) for each in known))


def _is_read(side: NumberedFunction, events: list[Event], symbols: set[int]) -> bool:
    """True if anything but accesses of shared memory depends on where it is."""
    keys = side.values.keys

    def below(number: int) -> list[int]:
        is_opaque = keys[number][0] in ("event", "like", "join", "waited for")
        return [] if is_opaque else operands_of(keys[number])

    return not symbols.isdisjoint(reached(_used(side, events), below))


def _used(side: NumberedFunction, events: list[Event]) -> Iterator[int]:
    """Yields what effects, branches and loops use, except the places of accesses of shared memory."""
    for event in events:
        yield from event.operands
        yield from event.address[_touches_shared(event.effect) :]
        yield from (each for each in (event.guard, event.lanes) if each is not None)
    yield from (block.condition for block in side.blocks if block.condition is not None)
    for number, joins in enumerate(side.joins):
        yield from (value for _, values in (side.entering(number) if joins else ()) for value in values)
