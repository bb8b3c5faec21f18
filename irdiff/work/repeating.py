"""Counts the iterations of a loop that repeat, and does not run them.

A loop repeats with period p when three periods in a row execute the same accesses and comparisons in the
same order, and these, and the registers at the loop's head, moved by the same amount from each to the next.
Then no comparison changes its outcome before the first one whose difference reaches zero, and all periods up
to there cost the same. They are added to the tally at once, registers move ahead, and the next period is
executed: if it does not do what was foreseen, everything is put back and the loop is run instead.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irdiff.work import coalescing
from irdiff.work.accesses import SECTORS, WAVEFRONTS, Access, CostTally, Memory
from irdiff.work.state import UNKNOWN, Array, StateSnapshot, Value, WarpState, merged

MAX_PERIOD = 8
_WORTH = 3
"""Periods up to a change: one is executed as a check, the last is the one that changes."""
_SHARED_LINE_BYTES = 128


@dataclass(frozen=True, slots=True)
class IntegerComparison:
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

    snapshot: StateSnapshot
    sure: Array
    beyond: Array
    first_event: int


@dataclass
class Loop:
    """What is kept of a loop while it runs."""

    head: int
    mask: Array
    arrivals: list[Arrival] = field(default_factory=list)
    refuted: set[int] = field(default_factory=set)
    """Periods with which it did not go on as foreseen."""
    steady: Steady | None = None


@dataclass
class Steady:
    """A loop whose periods repeat: what each does, and by how much everything moves."""

    period: int
    events: list[Any]
    """Of the last period that was executed."""
    steps: list[tuple[Array | None, Array | None]]
    """By how much both sides of each comparison, or the addresses of each access, move in a period."""
    moved: list[tuple[str, int, Value]]
    sure: Array
    beyond: Array
    """What a period costs."""
    left: int
    """Arrivals until the period that runs is over."""
    first_event: int
    ahead: int = 1
    """Periods from `events` to the one that runs."""
    before: tuple[StateSnapshot, Array, Array] | None = None
    """The state before a jump that is not confirmed."""


@dataclass
class EndlessLoop(Exception):  # noqa: N818 - what was met, not a mistake of ours
    head: int


@dataclass
class Repeater:
    state: WarpState
    tally: CostTally
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
        self.memory.events.append(IntegerComparison(place, sides[0], sides[1], kind, least, most))

    def left_loop(self, head: int) -> None:
        self.loops.pop(head, None)
        if not self.loops:
            self.memory.events.clear()

    def arrive(self, head: int, tail: int, mask: Array) -> None:
        """The lanes of `mask` begin another iteration."""
        for inner in [key for key in self.loops if head < key <= tail]:
            del self.loops[inner]
        loop, places = self._loop(head, mask), slice(head, tail + 1)
        if loop.steady is not None:
            self._go_on(loop, loop.steady, places)
            return
        loop.arrivals.append(
            Arrival(
                snapshot=self.state.snapshot(),
                sure=self.tally.sure[:, places].copy(),
                beyond=self.tally.beyond[:, places].copy(),
                first_event=len(self.memory.events),
            )
        )
        self._begin(loop, places)
        del loop.arrivals[: -(3 * MAX_PERIOD + 1)]

    def _loop(self, head: int, mask: Array) -> Loop:
        """What is kept of the loop, if the same lanes come back, or those of fewer programs."""
        loop = self.loops.get(head)
        if loop is not None and (loop.mask is mask or np.array_equal(loop.mask, mask)):
            return loop
        if loop is not None and np.array_equal(mask, loop.mask & self._of_whole_programs(mask)):
            loop.mask = mask
            return loop
        self.loops[head] = Loop(head=head, mask=mask, refuted=loop.refuted if loop else set())
        return self.loops[head]

    def _of_whole_programs(self, mask: Array) -> Array:
        """All lanes of the programs that have a lane in `mask`."""
        programs = mask.reshape(self.state.programs, -1).any(axis=1)
        return np.repeat(programs, self.state.warps)[:, None]

    def _go_on(self, loop: Loop, steady: Steady, places: slice) -> None:
        """After another period of a steady loop: confirms it, and jumps over those that follow."""
        steady.left -= 1
        if steady.left > 0:
            return
        events = self.memory.events[steady.first_event :]
        foreseen = len(events) == len(steady.events) and all(
            _as_foreseen(event, old, steps, steady.ahead, loop.mask)
            for event, old, steps in zip(events, steady.events, steady.steps, strict=True)
        )
        if not foreseen:
            self._undo(loop, steady, places)
            return
        steady.events, steady.before, steady.ahead, steady.left = events, None, 1, steady.period
        length = self._length(events, steady.steps, loop.mask)
        if length >= _WORTH:
            self._jump(loop, steady, places, length)
        steady.first_event = len(self.memory.events)

    def _undo(self, loop: Loop, steady: Steady, places: slice) -> None:
        if steady.before is not None:
            snapshot, sure, beyond = steady.before
            self.state.restore(snapshot)
            self.tally.sure[:, places], self.tally.beyond[:, places] = sure, beyond
            loop.refuted.add(steady.period)
        loop.steady = None
        loop.arrivals.clear()

    def _begin(self, loop: Loop, places: slice) -> None:
        """Looks for a period in what the last iterations did."""
        count = len(loop.arrivals)
        for period in range(1, min(MAX_PERIOD, (count - 1) // 3) + 1):
            if period in loop.refuted:
                continue
            now, before, first, start = (loop.arrivals[-1 - n * period] for n in range(4))
            events = self.memory.events[before.first_event : now.first_event]
            older = self.memory.events[first.first_event : before.first_event]
            oldest = self.memory.events[start.first_event : first.first_event]
            if (
                not [row.place for row in events]
                == [row.place for row in older]
                == [row.place for row in oldest]
            ):
                continue
            steps = [_steps(event, old) for event, old in zip(events, older, strict=True)]
            if any(row is None for row in steps):
                continue
            earlier = [_steps(event, old) for event, old in zip(older, oldest, strict=True)]
            if not all(_evenly(*both, loop.mask) for both in zip(steps, earlier, strict=True)):
                continue
            length = self._length(events, [row for row in steps if row is not None], loop.mask)
            if length < _WORTH:
                continue
            steady = Steady(
                period=period, events=events, steps=[row for row in steps if row is not None],
                moved=self._moved(now, before, first, loop.mask), sure=now.sure - before.sure,
                beyond=now.beyond - before.beyond, left=period, first_event=0,
            )  # fmt: skip
            loop.steady = steady
            self._jump(loop, steady, places, length)
            steady.first_event = len(self.memory.events)
            loop.arrivals.clear()
            return

    def _jump(self, loop: Loop, steady: Steady, places: slice, length: float) -> None:
        """Over all periods but the last before a comparison changes; that one is executed, as a check."""
        if math.isinf(length):
            raise EndlessLoop(loop.head)
        jump = int(length) - 2
        steady.before = (
            self.state.snapshot(),
            self.tally.sure[:, places].copy(),
            self.tally.beyond[:, places].copy(),
        )
        steady.ahead = jump + 1
        programs = loop.mask.reshape(self.state.programs, -1).any(axis=1)
        self.tally.sure[:, places] += steady.sure * programs * jump
        self.tally.beyond[:, places] += steady.beyond * programs * jump
        for event, (step, _) in zip(steady.events, steady.steps, strict=True):
            if isinstance(event, Access) and event.addresses is not None and step is not None:
                self._correct(event, step, jump, loop.mask)
        warps = loop.mask.any(axis=1, keepdims=True)
        for kind, number, (step, _) in steady.moved:
            rows = self.state.local if kind == "local" else self.state.registers[kind]
            where = warps if kind in ("UR", "UP") else loop.mask
            value, known = rows.get(number, UNKNOWN)
            if step is None or value is None:
                rows[number] = merged((value, known), UNKNOWN, where)
            else:
                rows[number] = (np.where(where, value + step * np.uint32(jump & 0xFFFFFFFF), value), known)

    def _length(
        self, events: Sequence[Any], steps: Sequence[tuple[Array | None, Array | None]], mask: Array
    ) -> float:
        """Periods after the last that do what the last did."""
        length = math.inf
        for event, (left, right) in zip(events, steps, strict=True):
            if isinstance(event, IntegerComparison) and left is not None and right is not None:
                length = min(length, _until_flip(event, left, right, mask))
                if length < _WORTH:
                    break
        return length

    def _moved(
        self, now: Arrival, before: Arrival, first: Arrival, mask: Array
    ) -> list[tuple[str, int, Value]]:
        """Increments by kind and number; None where a register does not move evenly."""
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
                elif ((step != 0) & where).any():
                    changed.append((kind, number, (step, None)))
        return changed

    def _correct(self, event: Access, step: Array, jump: int, mask: Array) -> None:
        """Where addresses do not move by whole lines, iterations differ in sectors or conflicts."""
        assert event.addresses is not None and event.active is not None
        line = coalescing.SECTOR_BYTES if event.space == "global" else _SHARED_LINE_BYTES
        if not (step % line).any() or not event.active.any():
            return
        column = SECTORS if event.space == "global" else WAVEFRONTS
        common = int(np.gcd.reduce(np.append(np.abs(step).ravel(), line)))
        cycle = min(line // common, jump)
        lanes = event.active & mask
        start = np.broadcast_to(event.addresses, lanes.shape)
        steps = np.broadcast_to(step, lanes.shape)
        uniform = (step == step.flat[0]).all()
        if not uniform and cycle < jump and event.space == "global":
            cycle = min(jump, 64)

        def cost(addresses: Array) -> Array:
            if event.space == "global":
                return coalescing.sectors(addresses, lanes)
            return coalescing.wavefronts(addresses, lanes, event.width)

        base = self.memory.of_programs(cost(start))
        total = np.zeros_like(base)
        whole, rest = divmod(jump, cycle)
        for n in range(1, cycle + 1):
            each = self.memory.of_programs(cost(start + n * steps))
            total = total + each * (whole + (n <= rest))
        self.tally.add(column, event.place, total - base * jump, True)


def _same_mask(one: Array | None, other: Array | None) -> bool:
    if one is None or other is None:
        return one is other
    return one is other or np.array_equal(
        np.broadcast_arrays(one, other)[0], np.broadcast_arrays(one, other)[1]
    )


def _equal(one: Array, other: Array, where: Array) -> bool:
    different = one != other
    return not (different.any() and (different & where).any())


def _until_flip(event: IntegerComparison, step_a: Array, step_b: Array, mask: Array) -> float:
    """Periods until the comparison has another outcome in a lane, or a side of it overflows."""
    assert event.left is not None and event.right is not None
    if not step_a.any() and not step_b.any():
        return math.inf
    where = (
        mask
        if max(event.left.shape[1], event.right.shape[1], step_a.shape[1], step_b.shape[1]) > 1
        else mask.any(axis=1, keepdims=True)
    )
    x, d, on = np.broadcast_arrays(event.left - event.right, step_a - step_b, where)
    x, d = x[on], d[on]
    limits = [
        _overflow(side, step, event, where) for side, step in ((event.left, step_a), (event.right, step_b))
    ]
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


def _overflow(side: Array, step: Array, event: IntegerComparison, where: Array) -> float:
    if not step.any():
        return math.inf
    value, moves, on = np.broadcast_arrays(side, step, where)
    value, moves = value[on], moves[on]
    room = np.where(moves > 0, event.most - value, value - event.least)
    moving = moves != 0
    if not moving.any():
        return math.inf
    return float((room[moving] // np.abs(moves[moving])).min())


def _steps(event: Any, old: Any) -> tuple[Array | None, Array | None] | None:
    """By how much an event moved since the period before; None where that is an event of another kind."""
    if type(event) is not type(old):
        return None
    if isinstance(event, Access):
        if (event.addresses is None) != (old.addresses is None):
            return None
        return (None, None) if event.addresses is None else (event.addresses - old.addresses, None)
    if event.left is None or event.right is None or old.left is None or old.right is None:
        return None, None
    return event.left - old.left, event.right - old.right


def _evenly(steps: Any, earlier: Any, mask: Array) -> bool:
    """Whether an event moved in both periods by the same."""
    if steps is None or earlier is None:
        return False
    warps = mask.any(axis=1, keepdims=True)
    for one, other in zip(steps, earlier, strict=True):
        if one is None or other is None:
            if one is not other:
                return False
        elif not _equal(one, other, mask if max(one.shape[1], other.shape[1]) > 1 else warps):
            return False
    return True


def _as_foreseen(
    event: Any, old: Any, steps: tuple[Array | None, Array | None], ahead: int, mask: Array
) -> bool:
    if type(event) is not type(old) or event.place != old.place:
        return False
    names = ("addresses",) if isinstance(event, Access) else ("left", "right")
    for name, step in zip(names, steps, strict=False):
        now, then = getattr(event, name), getattr(old, name)
        if now is None or then is None or step is None:
            if (now is None) != (then is None):
                return False
            continue
        where = mask
        if isinstance(event, Access) and event.active is not None and old.active is not None:
            if ((event.active != old.active) & mask).any():
                return False
            where = mask & event.active
        if not _equal(
            now, then + step * ahead, where if now.shape[1] > 1 else where.any(axis=1, keepdims=True)
        ):
            return False
    return True
