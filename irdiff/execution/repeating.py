"""Counts the iterations of a loop that repeat, and does not run them.

A loop repeats with period p when three periods in a row execute the same accesses and comparisons in the
same order, and these, and the registers at the loop's head, moved by the same amount from each to the next.
Then no comparison changes its outcome before the first one whose difference reaches zero, and all periods up
to there cost the same. They are added to the tally at once, registers move ahead, and the next period is
executed: if it does not do what was foreseen, everything is put back and the loop is run instead. Each
program moves ahead by as many periods as it has, so programs with other trip counts leave the loop together.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irdiff.execution import coalescing, iterations
from irdiff.execution.iterations import IntegerComparison, Move
from irdiff.execution.memory_costs import SECTORS, WAVEFRONTS, Access, CostTally, MemoryCosts
from irdiff.execution.state import UNKNOWN, Array, LaneState, StateSnapshot, Value, merged

MAX_PERIOD = 8
_WORTH = 3
"""Periods up to a change: one is executed as a check, the last is the one that changes."""
_SHARED_LINE_BYTES = 128


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival at a loop's head."""

    snapshot: StateSnapshot
    counted: tuple[Array, Array | None]
    first_event: int


@dataclass
class Loop:
    """The state that is kept of a loop while it runs."""

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
    """The events of the last executed period."""
    moves: list[Move]
    registers: list[tuple[str, int, Value]]
    """By how much each register moves in a period."""
    costs: tuple[Array, Array | None]
    """The cost of a period: certain, and possible beyond."""
    left: int
    """Arrivals until the period that runs is over."""
    first_event: int
    ahead: Array
    """Periods from `events` to the one that runs, of each program."""
    before: tuple[StateSnapshot, tuple[Array, Array | None]] | None = None
    """The state before a jump that is not confirmed."""


@dataclass
class EndlessLoop(Exception):  # noqa: N818 - what was met, not a mistake of ours
    head: int


@dataclass
class Repeater:
    state: LaneState
    tally: CostTally
    memory: MemoryCosts
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
                counted=self.tally.copied(places),
                first_event=len(self.memory.events),
            )
        )
        self._begin(loop, places)
        del loop.arrivals[: -(3 * MAX_PERIOD + 1)]

    def _loop(self, head: int, mask: Array) -> Loop:
        """Returns the state of the loop if the same lanes come back, or those of fewer programs."""
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
        ahead = self._of_warps(steady.ahead)
        foreseen = len(events) == len(steady.events) and all(
            iterations.as_foreseen(event, old, moved, ahead, loop.mask)
            for event, old, moved in zip(events, steady.events, steady.moves, strict=True)
        )
        if not foreseen:
            self._undo(loop, steady, places)
            return
        steady.events, steady.before, steady.left = events, None, steady.period
        steady.ahead = np.ones(self.state.programs, dtype=np.int64)
        lengths = self._lengths(events, steady.moves, loop.mask)
        if lengths.max() >= _WORTH:
            self._jump(loop, steady, places, lengths)
        steady.first_event = len(self.memory.events)

    def _undo(self, loop: Loop, steady: Steady, places: slice) -> None:
        if steady.before is not None:
            snapshot, counted = steady.before
            self.state.restore(snapshot)
            self.tally.put_back(places, counted)
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
                not [event.place for event in events]
                == [event.place for event in older]
                == [event.place for event in oldest]
            ):
                continue
            moved = iterations.even_moves(events, older, oldest, loop.mask)
            if moved is None:
                continue
            lengths = self._lengths(events, moved, loop.mask)
            if lengths.max() < _WORTH:
                continue
            steady = Steady(
                period=period, events=events, moves=moved,
                registers=self._registers(now, before, first, loop.mask),
                costs=_difference(now.counted, before.counted), left=period, first_event=0,
                ahead=np.ones(self.state.programs, dtype=np.int64),
            )  # fmt: skip
            loop.steady = steady
            self._jump(loop, steady, places, lengths)
            steady.first_event = len(self.memory.events)
            loop.arrivals.clear()
            return

    def _of_warps(self, of_programs: Array) -> Array:
        return np.repeat(of_programs, self.state.warps)[:, None]

    def _jump(self, loop: Loop, steady: Steady, places: slice, lengths: Array) -> None:
        """Each program over all its periods but the last before a comparison changes.

        That one is executed, as a check.
        """
        inside = loop.mask.reshape(self.state.programs, -1).any(axis=1)
        if (lengths[inside] == iterations.NEVER).any():
            raise EndlessLoop(loop.head)
        jump = np.where(inside & (lengths >= _WORTH), lengths - 2, 0)
        steady.before = self.state.snapshot(), self.tally.copied(places)
        steady.ahead = jump + 1
        sure, beyond = steady.costs
        self.tally.sure[:, places] += sure * jump
        if beyond is not None:
            self.tally.beyond[:, places] += beyond * jump
        for event, (step, _) in zip(steady.events, steady.moves, strict=True):
            if isinstance(event, Access) and event.addresses is not None and step is not None:
                self._correct(event, step, jump, loop.mask)
        warps, times = loop.mask.any(axis=1, keepdims=True), self._of_warps(jump)
        times = (times & 0xFFFFFFFF).astype(np.uint32)
        everyone = bool(loop.mask.all())
        if everyone and (jump == jump[0]).all():
            times = times[:1]  # values that all warps share stay so
        for kind, number, (step, _) in steady.registers:
            registers = self.state.local if kind == "local" else self.state.registers[kind]
            where = warps if kind in ("UR", "UP") else loop.mask
            value, known = registers.get(number, UNKNOWN)
            if step is None or value is None:
                registers[number] = merged((value, known), UNKNOWN, where)
            else:
                later = value + step * times
                registers[number] = (later if everyone else np.where(where, later, value), known)

    def _lengths(self, events: Sequence[Any], moves: Sequence[Move], mask: Array) -> Array:
        """Periods of each program after the last that do what the last did."""
        programs = self.state.programs
        lengths = np.full(programs, iterations.NEVER)
        for event, moved in zip(events, moves, strict=True):
            if isinstance(event, IntegerComparison):
                lengths = np.minimum(lengths, iterations.until_flip(event, moved, mask, programs))
                if lengths.max() < _WORTH:
                    break
        inside = mask.reshape(programs, -1).any(axis=1)
        return np.where(inside, lengths, 0)

    def _registers(
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
                if kind == "P" and value is None and latest[number] is not middle.get(number):
                    changed.append((kind, number, UNKNOWN))  # not known, and not the same
                    continue
                if value is value_1 and known is known_1:
                    continue
                value_2, _ = oldest.get(number, UNKNOWN)
                if value is None:
                    if value_1 is not None:
                        continue
                    continue
                if value_1 is None or value_2 is None or not iterations.same_mask(known, known_1):
                    changed.append((kind, number, UNKNOWN))
                    continue
                if kind in ("P", "UP"):
                    if not iterations.equal(value, value_1, where):
                        changed.append((kind, number, UNKNOWN))
                    continue
                step = value - value_1
                if not iterations.equal(step, value_1 - value_2, where):
                    changed.append((kind, number, UNKNOWN))
                elif ((step != 0) & where).any():
                    changed.append((kind, number, (step, None)))
        return changed

    def _correct(self, event: Access, step: Array, jump: Array, mask: Array) -> None:
        """Where addresses do not move by whole lines, iterations differ in sectors or conflicts."""
        assert event.addresses is not None and event.active is not None
        line = self.memory.line_bytes if event.space == "global" else _SHARED_LINE_BYTES
        if not (step % line).any() or not event.active.any():
            return
        patterns = self.memory.patterns
        column = SECTORS if event.space == "global" else WAVEFRONTS
        common = int(np.gcd.reduce(np.append(np.abs(step).ravel(), line)))
        most = int(jump.max())
        cycle = min(line // common, most)
        lanes = event.active & mask
        start = np.broadcast_to(event.addresses, lanes.shape)
        steps = np.broadcast_to(step, lanes.shape)
        uniform = (step == step.flat[0]).all()
        if not uniform and cycle < most and event.space == "global":
            cycle = min(most, 64)

        def cost(addresses: Array) -> Array:
            if event.space == "global":
                return self.memory.lines(addresses, lanes)
            waves = functools.partial(coalescing.wavefronts, width=event.width)
            return patterns.cost((False, event.width), waves, addresses, lanes, line)

        base = self.memory.of_programs(cost(start))
        total = np.zeros_like(base)
        whole, rest = np.divmod(jump, cycle)
        for n in range(1, cycle + 1):
            each = self.memory.of_programs(cost(start + n * steps))
            total = total + each * (whole + (n <= rest))
        self.tally.add(column, event.place, total - base * jump, True)


def _difference(
    now: tuple[Array, Array | None], before: tuple[Array, Array | None]
) -> tuple[Array, Array | None]:
    (sure, beyond), (sure_before, beyond_before) = now, before
    if beyond is None or beyond_before is None:
        return sure - sure_before, beyond
    return sure - sure_before, beyond - beyond_before
