"""Finds accesses of memory that base separates by a barrier on every path, and head does not. Pure.

A barrier that is gone matters if two accesses that may touch the same bytes, one of them a writer, are
separated on base and not on head. A *separator* is a barrier, a proxy fence or a wait for tensor memory; all
of these are judged together. Each path from one access to another is described by the separators on it, and
by which of them stand before which. Head orders the two accesses as base does if each path between them has
all separators that base has on the same path of blocks, in the same order.

A `fence.proxy.async.shared::cta` that all threads execute may stand before or behind the barrier: both must
be on the path, in any order (`ways`). It does not count for copies that are still pending when it executes.

Some waits wait only for the older groups of copies or matrix instructions: `cp.async.wait_group 1` in a loop
waits for the copies of earlier rounds, and not for those of the last one. Such a wait is checked twice, once
as if it waited for all groups, and once as if the youngest group were still pending. Both checks must
succeed. No wait for groups waits for what is not committed to a group yet.

If only some threads pass a barrier, these are one barrier ahead of the others from there on, and meet them at
other barriers. AMD's compiler does so on purpose, so that one half of the waves loads while the other
multiplies. What such barriers keep apart is not known here: no change of any barrier or wait is complete.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from irdiff.effects import order, races, ways
from irdiff.effects.nodes import operands_of, reached
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.uniform import Uniform
from irdiff.effects.values import Values
from irdiff.ir.blocks import sources_first
from irdiff.ir.program import PRIVATE, Act

_ACCESSES = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC, Act.COPY, Act.MATRIX, Act.SYNC, Act.OPAQUE})
"""With other synchronization, such as a wait, whose effect a barrier makes known to other threads."""
_SEPARATORS = re.compile(
    r"(?:bar|barrier)(?:\.cta)?\.sync|fence\.proxy\.async|tcgen05\.wait|s_barrier|llvm\..*barrier"
)
_OF_BLOCK = re.compile(rf"(?!bar\.warp){ways.BARRIER.pattern}")
_MAX_ACCESSES = 700


class Lost(NamedTuple):
    pair: tuple[Event, Event] | None
    """Two accesses that are no longer separated; None if there are none."""
    is_complete: bool
    """True if both sides have the same accesses, and none has moved across another synchronization."""


class Separation:
    """Compares the separators of two functions. Keeps its answers."""

    def __init__(self, base: NumberedFunction, head: NumberedFunction) -> None:
        self._base, self._head = base, head
        self._kinds = {
            ways.kind_of(event): n
            for n, event in enumerate(
                each
                for side in (base, head)
                for block in side.blocks
                for each in block.events
                if _SEPARATORS.match(each.operation.name)
            )
        }
        self._lost: dict[object, Lost] = {}
        self._paths_of: dict[tuple[ways.Kind, ...], _Paths] = {}
        self._signatures: dict[int, object] = {}
        """By access."""
        self._decisions: dict[tuple[object, ...], bool] = {}
        self._waits_of_all: dict[int, bool] = {}

    @functools.cached_property
    def _leaves_groups(self) -> bool:
        """True if a wait lets groups stay pending."""
        events = (
            event for side in (self._base, self._head) for block in side.blocks for event in block.events
        )
        waits = (each for each in events if ways.GROUPS.match(each.operation.name))
        counts = (self._base.values.value_of(operand) for each in waits for operand in each.operands)
        return any(count != 0 for count in counts)

    @functools.cached_property
    def _uniform(self) -> Uniform:
        return Uniform(self._base)

    @functools.cached_property
    def is_in_step(self) -> bool:
        """True if all threads pass the same barriers, so that they meet in the same place of the code.

        Compilers let threads choose by their numbers. Threads that load from one address are taken to get the
        same: if they did not, they would miss one another by chance, on base, too.
        """
        return all(
            of_side.is_met_by_all(event)
            for side in (self._base, self._head)
            for of_side in [Uniform(side, are_loads_alike=True)]
            for block in side.blocks
            for event in block.events
            if _OF_BLOCK.match(event.operation.name)
        )

    def lost(self, barrier: Event) -> Lost:
        """Returns accesses that barriers of this kind no longer separate."""
        kind = ways.kind_of(barrier)
        if kind not in self._lost:
            self._lost[kind] = self._compute(barrier)
        return self._lost[kind]

    def _compute(self, barrier: Event) -> Lost:
        kind = ways.kind_of(barrier)
        letters = {each: n for n, each in enumerate({**self._kinds, kind: 0})}
        ours, theirs = _accesses(self._base, letters), _accesses(self._head, letters)
        if len(ours) > _MAX_ACCESSES:
            return Lost(None, False)
        paths, values = self._paths(tuple(letters), tuple(ours)), self._base.values
        accesses = [event for event in ours.values() if not ways.is_own(event)]
        alike = self._alike(accesses, paths.bits)
        are_equal = ours.keys() == theirs.keys()
        is_complete = are_equal and not any(map(_is_of_llvm, ours.values())) and _is_as_ever(values, kind)
        is_complete = is_complete and self.is_in_step and not paths.leave_running
        overlapping, maybe = list[_Pair](), list[_Pair]()
        for other in filter(paths.leads_to, accesses):
            gone, mixed = (paths.worse(other, names) for names in (frozenset({kind}), paths.kinds))
            bare = paths.without_barrier(other, kind)
            for one, own in alike:
                those = own & (gone | mixed if is_complete else gone)
                if not those or self._has_no_part(one, other):
                    continue
                if those & gone and self._may_race(one, other, barrier.operation.name):
                    is_complete = False
                    for each in (event for event in accesses if paths.bits[event.number] & own & bare):
                        (overlapping if races.overlap(values, each, other) else maybe).append((each, other))
                elif is_complete:
                    is_complete = not those & self._without_needed(paths, one, other)
        if not overlapping and are_equal and self._is_alone(kind):  # nothing else can keep them apart
            overlapping = [pair for pair in maybe if races.share_a_buffer(values, *pair)]
        place = {id(event): n for n, event in enumerate(accesses)}
        overlapping.sort(key=lambda pair: (place[id(pair[1])], place[id(pair[0])]))
        return Lost(max(overlapping, key=_is_told_first, default=None), is_complete)

    def _paths(self, letters: tuple[ways.Kind, ...], accesses: tuple[int, ...]) -> _Paths:
        """letters: the kinds of separators."""
        if letters not in self._paths_of:
            numbers = {each: n for n, each in enumerate(letters)}
            bits = {number: 1 << place for place, number in enumerate(accesses)}
            self._paths_of[letters] = _Paths(
                self._base, self._head, numbers, bits, leaves_groups=self._leaves_groups
            )
        return self._paths_of[letters]

    def _alike(self, accesses: Iterable[Event], bits: Mapping[int, int]) -> list[tuple[Event, int]]:
        """Accesses for each of which the same is decided, as one of them and the bits of all."""
        alike = dict[object, tuple[Event, int]]()
        for event in accesses:
            first, own = alike.get(self._signature(event), (event, 0))
            alike[self._signature(event)] = first, own | bits[event.number]
        return [*alike.values()]

    def _signature(self, event: Event) -> object:
        """Returns what decides whether an access may race with another, or needs no barrier."""
        if event.number not in self._signatures:
            effect, name, values = event.effect, event.operation.name, self._base.values
            is_single = ways.ENDS_WAITING.match(name) or races.touches_tensor_memory(event)
            place = event.number if is_single else order.extent(values, event), bool(effect.address)
            self._signatures[event.number] = name, effect.act, effect.space, place
        return self._signatures[event.number]

    def _decided(self, decide: Callable[..., bool], one: Event, other: Event, *name: str) -> bool:
        key = decide, self._signature(one), self._signature(other), *name
        if key not in self._decisions:
            self._decisions[key] = decide(self._base.values, one, other, *name)
        return self._decisions[key]

    def _may_race(self, one: Event, other: Event, fence: str) -> bool:
        return self._decided(races.may_race, one, other, fence)

    def _has_no_part(self, one: Event, other: Event) -> bool:
        return self._is_waited_for_by_all(one, other) or self._decided(races.have_no_part, one, other)

    def _without_needed(self, paths: _Paths, one: Event, other: Event) -> int:
        """The accesses from which head has a way to another without what such a pair needs on it."""
        if not races.ORDERS.isdisjoint((one.effect.act, other.effect.act)):
            return paths.worse(other, frozenset(_felt(one, paths.kinds)))
        if one.operation.keeps_order or other.operation.keeps_order:
            return -1  # a barrier tells all threads what such an access saw
        if len(paths.kinds) < 2:
            return 0
        return paths.worse(other, frozenset(k for k in paths.kinds if self._may_race(one, other, k[0])))

    def _is_alone(self, kind: object) -> bool:
        """True if both sides have equally many separators of every other kind."""
        ours, theirs = (
            Counter(
                own
                for block in side.blocks
                for event in block.events
                if (own := ways.kind_of(event)) in self._kinds and own != kind
            )
            for side in (self._base, self._head)
        )
        return ours == theirs

    def _is_waited_for_by_all(self, one: Event, other: Event) -> bool:
        """True if one of the two is a wait for an `mbarrier` that needs no barrier between it and the other.

        A wait touches only its `mbarrier`, and each thread that waits itself may use what it waited for. But
        an instruction that changes the phase of the `mbarrier` must stay separated from the wait.
        """
        if ways.ENDS_WAITING.match(other.operation.name):
            return one.effect.act is not Act.OPAQUE and not one.operation.name.startswith("mbarrier")
        if other.effect.act in races.ORDERS or ways.SIGNALS.match(other.operation.name):
            return False
        return self._is_wait_of_all(one)

    def _is_wait_of_all(self, event: Event) -> bool:
        is_wait = ways.ENDS_WAITING.match(event.operation.name) is not None and event.guard is None
        if is_wait and event.number not in self._waits_of_all:
            self._waits_of_all[event.number] = self._uniform.is_reached_by_all(event)
        return is_wait and self._waits_of_all[event.number]


_Pair = tuple[Event, Event]


class _Paths:
    """The paths of both sides from one access to another, described by the separators on them."""

    def __init__(
        self,
        base: NumberedFunction,
        head: NumberedFunction,
        letters: Mapping[ways.Kind, int],
        bits: Mapping[int, int],
        *,
        leaves_groups: bool,
    ) -> None:
        self._letters = letters
        self.kinds = frozenset(letters)
        self.bits = bits
        self._both = [
            ways.WaysOfBoth(base, head, letters, bits, is_oldest=is_oldest)
            for is_oldest in ((True, False) if leaves_groups else (True,))
        ]
        self.leave_running = any(both.left_running for both in self._both)
        """True if something still runs where head ends, and base waits for it."""
        self._masks: dict[frozenset[ways.Kind], int] = {}
        self._worse: dict[tuple[int, int, int], int] = {}
        self._of_all = sum(1 << n for kind, n in letters.items() if ways.is_barrier_of_all(kind))

    def leads_to(self, access: Event) -> bool:
        return self._both[0].lead_to(self.bits[access.number])

    def without_barrier(self, access: Event, kind: ways.Kind) -> int:
        """The accesses from which head has a way that lacks a separator of base. If it is a barrier, the way
        has no barrier of all threads either, which would keep apart what this one does.
        """
        is_barrier = ways.BARRIER.match(kind[0]) is not None
        return self.worse(access, frozenset({kind}), self._of_all if is_barrier else 0)

    def worse(self, access: Event, kinds: frozenset[ways.Kind], enough: int = 0) -> int:
        """Applies `WaysOfBoth.worse` to the separators of some kinds."""
        mask = self._masks.get(kinds)
        if mask is None:
            mask = self._masks[kinds] = ways.mask_of(
                {each: n for each, n in self._letters.items() if each in kinds}
            )
        accesses = self._worse.get((access.number, mask, enough))
        if accesses is None:
            accesses = 0
            for both in self._both:
                accesses |= both.worse(self.bits[access.number], mask, enough)
            self._worse[access.number, mask, enough] = accesses
        return accesses


def _is_as_ever(values: Values, kind: ways.Kind) -> bool:
    """True if the predicate and the operands of a separator have the same values in every round of a loop, as
    they do if they are made of constants, parameters and the numbers of threads and programs.
    """
    _, guard, operands = kind
    begin = [*operands, *([] if guard is None else [guard])]
    return not any(
        values.keys[each][0] in ("event", "like", "join", "waited for", "undefined")
        for each in reached(begin, lambda number: operands_of(values.keys[number]))
    )


def _felt(one: Event, kinds: Iterable[ways.Kind]) -> Iterator[ways.Kind]:
    """Yields the kinds of separators that may order something behind an access. A wait of tensor memory is
    either for loads or for stores.
    """
    for kind in kinds:
        name = kind[0]
        is_other = name.startswith("tcgen05.wait::") and not one.operation.name.startswith(
            f"tcgen05.{name.removeprefix('tcgen05.wait::')[:2]}"
        )
        if not is_other or one.effect.act is Act.OPAQUE:
            yield kind


def is_divided(side: NumberedFunction, barrier: Event) -> bool:
    """True if another branch has the same barrier, where specialized warps may meet."""
    ahead, targets = [0] * len(side.graph), [node.targets for node in side.graph]
    for number in reversed(sources_first(targets)):  # a way back leads to a 0, so to no next round of a loop
        ahead[number] = functools.reduce(operator.or_, (ahead[each] for each in targets[number]), 1 << number)
    places = {
        number
        for number, block in enumerate(side.blocks)
        if any(
            ways.BARRIER.match(e.operation.name) and e.operands[:1] == barrier.operands[:1]
            for e in block.events
        )
    }
    own = [number for number in places if barrier in side.blocks[number].events]
    return any(not (ahead[a] >> b & 1 or ahead[b] >> a & 1) for a, b in itertools.product(own, places))


def _accesses(side: NumberedFunction, separators: Collection[tuple[object, ...]]) -> dict[int, Event]:
    events = (event for block in side.blocks for event in block.events)
    return {
        each.number: each
        for each in events
        if each.effect.act in _ACCESSES
        and each.effect.space != PRIVATE
        and ways.kind_of(each) not in separators
    }


def _is_of_llvm(event: Event) -> bool:
    """True for a copy of LLVM IR. The instructions that wait for it are not read here."""
    return event.effect.act is Act.COPY and event.operation.name.startswith("llvm.")


def _is_told_first(pair: tuple[Event, Event]) -> tuple[bool, bool, bool]:
    acts = [event.effect.act for event in pair]
    return Act.SYNC not in acts, Act.STORE in acts, pair[0].effect.space == "shared"
