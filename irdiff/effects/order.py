"""Decides which effects of one block must keep their order, and finds those that did not. Pure.

Two effects of one thread keep their order if they may touch the same bytes and one of them writes, or if one
of them acquires, releases or is volatile. A `wgmma.fence` orders accesses to registers only. So it keeps its
order with matrix instructions, and not with barriers or fences of memory.

Two accesses may also have changed places across a barrier: base makes A before the barrier and B behind it,
head makes B before it and A behind it. Within one thread they may touch different bytes, and yet A of one
thread may touch the bytes of B of another thread. So their order counts, unless no two threads touch the same
bytes (`meet_in_threads`). Two loads may change places across a barrier, unless one of them acquires or is
volatile: all threads behind the barrier rely on what this load saw.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from irdiff.effects.numbering import Event
from irdiff.effects.values import Values
from irdiff.ir.program import PRIVATE, Act, Effect, Operation

_WITHOUT_ORDER = frozenset({Act.LANES, Act.STATES})
_IN_ORDER = frozenset({Act.SYNC, Act.OPAQUE, Act.MATRIX, Act.COPY})
_READS = frozenset({Act.LOAD})
_ONLY_WRITES = re.compile(r"mbarrier\.(?:init|inval)|cp\.async\.c[ag]\.shared\.global")
_NAMES_SHARED = re.compile(r"(?:(mbarrier|tcgen05\.commit)|tcgen05\.alloc)\b.*\.shared\b")
"""Instructions on an `mbarrier` (8 bytes), or that write an address (4 bytes)."""
_FENCE_OF_REGISTERS = re.compile(r"wgmma\.fence\b")
_COLUMNS = re.compile(r"tcgen05\.(?:ld|st)\b.*?\.x(\d+)\.")


def meet(values: Values, one: Event, other: Event) -> bool:
    """True if two effects of one thread must keep their order."""
    ours, theirs = one.effect, other.effect
    acts = {ours.act, theirs.act}
    if acts & _WITHOUT_ORDER or (Act.SYNC in acts and PRIVATE in (ours.space, theirs.space)):
        return False
    if one.operation.keeps_order or other.operation.keeps_order:
        return True
    if acts == {Act.SYNC} and _orders_registers_alone(one, other):
        return False
    if acts <= _READS or _only_touch_others(values, one, other):
        return False
    if acts & _IN_ORDER or not ours.space or not theirs.space:
        return True
    return ours.space == theirs.space and not are_apart(values, one, other)


def meet_in_threads(values: Values, one: Event, other: Event) -> bool:
    """True if other threads demand that two accesses with a barrier between them keep their order."""
    acts, spaces = {one.effect.act, other.effect.act}, {one.effect.space, other.effect.space}
    if acts <= _READS or acts & _WITHOUT_ORDER or PRIVATE in spaces or Act.SYNC in acts:
        return False
    return (len(spaces) == 1 or "" in spaces) and not never_meet(values, one, other)


def _orders_registers_alone(one: Event, other: Event) -> bool:
    """True for a `wgmma.fence` and a synchronization that is not of matrix instructions.

    A `wgmma.fence` orders only what a thread and its matrix instructions do to registers (PTX ISA,
    "wgmma.fence").
    """
    names = one.operation.name, other.operation.name
    are_of_matrices = [name.startswith("wgmma.") for name in names]
    return any(map(_FENCE_OF_REGISTERS.match, names)) and not all(are_of_matrices)


def _only_touch_others(values: Values, one: Event, other: Event) -> bool:
    """True for two copies to shared memory, or two instructions that make or end an `mbarrier`, that write
    different bytes.
    """
    names = one.operation.name, other.operation.name
    return all(map(_ONLY_WRITES.match, names)) and never_meet(values, one, other)


def same_bytes(values: Values, one: Event, other: Event) -> bool:
    """True if two accesses certainly touch a common byte."""
    base, first, end = _place(values, one)
    behind, begin, last = _place(values, other)
    return one.effect.space == other.effect.space and base == behind != () and first < last and begin < end


def never_meet(values: Values, one: Event, other: Event) -> bool:
    """True if two accesses of shared memory touch no common byte, whichever threads execute them."""
    ours, theirs = extent(values, one), extent(values, other)
    if not ours or not theirs or ours.symbol != theirs.symbol:
        return False
    if ours.is_apart(theirs):
        return True
    largest = 1 << (max(ours.size, theirs.size) - 1).bit_length()  # accesses are aligned to their sizes
    varying = ours.varying | theirs.varying | (largest - 1)
    is_symbol = ours.symbol >= 0
    return is_symbol and not (ours.first | theirs.first) & varying and ours.first != theirs.first


class Extent(NamedTuple):
    """The bytes of shared memory that an access touches in all threads together."""

    symbol: int
    """The number of the value that `first` is added to; -1 if `first` is an address by itself."""
    first: int
    varying: int
    """The bits that may be set in what a thread adds to `first`."""
    size: int

    @property
    def end(self) -> int:
        return self.first + self.varying + self.size

    def is_apart(self, other: Extent) -> bool:
        """True if one ends before the other begins. Both must have the same symbol."""
        return self.end <= other.first or other.end <= self.first


def extent(values: Values, event: Event) -> Extent | None:
    """Returns None if the bytes are not known."""
    if event.number not in values.extents:
        found = extent_of(values, event.operation, event.effect, event.address)
        values.extents[event.number] = found
    known: Extent | None = values.extents[event.number]
    return known


def extent_of(values: Values, operation: Operation, effect: Effect, parts: Sequence[int]) -> Extent | None:
    name = operation.name
    is_copy = re.match(r"cp\.async\.c\w\.shared\.global", name)
    size = 16 if "matrix" in name else effect.size  # a thread names a row of `ldmatrix`
    if names := _NAMES_SHARED.match(name):
        size = 8 if names[1] else 4
    if is_copy:
        size = next((each for each in operation.operands if isinstance(each, int)), 16)
    if not size or not parts or not (effect.space == "shared" or is_copy or names):
        return None
    address = parts[0]
    width = 64 if values.keys[address][:2] == ("sum", 64) else 32  # a register, some bytes further
    constant, terms = values.linear(width, address)
    symbols = [atom for atom, times in terms if times == 1 and _is_symbol(values, atom)]
    for symbol in symbols:
        address = values.add(width, address, symbol, -1)
    varying = values.bits(values.add(width, address, values.constant(constant), -1))
    if len(symbols) > 1 or constant < 0 or varying < 0 or varying >> 31:
        return None
    return Extent(symbols[0] if symbols else -1, constant, varying, size)


def _is_symbol(values: Values, number: int) -> bool:
    """False for special registers, because they may differ between threads."""
    key = values.keys[number]
    return key[0] == "text" and not str(key[1]).startswith("%")


def are_apart(values: Values, one: Event, other: Event) -> bool:
    (base, first, end), (behind, begin, last) = _place(values, one), _place(values, other)
    return base == behind != () and (end <= begin or last <= first)


def _place(values: Values, event: Event) -> tuple[tuple[object, ...], int, int]:
    """Returns (the variable part of the address, the first byte, the byte after the last). Two accesses can
    be compared only if their variable parts are equal.

    Of tensor memory it counts columns instead of bytes. Its addresses have a lane in the upper 16 bits, and a
    column in the lower 16 bits.
    """
    columns = _COLUMNS.match(event.operation.name)
    size = int(columns.group(1)) if columns else event.effect.size
    if not event.address or not size:
        return (), 0, 0
    width = 64 if event.effect.space in ("", "global") and not columns else 32
    constant, terms = values.linear(width, event.address[-1])
    if columns:
        constant &= 0xFFFF
        if "16x32bx2" in event.operation.name:  # the first operand says where the second half begins
            second = values.value_of(event.operands[0])
            if second is None:
                return (), 0, 0
            size += second
    return (event.address[:-1], terms), constant, constant + size


def exchanged(
    values: Values, base: Sequence[Event], head: Sequence[Event], partners: Mapping[int, Event | None]
) -> list[tuple[Event, Event]]:
    """Lists pairs of effects, in base's order, that must keep their order and have the other order on head.

    If both sides have synchronization between the two, `meet_in_threads` decides, too. For each barrier, and
    for all pairs without one, it lists only the pair that a reader should see first.
    partners: by `id` of an effect, base's effect that corresponds to an edited one; None for an effect that
    only one side has.
    """
    base, counts = [event for event in base if partners.get(id(event), event)], _synchronizations(base)
    place: dict[tuple[int, int], int] = {}
    seen = Counter[int]()
    for n, event in enumerate(head):
        if like := partners.get(id(event), event):
            place[like.like, seen[like.like]] = n
            seen[like.like] += 1
    base = [event for event in base if event.effect.act not in _WITHOUT_ORDER]
    seen.clear()
    places = list[int]()
    for event in base:
        places.append(place[event.like, seen[event.like]])
        seen[event.like] += 1
    start = next((n for n, at in enumerate(places) if n != at), len(places))
    own = [*_synchronizations(head).values()]
    swapped = (
        (base[earlier], base[later])
        for later in range(start, len(places))
        for earlier in range(start, later)
        if places[earlier] > places[later]
        and (
            meet(values, base[earlier], base[later])
            or (
                counts[id(base[earlier])] < counts[id(base[later])]
                and own[places[later]] < own[places[earlier]]
                and meet_in_threads(values, base[earlier], base[later])
            )
        )
    )
    first: dict[object, tuple[Event, Event]] = {}
    for pair in sorted(swapped, key=_told_first, reverse=True):
        first.setdefault(next((each.number for each in pair if each.effect.act is Act.SYNC), None), pair)
    return list(first.values())


def _synchronizations(events: Sequence[Event]) -> dict[int, int]:
    """Counts the synchronizations in front of each event, by the `id` of the event."""
    counts = itertools.accumulate((each.effect.act is Act.SYNC for each in events), initial=0)
    return dict(zip(map(id, events), counts, strict=False))


def _told_first(pair: tuple[Event, Event]) -> list[bool]:
    return [act in (each.effect.act for each in pair) for act in _TOLD_FIRST]


_TOLD_FIRST = (Act.SYNC, Act.MATRIX, Act.COPY, Act.STORE)
