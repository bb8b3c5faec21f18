"""Which accesses of memory may run without a barrier between them, over all paths. Pure.

A barrier that is gone matters where two accesses that may touch the same bytes, one of them a writer, are
kept apart at base and not at head. Where head keeps all of them apart, it is not missed.
"""

from __future__ import annotations

import functools
import itertools
import operator
import re
from collections.abc import Mapping
from typing import NamedTuple

from irdiff.effects import order
from irdiff.effects.numbering import Event, NumberedFunction
from irdiff.effects.values import Values
from irdiff.ir.program import PRIVATE, Act

_ACCESSES = frozenset({Act.LOAD, Act.STORE, Act.ATOMIC, Act.COPY, Act.MATRIX, Act.SYNC, Act.OPAQUE})
"""And what other synchronization a barrier makes known to other threads, as a wait."""
_ORDERS = frozenset({Act.SYNC, Act.OPAQUE})
_GROUP = re.compile(r"(?:cp\.async|wgmma)\.(?:bulk\.)?(commit|wait)[._]group")
_IN_BACKGROUND = re.compile(r"wgmma\.mma_async|cp\.async\.(?:c[ag]|bulk)|tcgen05\.(?:mma|cp)")
_SIGNALS = re.compile(r"cp\.async\.bulk|tcgen05\.(?:mma|cp)")
_ENDS_WAITING = re.compile(r"mbarrier\.(?:try|test)_wait")
_OF_ALL = re.compile(r"(?:bar|barrier)(?:\.cta)?\.sync(?:\.aligned)?$")
_BARRIER = re.compile(r"(?:s_|llvm\..*\.)?bar")
_MAX_ACCESSES = 700


class Lost(NamedTuple):
    pair: tuple[Event, Event] | None
    """Two that are not kept apart any more; None where there are none."""
    is_complete: bool
    """Whether all accesses are the same, and none stands on another side of another synchronization."""


def lost(base: NumberedFunction, head: NumberedFunction, barrier: Event) -> Lost:
    """By barriers like this."""
    kind = kind_of(barrier)
    ours, theirs = _accesses(base, kind), _accesses(head, kind)
    is_complete = ours.keys() == theirs.keys()
    if len(ours) > _MAX_ACCESSES:
        return Lost(None, False)
    bits = {number: 1 << place for place, number in enumerate(ours)}
    before, found, maybe = (
        _together(base, kind, bits),
        list[tuple[Event, Event]](),
        list[tuple[Event, Event]](),
    )
    for other, ahead in _together(head, kind, bits).items():
        new = ahead & ~before.get(other, 0)
        for one in (number for number, bit in bits.items() if new & bit) if new else ():
            pair = ours[one], ours[other]
            if _is_own(*pair):
                continue
            if _may_race(base.values, *pair, barrier.operation.name):
                (found if _overlap(base.values, *pair) else maybe).append(pair)
            elif not _ORDERS.isdisjoint(event.effect.act for event in pair):
                is_complete = False
    if (
        not found and ours.keys() == theirs.keys()
    ):  # where all else is equal, nothing else can keep them apart
        found = [pair for pair in maybe if _share_a_buffer(base.values, *pair)]
    return Lost(max(found, key=_is_told_first, default=None), is_complete and not maybe)


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


def _accesses(side: NumberedFunction, barrier: object) -> dict[int, Event]:
    events = (event for block in side.blocks for event in block.events)
    return {
        each.number: each
        for each in events
        if each.effect.act in _ACCESSES and each.effect.space != PRIVATE and kind_of(each) != barrier
    }


def _together(side: NumberedFunction, barrier: object, bits: Mapping[int, int]) -> dict[int, int]:
    """By access, those that may stand before it behind the last barrier, by their bits.

    A barrier of threads does not wait for what runs in the background: its thread waits before.
    """
    entering, found = [(0, 0)] * len(side.graph), dict[int, int]()
    at_line = dict[int, int]()
    for event in (event for block in side.blocks for event in block.events if event.number in bits):
        at_line[event.line] = at_line.get(event.line, 0) | bits[event.number]
    waiting = list(range(len(entering)))[::-1]
    while waiting:
        number = waiting.pop()
        before, running = entering[number]
        for event in side.blocks[number].events:
            name = event.operation.name
            if event.number in bits:
                found[event.number] = found.get(event.number, 0) | before
                before |= bits[event.number]
                running |= bits[event.number] if _IN_BACKGROUND.match(name) else 0
            elif kind_of(event) == barrier:
                late = functools.reduce(operator.or_, (at_line.get(line, 0) for line in event.pending), 0)
                before &= late | (running if name.startswith("bar") else 0)
            if "wait" in _GROUP.findall(name) or _ENDS_WAITING.match(name):
                running = 0
        for target in side.graph[number].targets:
            own, others = entering[target], (before, running)
            both = own[0] | others[0], own[1] | others[1]
            if both != own:
                entering[target] = both
                waiting.append(target)
    return found


def _is_told_first(pair: tuple[Event, Event]) -> tuple[bool, bool, bool]:
    acts = [event.effect.act for event in pair]
    return Act.SYNC not in acts, Act.STORE in acts, pair[0].effect.space == "shared"


def _is_own(one: Event, other: Event) -> bool:
    """Whether the second is a thread's own wait or group, or the first its group: no other thread sees it."""
    return bool(_GROUP.search(other.operation.name) or "commit" in (_GROUP.findall(one.operation.name)))


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
