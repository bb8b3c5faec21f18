"""Counts the iterations of a loop that repeat, and does not run them.

A loop repeats with period p when two periods in a row execute the same accesses and comparisons in the same
order, and every register at the loop's head moved by the same amount in both. Then no comparison changes its
outcome before the first one whose difference reaches zero, and all periods up to there cost the same. They are
added to the tally at once, registers move ahead, and the next period is executed: if it does not do what was
foreseen, everything is put back and the loop is run instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irdiff.work import coalescing
from irdiff.work.accesses import SECTORS, WAVEFRONTS, Event, Memory, Tally
from irdiff.work.state import UNKNOWN, Array, Snapshot, State, Value

MAX_PERIOD = 8
_SHARED_LINE_BYTES = 128


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of integers in an iteration: both sides as int64."""

    place: int
    left: Array | None
    right: Array | None
    kind: str
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival at a loop's head."""

    snapshot: Snapshot
    sure: Array
    beyond: Array
    first_event: int


@dataclass
class Loop:
    """What is kept of a loop while it runs."""

    head: int
    mask: Array
    arrivals: list[Arrival] = field(default_factory=list)
    disabled: bool = False
    foreseen: Foreseen | None = None
    jumps: int = 0


@dataclass
class Foreseen:
    """The state before a jump, and what the period after it must do."""

    snapshot: Snapshot
    sure: Array
    beyond: Array
    events: list[Any]
    jump: int
    left: int
    first_event: int


@dataclass
class EndlessLoop(Exception):
    head: int


@dataclass
class Repeater:
    state: State
    tally: Tally
    memory: Memory
    loops: dict[int, Loop] = field(default_factory=dict)

    @property
    def recording(self) -> bool:
        return bool(self.loops)

    def compared(self, place: int, left: Value, right: Value, words: Sequence[str]) -> None:
        """Notes a comparison of the iteration that runs."""
        unsigned = "U32" in words
        kind = next((word for word in words if word in ("LT", "LE", "GT", "GE", "EQ", "NE")), "EQ")
        sides = [None if value is None else (value if unsigned else value.view(np.int32)).astype(np.int64)
                 for value, _ in (left, right)]  # fmt: skip
        least, most = (0, 2**32 - 1) if unsigned else (-(2**31), 2**31 - 1)
        self.memory.events.append(Comparison(place, sides[0], sides[1], kind, least, most))

    def left_loop(self, head: int) -> None:
        self.loops.pop(head, None)
        if not self.loops:
            self.memory.events.clear()

    def arrive(self, head: int, tail: int, mask: Array) -> None:
        """The lanes of `mask` begin another iteration."""
        for inner in [key for key in self.loops if head < key <= tail]:
            del self.loops[inner]
        loop = self.loops.get(head)
        if loop is None or (loop.mask is not mask and not np.array_equal(loop.mask, mask)):
            loop = Loop(head=head, mask=mask, disabled=bool(loop and loop.disabled))
            self.loops[head] = loop
        if loop.disabled:
            return
        places = slice(head, tail + 1)
        if loop.foreseen is not None:
            loop.foreseen.left -= 1
            if loop.foreseen.left == 0:
                self._verify(loop, places)
        loop.arrivals.append(
            Arrival(
                snapshot=self.state.snapshot(),
                sure=self.tally.sure[:, places].copy(),
                beyond=self.tally.beyond[:, places].copy(),
                first_event=len(self.memory.events),
            )
        )
        if loop.foreseen is None:
            self._jump(loop, places)
        del loop.arrivals[: -(2 * MAX_PERIOD + 1)]

    def _verify(self, loop: Loop, places: slice) -> None:
        foreseen, loop.foreseen = loop.foreseen, None
        assert foreseen is not None
        events = self.memory.events[foreseen.first_event :]
        if len(events) == len(foreseen.events) and all(
            _as_foreseen(event, old, foreseen.jump, loop.mask) for event, old in zip(events, foreseen.events, strict=True)
        ):
            loop.arrivals.clear()
            return
        self.state.restore(foreseen.snapshot)
        self.tally.sure[:, places] = foreseen.sure
        self.tally.beyond[:, places] = foreseen.beyond
        loop.arrivals.clear()
        loop.disabled = True

    def _jump(self, loop: Loop, places: slice) -> None:
        count = len(loop.arrivals)
        for period in range(1, min(MAX_PERIOD, (count - 1) // 2) + 1):
            now, before, first = (loop.arrivals[-1 - n * period] for n in range(3))
            events = self.memory.events[before.first_event : now.first_event]
            older = self.memory.events[first.first_event : before.first_event]
            if [row.place for row in events] != [row.place for row in older]:
                continue
            length = self._length(events, older, loop.mask)
            if length is None or length < 2:
                continue
            moved = self._moved(now, before, first, loop.mask)
            if moved is None:
                continue
            if math.isinf(length):
                if any(isinstance(row, Event) and row.addresses is not None for row in events) or not events:
                    raise EndlessLoop(loop.head)
                raise EndlessLoop(loop.head)
            self._apply(loop, places, period, int(length) - 1, moved, list(zip(events, older, strict=True)))
            return

    def _length(self, events: Sequence[Any], older: Sequence[Any], mask: Array) -> float | None:
        """Periods after the last that do what the last did; None where that cannot be said."""
        length = math.inf
        for event, old in zip(events, older, strict=True):
            if isinstance(event, Comparison):
                if event.left is None or event.right is None or old.left is None or old.right is None:
                    continue
                length = min(length, _until_flip(event, old, mask))
            elif (event.addresses is None) != (old.addresses is None):
                return None
        return length

    def _moved(self, now: Arrival, before: Arrival, first: Arrival, mask: Array) -> list[tuple[str, int, Value]] | None:
        """New values' increments by kind and number; a value of None where a register does not move evenly."""
        changed: list[tuple[str, int, Value]] = []
        kinds: list[tuple[str, dict[int, Value], dict[int, Value], dict[int, Value]]] = [
            (kind, now.snapshot.values[kind], before.snapshot.values[kind], first.snapshot.values[kind])
            for kind in ("R", "UR", "P", "UP")
        ]
        kinds.append(("local", now.snapshot.local, before.snapshot.local, first.snapshot.local))
        lanes = mask
        warps = mask.any(axis=1, keepdims=True)
        for kind, latest, middle, oldest in kinds:
            where = warps if kind in ("UR", "UP") else lanes
            for number, (value, known) in latest.items():
                value_1, known_1 = middle.get(number, UNKNOWN)
                if value is value_1 and known is known_1:
                    continue
                value_2, _ = oldest.get(number, UNKNOWN)
                if value is None:
                    if value_1 is not None:
                        continue
                    continue
                if value_1 is None or value_2 is None or not _same_mask(known, known_1):
                    changed.append((kind, number, UNKNOWN))
                    continue
                if kind in ("P", "UP"):
                    if not _equal(value, value_1, where):
                        changed.append((kind, number, UNKNOWN))
                    continue
                step = value - value_1
                if not _equal(step, value_1 - value_2, where):
                    changed.append((kind, number, UNKNOWN))
                elif (np.broadcast_to(step, np.broadcast_shapes(step.shape, where.shape))[
                    np.broadcast_to(where, np.broadcast_shapes(step.shape, where.shape))] != 0).any():  # fmt: skip
                    changed.append((kind, number, (step, None)))
        return changed

    def _apply(
        self, loop: Loop, places: slice, period: int, jump: int, moved: list[tuple[str, int, Value]], pairs: list[tuple[Any, Any]]
    ) -> None:
        now, before = loop.arrivals[-1], loop.arrivals[-1 - period]
        loop.foreseen = Foreseen(
            snapshot=now.snapshot, sure=now.sure, beyond=now.beyond, events=[(event, old) for event, old in pairs],
            jump=jump + 1, left=period, first_event=len(self.memory.events),
        )  # fmt: skip
        self.tally.sure[:, places] += (now.sure - before.sure) * jump
        self.tally.beyond[:, places] += (now.beyond - before.beyond) * jump
        for event, old in pairs:
            if isinstance(event, Event) and event.addresses is not None and old.addresses is not None:
                self._correct(event, old, jump)
        warps = loop.mask.any(axis=1, keepdims=True)
        for kind, number, (step, _) in moved:
            rows = self.state.local if kind == "local" else self.state.registers[kind]
            where = warps if kind in ("UR", "UP") else loop.mask
            value, known = rows[number]
            if step is None:
                from irdiff.work.state import merged

                rows[number] = merged((value, known), UNKNOWN, where)
            else:
                ahead = value + step * np.uint32(jump & 0xFFFFFFFF)
                rows[number] = (np.where(where, ahead, value), known)
        loop.arrivals[:] = []
        loop.jumps += 1

    def _correct(self, event: Event, old: Event, jump: int) -> None:
        """Where addresses do not move by whole lines, each iteration has another number of sectors or conflicts."""
        assert event.addresses is not None and event.active is not None
        step = event.addresses - old.addresses
        line = coalescing.SECTOR_BYTES if event.space == "global" else _SHARED_LINE_BYTES
        if not (step % line).any() or not event.active.any():
            return
        column = SECTORS if event.space == "global" else WAVEFRONTS
        common = int(np.gcd.reduce(np.append(np.abs(step).ravel(), line)))
        cycle = min(line // common, jump)
        lanes = event.active
        start = np.broadcast_to(event.addresses, lanes.shape)
        steps = np.broadcast_to(step, lanes.shape)
        uniform = (step == step.flat[0]).all()
        if not uniform and cycle < jump and event.space == "global":
            cycle = min(jump, 64)
        cost = coalescing.sectors if event.space == "global" else coalescing.wavefronts
        base = self.memory.of_programs(cost(start, lanes, event.width))
        total = np.zeros_like(base)
        whole, rest = divmod(jump, cycle)
        for n in range(1, cycle + 1):
            each = self.memory.of_programs(cost(start + n * steps, lanes, event.width))
            total = total + each * (whole + (n <= rest))
        self.tally.add(column, event.place, total - base * jump, True)


def _same_mask(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(np.broadcast_arrays(one, other)[0], np.broadcast_arrays(one, other)[1])


def _equal(one: Array, other: Array, where: Array) -> bool:
    different = one != other
    return not (different.any() and (different & where).any())


def _until_flip(event: Comparison, old: Comparison, mask: Array) -> float:
    """Periods until the comparison has another outcome in a lane, or a side of it overflows."""
    assert event.left is not None and event.right is not None and old.left is not None and old.right is not None
    step_a, step_b = event.left - old.left, event.right - old.right
    if not step_a.any() and not step_b.any():
        return math.inf
    where = mask if max(event.left.shape[1], event.right.shape[1], step_a.shape[1], step_b.shape[1]) > 1 else mask.any(axis=1, keepdims=True)
    x, d, on = np.broadcast_arrays(event.left - event.right, step_a - step_b, where)
    x, d = x[on], d[on]
    limits = [_overflow(side, step, event, where) for side, step in ((event.left, step_a), (event.right, step_b))]
    if not d.any():
        return min(limits)
    up, down = d > 0, d < 0
    far = np.full(x.shape, np.iinfo(np.int64).max)
    size = np.maximum(np.abs(d), 1)
    if event.kind in ("LT", "GE"):
        far = np.where((x < 0) & up, -(x // size), far)
        far = np.where((x >= 0) & down, x // size + 1, far)
    elif event.kind in ("LE", "GT"):
        far = np.where((x <= 0) & up, -x // size + 1, far)
        far = np.where((x > 0) & down, -(-x // size), far)
    else:
        far = np.where((x == 0) & (d != 0), 1, far)
        ahead = (x != 0) & (d != 0) & (x % size == 0) & ((x < 0) == up)
        far = np.where(ahead, np.abs(x) // size, far)
    least = int(far.min())
    return min(math.inf if least == np.iinfo(np.int64).max else least, *limits)


def _overflow(side: Array, step: Array, event: Comparison, where: Array) -> float:
    if not step.any():
        return math.inf
    value, moves, on = np.broadcast_arrays(side, step, where)
    value, moves = value[on], moves[on]
    room = np.where(moves > 0, event.most - value, value - event.least)
    moving = moves != 0
    if not moving.any():
        return math.inf
    return float((room[moving] // np.abs(moves[moving])).min())


def _as_foreseen(event: Any, pair: tuple[Any, Any], jump: int, mask: Array) -> bool:
    last, old = pair
    if type(event) is not type(last) or event.place != last.place:
        return False
    sides = ("addresses",) if isinstance(event, Event) else ("left", "right")
    for name in sides:
        now, then, before = getattr(event, name), getattr(last, name), getattr(old, name)
        if now is None or then is None or before is None:
            if (now is None) != (then is None):
                return False
            continue
        where = mask if isinstance(event, Comparison) or event.active is None else event.active
        if not _equal(now, then + (then - before) * jump, where if now.shape[1] > 1 else where.any(axis=1, keepdims=True)):
            return False
    return True
