"""Which accesses of memory may run without a barrier between them, over all paths. Pure.

A barrier that is gone matters where two accesses that may touch the same bytes, one of them a writer, are
kept apart at base and not at head. A way from one access to another is described by the separators on it, and
by which of them stand before which; a way of head is right if base has one that has no more of these.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Collection, Mapping
from typing import NamedTuple

from irdiff.effects import order
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.uniform import Uniform
from irdiff.effects.values import Values
from irdiff.ir.program import PRIVATE, Act

_ACCESSES = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC, Act.COPY, Act.MATRIX, Act.SYNC, Act.OPAQUE})
"""And what other synchronization a barrier makes known to other threads, as a wait."""
_ORDERS = frozenset({Act.SYNC, Act.OPAQUE})
_OWN = re.compile(r"wgmma\.fence|(?:cp\.async|wgmma)\.(?:bulk\.)?(?:commit_group|wait_group|wait_all)")
_GROUPS = re.compile(r"(cp\.async\.bulk|cp\.async|wgmma)\.(commit_group|wait_group|wait_all)")
_SEPARATORS = re.compile(
    r"(?:bar|barrier)(?:\.cta)?\.sync|fence\.proxy\.async|tcgen05\.wait|s_barrier|llvm\..*barrier"
)
_MAX_AGE = 8
"""Groups of copies or matrix instructions, of which the oldest are one."""
_IN_BACKGROUND = re.compile(r"wgmma\.mma_async|cp\.(?:reduce\.)?async\.(?:c[ag]|bulk)|tcgen05\.(?:mma|cp)")
_SIGNALS = re.compile(r"cp\.async\.bulk(?!.*bulk_group)|tcgen05\.(?:mma|cp)")
"""What ends with an `mbarrier`: not a copy to global memory, which a thread waits for by its group."""
_ENDS_WAITING = re.compile(r"mbarrier\.(?:try|test)_wait")
_PREPARES = re.compile(r"mbarrier\.(?:init|inval)|tcgen05\.(?:alloc|relinquish_alloc_permit)")
_PREPARES_OR_TELLS = re.compile(rf"{_PREPARES.pattern}|mbarrier\.arrive|tcgen05\.commit")
_COPIES = re.compile(r"cp\.async\.c[ag]\.shared\.global")
_OF_ALL = re.compile(r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?$")
_BARRIER = re.compile(r"(?:s_|llvm\..*\.)?bar")
_MAX_ACCESSES = 700


class Lost(NamedTuple):
    pair: tuple[Event, Event] | None
    """Two that are not kept apart any more; None where there are none."""
    is_complete: bool
    """Whether all accesses are the same, and none stands on another side of another synchronization."""


class Separation:
    """Of two functions, with what it was asked before."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction) -> None:
        self._base, self._head = base, head
        self._kinds = {
            kind_of(event): n
            for n, event in enumerate(
                each
                for side in (base, head)
                for block in side.blocks
                for each in block.events
                if _SEPARATORS.match(each.operation.name)
            )
        }
        self._lost: dict[object, Lost] = {}
        self._waits_of_all: dict[int, bool] = {}

    @functools.cached_property
    def _leaves_groups(self) -> bool:
        """Whether any wait leaves groups unfinished."""
        events = (
            event for side in (self._base, self._head) for block in side.blocks for event in block.events
        )
        waits = (each for each in events if _GROUPS.match(each.operation.name))
        counts = (self._base.values.value_of(operand) for each in waits for operand in each.operands)
        return any(count != 0 for count in counts)

    @functools.cached_property
    def _uniform(self) -> Uniform:
        return Uniform(self._base)

    def lost(self, barrier: Event) -> Lost:
        """By barriers like this."""
        kind = kind_of(barrier)
        if kind not in self._lost:
            self._lost[kind] = self._compute(barrier)
        return self._lost[kind]

    def _compute(self, barrier: Event) -> Lost:
        letters = {each: n for n, each in enumerate({**self._kinds, kind_of(barrier): 0})}
        ours, theirs = _accesses(self._base, letters), _accesses(self._head, letters)
        if len(ours) > _MAX_ACCESSES:
            return Lost(None, False)
        bits = {number: 1 << place for place, number in enumerate(ours)}
        sides = [
            [_ways(side, letters, bits, is_oldest=is_oldest) for side in (self._base, self._head)]
            for is_oldest in ((True, False) if self._leaves_groups else (True,))
        ]

        def worse(other: int, mask: int) -> int:
            found = 0
            for a, b in sides:
                before, after = a.get(other, {}), b[other]
                found |= _worse(before, after, mask) if before != after else 0
            return found

        own, values = 1 << letters[kind_of(barrier)], self._base.values
        all_ = _mask(letters.values())
        numbers = [number for number, event in ours.items() if not is_own(event)]
        others = sum(bits[number] for number in numbers)
        is_complete = ours.keys() == theirs.keys() and not any(map(_is_of_llvm, ours.values()))
        found, maybe = list[_Pair](), list[_Pair]()
        for other in (number for number in numbers if number in sides[0][1]):
            gone, mixed = (worse(other, mask) & others for mask in (own, all_))
            for one in numbers:
                if not bits[one] & (gone | mixed if is_complete else gone):
                    continue
                pair = ours[one], ours[other]
                if self._is_waited_for_by_all(*pair) or _have_no_part(values, *pair):
                    continue
                if gone & bits[one] and _may_race(values, *pair, barrier.operation.name):
                    is_complete = False
                    (found if _overlap(values, *pair) else maybe).append(pair)
                elif not _ORDERS.isdisjoint(event.effect.act for event in pair):
                    is_complete = False
                elif is_complete and len(letters) > 1:
                    needed = [n for each, n in letters.items() if _may_race(values, *pair, str(each[0]))]
                    is_complete = not bits[one] & worse(other, _mask(needed))
        if not found and ours.keys() == theirs.keys() and self._is_alone(kind_of(barrier)):
            # nothing else can keep them apart
            found = [pair for pair in maybe if _share_a_buffer(values, *pair)]
        return Lost(max(found, key=_is_told_first, default=None), is_complete)

    def _is_alone(self, kind: object) -> bool:
        """Whether separators of this kind are all that one side has more of."""
        ours, theirs = (
            Counter(
                own
                for block in side.blocks
                for event in block.events
                if (own := kind_of(event)) in self._kinds and own != kind
            )
            for side in (self._base, self._head)
        )
        return ours == theirs

    def _is_waited_for_by_all(self, one: Event, other: Event) -> bool:
        """Whether one is a wait for an `mbarrier` that has nothing to do with the other.

        It touches nothing but the `mbarrier`. What it waits for, each thread may use that waits itself; what
        changes the phase has to be kept from it.
        """
        if _ENDS_WAITING.match(other.operation.name):
            return one.effect.act is not Act.OPAQUE and not one.operation.name.startswith("mbarrier")
        if other.effect.act in _ORDERS or _SIGNALS.match(other.operation.name):
            return False
        return self._is_wait_of_all(one)

    def _is_wait_of_all(self, event: Event) -> bool:
        is_wait = _ENDS_WAITING.match(event.operation.name) is not None and event.guard is None
        if is_wait and event.number not in self._waits_of_all:
            self._waits_of_all[event.number] = self._uniform.is_reached_by_all(event)
        return is_wait and self._waits_of_all[event.number]


_Pair = tuple[Event, Event]
_Ways = dict[int, int]
"""By separators, as a bit for each that stands on a way and for each that stands before another, the accesses
that such a way begins at, by their bits."""
_MOST = 1 << 6


def _mask(letters: Collection[int]) -> int:
    return sum(1 << n for n in letters) | sum(_before(a, b) for a in letters for b in letters if a != b)


def _before(one: int, other: int) -> int:
    return 1 << _MOST + one * _MOST + other


def _longer(way: int, letter: int) -> int:
    """A way with a separator at its end."""
    others = way & (1 << _MOST) - 1 & ~(1 << letter)
    while others:
        one = others & -others
        way |= _before(one.bit_length() - 1, letter)
        others ^= one
    return way | 1 << letter


def _worse(before: _Ways, after: _Ways, mask: int) -> int:
    """The accesses from which head has a way that every one of base has more on, of separators in a mask."""
    found = 0
    for way, accesses in after.items():
        if not mask & ~way:
            continue
        left = accesses
        for own, mine in before.items():
            if not own & mask & ~way:
                left &= ~mine
        found |= left
    return found


def is_divided(side: NumberedFunction, barrier: Event) -> bool:
    """Whether another branch has the same barrier: there, specialized warps may meet."""
    ahead, seen, open_ = [0] * len(side.graph), {0}, [0]
    while open_:  # `ahead` of an open block is still 0, so no way leads through the next round of a loop
        number, targets = open_[-1], side.graph[open_[-1]].targets
        if new := [target for target in targets if target not in seen]:
            seen.add(new[0])
            open_.append(new[0])
        else:
            ahead[number] = functools.reduce(operator.or_, (ahead[each] for each in targets), 1 << number)
            open_.pop()
    places = {
        number
        for number, block in enumerate(side.blocks)
        if any(
            _BARRIER.match(e.operation.name) and e.operands[:1] == barrier.operands[:1] for e in block.events
        )
    }
    own = [number for number in places if barrier in side.blocks[number].events]
    return any(not (ahead[a] >> b & 1 or ahead[b] >> a & 1) for a, b in itertools.product(own, places))


def _accesses(side: NumberedFunction, separators: Collection[tuple[object, ...]]) -> dict[int, Event]:
    events = (event for block in side.blocks for event in block.events)
    return {
        each.number: each
        for each in events
        if each.effect.act in _ACCESSES and each.effect.space != PRIVATE and kind_of(each) not in separators
    }


class _Running:
    """What runs in the background: of each kind by groups, the youngest first; the first is not complete."""

    def __init__(self, groups: Mapping[str, tuple[int, ...]], *, is_told: bool, is_oldest: bool) -> None:
        self.groups = dict(groups)
        self._is_oldest = is_oldest
        """Whether a wait ends all: so it is for what the oldest round of a loop began."""
        self._is_told = is_told
        """Whether copies tell an `mbarrier` that they have ended."""

    def all(self) -> int:
        return functools.reduce(operator.or_, itertools.chain(*self.groups.values()), 0)

    def add(self, name: str, bit: int) -> None:
        name = name.replace("cp.reduce.", "cp.")
        kind = next((each for each in ("cp.async.bulk", "cp.async", "wgmma") if name.startswith(each)), name)
        first, *others = self.groups.get(kind, (0,))
        self.groups[kind] = (first | bit, *others)

    def after(self, event: Event, values: Values) -> None:
        name = event.operation.name
        if _ENDS_WAITING.match(name):
            kept = ("wgmma",) if self._is_told else ("wgmma", "cp.async")
            self.groups = {kind: own for kind, own in self.groups.items() if kind in kept}
        elif group := _GROUPS.match(name):
            kind, word = group.groups()
            own = self.groups.get(kind, (0,))
            if word == "commit_group":
                older = functools.reduce(operator.or_, own[_MAX_AGE - 1 :], 0)
                self.groups[kind] = (0, *own[: _MAX_AGE - 1], *([older] if older else []))
            else:
                left = [values.value_of(each) for each in event.operands]
                is_all = word != "wait_group" or self._is_oldest
                count = -1 if is_all else next((each for each in left if each is not None), 0)
                self.groups[kind] = own[: count + 1] or (0,)

    def joined(self, other: _Running) -> _Running:
        both = {
            kind: tuple(
                itertools.starmap(
                    operator.or_,
                    itertools.zip_longest(
                        self.groups.get(kind, (0,)), other.groups.get(kind, (0,)), fillvalue=0
                    ),
                )
            )
            for kind in {**self.groups, **other.groups}
        }
        return _Running(both, is_told=self._is_told, is_oldest=self._is_oldest)


def _ways(
    side: NumberedFunction,
    letters: Mapping[tuple[object, ...], int],
    bits: Mapping[int, int],
    *,
    is_oldest: bool,
) -> dict[int, _Ways]:
    """By access, the ways to it from others.

    A barrier of threads does not wait for what runs in the background: its thread waits before.
    """
    names = {event.operation.name for block in side.blocks for event in block.events}
    is_told = any(each.startswith("cp.async.mbarrier") for each in names)
    start = _Running({}, is_told=is_told, is_oldest=is_oldest)
    entering = [(_Ways(), start)] * len(side.graph)
    found = dict[int, _Ways]()
    at_line = dict[int, int]()
    for event in (event for block in side.blocks for event in block.events if event.number in bits):
        at_line[event.line] = at_line.get(event.line, 0) | bits[event.number]
    waiting = list(range(len(entering)))[::-1]
    while waiting:
        number = waiting.pop()
        before, running = dict(entering[number][0]), entering[number][1].joined(start)
        for event in side.blocks[number].events:
            name = event.operation.name
            if event.number in bits:
                own = found.setdefault(event.number, {})
                for way, accesses in before.items():
                    own[way] = own.get(way, 0) | accesses
                before[0] = before.get(0, 0) | bits[event.number]
                if _IN_BACKGROUND.match(name):
                    running.add(name, bits[event.number])
            elif (letter := letters.get(kind_of(event))) is not None:
                late = functools.reduce(operator.or_, (at_line.get(line, 0) for line in event.pending), 0)
                before = _separated(before, letter, late | (running.all() if _BARRIER.match(name) else 0))
            running.after(event, side.values)
        for target in side.graph[number].targets:
            ways, others = entering[target]
            both = dict(ways)
            for way, accesses in before.items():
                both[way] = both.get(way, 0) | accesses
            together = others.joined(running)
            if both != ways or together.groups != others.groups:
                entering[target] = both, together
                waiting.append(target)
    return found


def _separated(ways: _Ways, letter: int, late: int) -> _Ways:
    """Longer by a separator, but for accesses that it comes too early for."""
    found = _Ways()
    for way, accesses in ways.items():
        for new, those in ((way, accesses & late), (_longer(way, letter), accesses & ~late)):
            if those:
                found[new] = found.get(new, 0) | those
    return found


def _is_of_llvm(event: Event) -> bool:
    """Whether it is a copy of LLVM IR: what waits for it is not read here."""
    return event.effect.act is Act.COPY and event.operation.name.startswith("llvm.")


def _is_told_first(pair: tuple[Event, Event]) -> tuple[bool, bool, bool]:
    acts = [event.effect.act for event in pair]
    return Act.SYNC not in acts, Act.STORE in acts, pair[0].effect.space == "shared"


def is_own(event: Event) -> bool:
    """Whether it is a thread's own wait, group or order of registers: others see what it waits for."""
    return _OWN.match(event.operation.name) is not None


def is_of_all(values: Values, event: Event) -> bool:
    """Whether it is a barrier that all threads of a block come to."""
    is_plain = event.guard is None and [values.value_of(each) for each in event.operands] == [0]
    return is_plain and _OF_ALL.match(event.operation.name) is not None


def kind_of(barrier: Event) -> tuple[object, ...]:
    """What separates accesses alike: a barrier of all threads has several names."""
    name = "bar.sync" if _OF_ALL.match(barrier.operation.name) else barrier.operation.name
    return name, barrier.guard, barrier.operands


def _may_race(values: Values, one: Event, other: Event, fence: str) -> bool:
    """Two that may touch the same bytes, a writer among them.

    A fence of proxies stands between an access of the generic proxy, or an `mbarrier`, and a later one of the
    asynchronous proxy; the other way around a wait is such a fence (PTX ISA, "Async proxy"). A wait of tensor
    memory stands between a load or store of a thread and what writes, reads or tells others; who reads the
    registers of a load waits for it anyway (PTX ISA, "tcgen05 Memory Consistency Model").
    """
    if _GROUPS.match(fence) and not _IN_BACKGROUND.match(one.operation.name):
        return False
    if fence.startswith("tcgen05.wait"):
        is_own = _word(one) == f"tcgen05.{fence.removeprefix('tcgen05.wait::')[:2]}"
        if is_own and other.operation.name.startswith("mbarrier.arrive"):
            return True
        if other.effect.act in _ORDERS:
            return False
        is_apart = not is_own or order.are_apart(values, one, other)
        is_init = False
    elif "proxy" in fence:
        is_apart = _is_asynchronous(one) or not _is_asynchronous(other) or _spaces(one) == {"tensor"}
        is_init = one.operation.name.startswith("mbarrier.init")
    else:  # what ends with an `mbarrier` is waited for there
        is_apart = other.effect.act in _ORDERS or _are_of_one_warp(values, one, other)
        is_apart, is_init = is_apart or _SIGNALS.match(one.operation.name) is not None, False
    if is_apart or (one.effect.act in _ORDERS and not is_init):
        return False
    acts = one.effect.act, other.effect.act
    only_read = Act.LOAD in acts and {*acts} <= {
        Act.LOAD,
        Act.MATRIX,
    }  # a matrix unit only reads shared memory
    if only_read or (acts == (Act.MATRIX, Act.MATRIX) and _word(one) == _word(other)):
        return False
    return bool(_spaces(one) & _spaces(other)) and not order.never_meet(values, one, other)


def _have_no_part(values: Values, one: Event, other: Event) -> bool:
    """Whether nothing passes between two, one of which is a plain access.

    What prepares an `mbarrier` or tensor memory only touches what it names. What tells an `mbarrier` tells of
    what is before it: whoever hears of it may come before or after an access behind it.
    """
    if _is_plain(other) and _PREPARES_OR_TELLS.match(one.operation.name):
        sync, access = one, other
    elif _is_plain(one) and _PREPARES.match(other.operation.name):
        sync, access = other, one
    else:
        return False
    is_elsewhere = access.effect.space == "global" or not sync.effect.address
    return is_elsewhere or order.never_meet(values, sync, access)


def _is_plain(event: Event) -> bool:
    is_access = event.effect.act in (Act.LOAD, Act.STORE) or _COPIES.match(event.operation.name)
    return bool(is_access) and not event.operation.keeps_order


def _overlap(values: Values, one: Event, other: Event) -> bool:
    """Whether two accesses are seen to touch common bytes, in some threads."""
    ours, theirs = order.extent(values, one), order.extent(values, other)
    if ours and theirs and ours.symbol == theirs.symbol:
        return True
    own = [
        (each.address[:-1], values.linear(32, each.address[-1])[1]) for each in (one, other) if each.address
    ]
    return len(own) == 2 and own[0] == own[1] and _share_a_buffer(values, one, other)


def _share_a_buffer(values: Values, one: Event, other: Event) -> bool:
    """Whether two accesses of global memory begin at one pointer: where others are is not known."""
    if "global" not in _spaces(one) & _spaces(other):
        return True
    pointers = [
        {
            *event.address[:-1],
            *(atom for atom, times in values.linear(64, event.address[-1])[1] if times == 1),
        }
        if event.address
        else set[int]()
        for event in (one, other)
    ]
    return bool(pointers[0] & pointers[1])


def _is_asynchronous(event: Event) -> bool:
    """Whether the asynchronous proxy accesses shared memory."""
    name = event.operation.name
    is_matrix = event.effect.act is Act.MATRIX and "shared" in _spaces(event)
    return is_matrix or (event.effect.act is Act.COPY and "bulk" in name)


def _are_of_one_warp(values: Values, one: Event, other: Event) -> bool:
    """A warp reaches only its 32 lanes of tensor memory; of two that share lanes, addresses differ."""
    is_own = {_word(one), _word(other)} <= {"tcgen05.ld", "tcgen05.st"}
    forms = [values.linear(32, each.address[-1])[1] for each in (one, other) if each.address]
    return is_own and len(forms) == 2 and forms[0] == forms[1]


def _word(event: Event) -> str:
    return ".".join(event.operation.name.split(".")[:2])


def _spaces(event: Event) -> set[str]:
    """A copy has shared memory at one end; `tcgen05` works on tensor memory, `mma` and `cp` on both."""
    if not (word := _word(event)).startswith("tcgen05."):
        return {event.effect.space or "shared"}
    return {"tensor"} if word in ("tcgen05.ld", "tcgen05.st", "tcgen05.shift") else {"tensor", "shared"}
