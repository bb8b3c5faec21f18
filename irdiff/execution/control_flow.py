"""Control flow of all warps of some programs at once, whatever machine executes them.

Lanes that are at one place form a fragment. The fragment at the lowest place runs first, so lanes that parted
meet again where they wait for each other. A branch on data that is not known takes both ways, each from the
same state, up to the place where they join; what only one of them executes is counted as possible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np

from irdiff.execution.memory_costs import EXECUTED, TAKEN, CostTally, MemoryCosts
from irdiff.execution.repeating import Repeater
from irdiff.execution.state import UNKNOWN, Array, LaneState, Value, both, merged
from irdiff.ir.blocks import CodeInstruction, post_dominators

MAX_DEPTH = 12

_NEVER = 1 << 40


class NotCounted(Exception):  # noqa: N818 - a finding about a launch
    """Why a launch's work was not counted."""


class TooManySteps(Exception):  # noqa: N818 - what was met, not a mistake of ours
    """More instructions would have to be executed than are allowed."""


@dataclass
class Fragment:
    place: int
    mask: Array
    """(slots, lanes of a warp)"""
    sure: bool

    def __post_init__(self) -> None:
        self.warps = self.mask.any(axis=1, keepdims=True)

    def lanes(self, memory: MemoryCosts) -> Array:
        """Returns how many lanes of each program are active."""
        return memory.of_programs(self.mask.sum(axis=1))


_Instruction = TypeVar("_Instruction", bound=CodeInstruction)


@dataclass(kw_only=True)
class ControlFlow(ABC, Generic[_Instruction]):
    """Runs fragments; a subclass executes what stands between two branches."""

    code: Sequence[_Instruction]
    state: LaneState
    tally: CostTally
    memory: MemoryCosts
    repeater: Repeater
    alive: Array = field(init=False)
    steps: int = 0
    most_steps: int = 0
    """Where programs differ."""
    most_steps_alike: int = 0
    """Where they have done the same so far."""
    arrived: dict[int, Array] = field(default_factory=dict)
    """Warps of each program that passed `BAR.ARV` of a barrier and do not wait there."""
    open_loops: dict[int, str] = field(default_factory=dict)
    """Place of a branch that data decide → what is not known there."""
    _stack: list[int] = field(default_factory=list)
    _joins: dict[int, int | None] | None = None

    def __post_init__(self) -> None:
        self.alive = np.ones((self.state.slots, self.state.lanes), dtype=bool)

    def run(self) -> None:
        self._run([Fragment(0, self.alive, True)], None)

    def _run(self, fragments: list[Fragment], stop: int | None) -> Array | None:
        """Runs all fragments to their end or to `stop`; returns the lanes that are there."""
        waiting: list[Fragment] = []
        arrived: Array | None = None
        while fragments or waiting:
            if not fragments:
                raise NotCounted("warps wait at a barrier that the others do not reach")
            fragments.sort(key=lambda fragment: fragment.place)
            current = self._joined(fragments)
            if current.place == stop:
                arrived = current.mask if arrived is None else arrived | current.mask
                continue
            limit = min((other.place for other in fragments if other.place > current.place), default=_NEVER)
            if stop is not None and current.place < stop:
                limit = min(limit, stop)
            if any(other.place == current.place for other in fragments):  # lanes of the same warps, parted
                limit = min(limit, self._next_meeting(current.place))
            barrier = self._straight(current, fragments, limit)
            if barrier is not None:
                waiting.append(barrier)
                waiting = self._released(waiting, fragments)
        return arrived

    def _joined(self, fragments: list[Fragment]) -> Fragment:
        """Takes the first fragment, with all others at its place that go on with it.

        Lanes of one warp that have parted go on together only behind an instruction at which they wait for
        each other; each part executes that.
        """
        current, apart = fragments.pop(0), []
        place = current.place
        waits = place >= len(self.code) or self._is_meeting(place)
        while fragments and fragments[0].place == place:
            other = fragments.pop(0)
            shared = current.warps & other.warps
            if shared.any() and not waits:
                apart.append(other)
                continue
            if shared.any():
                self.tally.add(
                    EXECUTED, place, self.memory.of_programs(shared[:, 0]), current.sure and other.sure
                )
            current = Fragment(place, current.mask | other.mask, current.sure and other.sure)
        fragments += apart
        return current

    def _next_meeting(self, place: int) -> int:
        following = range(place + 1, len(self.code))
        return next((other for other in following if self._is_meeting(other)), _NEVER)

    def _released(self, waiting: list[Fragment], fragments: list[Fragment]) -> list[Fragment]:
        """Lets the programs go on whose warps have all arrived; returns what still waits."""
        rest: list[Fragment] = []
        by_barrier: dict[int, list[Fragment]] = {}
        for fragment in waiting:
            by_barrier.setdefault(self._barrier_of(fragment.place), []).append(fragment)
        for number, at_barrier in by_barrier.items():
            here = np.zeros_like(self.alive)
            for fragment in at_barrier:
                here = here | fragment.mask
            arrived = self.memory.of_programs(here.any(axis=1)) + self.arrived.get(number, 0)
            alive = self.memory.of_programs(self.alive.any(axis=1))
            needed = self._needed_at(at_barrier[0].place, alive)
            complete = (arrived >= needed) & (self.memory.of_programs(here.any(axis=1)) > 0)
            if not complete.any():
                rest += at_barrier
                continue
            if number in self.arrived:
                self.arrived[number] = np.where(complete, 0, self.arrived[number])
            lanes = np.repeat(complete, self.state.warps)[:, None]
            for fragment in at_barrier:
                for mask, into in ((fragment.mask & lanes, fragments), (fragment.mask & ~lanes, rest)):
                    if mask.any():
                        into.append(Fragment(fragment.place + (into is fragments), mask, fragment.sure))
        return rest

    @abstractmethod
    def _straight(self, fragment: Fragment, fragments: list[Fragment], limit: int) -> Fragment | None:
        """Runs a fragment until it branches, ends, or meets another; returns it where it waits."""

    @abstractmethod
    def _is_meeting(self, place: int) -> bool:
        """True if lanes of a warp that have parted go on together from here."""

    @abstractmethod
    def _barrier_of(self, place: int) -> int:
        """The number of the barrier that is waited for."""

    @abstractmethod
    def _needed_at(self, place: int, alive: Array) -> Array:
        """Warps of each program that a barrier waits for, of those that are alive."""

    @abstractmethod
    def _is_end(self, ins: _Instruction) -> bool:
        """True if the lanes that take this branch end."""

    @abstractmethod
    def _targets(self, ins: _Instruction, taken: Array) -> list[tuple[int | None, Array]]:
        """Where the lanes of `taken` go; None where they end."""

    def _go_on_if_alike(self) -> None:
        if self.steps > self.most_steps_alike or not self.tally.is_alike:
            raise TooManySteps
        self.most_steps = self.most_steps_alike

    def _of_whole_programs(self, mask: Array) -> bool:
        """True if the other warps of these programs have ended, so that nobody is waited for."""
        programs = mask.reshape(self.state.programs, -1).any(axis=1)
        return bool((mask == self.alive & np.repeat(programs, self.state.warps)[:, None]).all())

    def _is_loop(self, ins: _Instruction) -> bool:
        """True if a branch back begins another iteration, which a call does not."""
        return ins.form.leads.to_target and not ins.form.leads.calls

    def _part(
        self, ins: _Instruction, taken: Array, other: Array, fragments: list[Fragment], sure: bool
    ) -> None:
        place = ins.place
        if other.any():
            fragments.append(Fragment(place + 1, other, sure))
        if not taken.any():
            return
        if self._is_end(ins):
            self.alive = self.alive & ~taken
            return
        for target, lanes in self._targets(ins, taken):
            if target is None:
                self.alive = self.alive & ~lanes
                continue
            if self._is_loop(ins):
                self.tally.add(TAKEN, place, self.memory.of_programs(lanes.any(axis=1)), sure)
            if target <= place and self._is_loop(ins):
                if target == place:  # the padding behind a kernel
                    raise NotCounted(f"an endless loop at {ins.shown_place}")
                self.repeater.arrive(target, place, lanes)
            fragments.append(Fragment(target, lanes, sure))

    def _fork(
        self,
        ins: _Instruction,
        unclear: Array,
        taken: Array,
        other: Array,
        fragments: list[Fragment],
        sure: bool,
    ) -> None:
        """Both ways for the lanes of `unclear`."""
        place = ins.place
        if taken.any() or other.any():
            self._part(ins, taken, other, fragments, sure)
        backward = ins.target is not None and ins.target <= place and self._is_loop(ins)
        if self._joins is None:
            self._joins = post_dominators(self.code)
        join = self._joins.get(place)
        if backward or place in self._stack or len(self._stack) >= MAX_DEPTH:
            # how often is not known: once is sure
            self.open_loops[place] = f"data decide how often the loop at {ins.shown_place} runs"
            follow = place + 1 if backward or join is None else join
            fragments.append(Fragment(follow, unclear, sure))
            return
        self._stack.append(place)
        before, alive = self.state.snapshot(), self.alive
        ways: list[tuple[Any, Array, Array | None]] = []
        loops = dict(self.repeater.loops)
        for go in (True, False):
            self.state.restore(before)
            self.alive = alive
            self.repeater.loops = {}
            inner: list[Fragment] = []
            lanes, none = unclear, np.zeros_like(unclear)
            self._part(ins, lanes if go else none, none if go else lanes, inner, False)
            reached = self._run(inner, join) if inner else None
            ways.append((self.state.snapshot(), self.alive, reached))
        self.repeater.loops = loops
        self._stack.pop()
        self._merge(ways)
        reached = [lanes for *_, lanes in ways if lanes is not None]
        if reached:
            union = reached[0] if len(reached) == 1 else reached[0] | reached[1]
            assert join is not None
            fragments.append(Fragment(join, union, sure))

    def _merge(self, ways: Sequence[tuple[Any, Array, Array | None]]) -> None:
        """The state of lanes that took either way: what differs is not known."""
        (one, alive_one, _), (other, alive_other, _) = ways
        self.alive = alive_one | alive_other
        for kind in self.state.registers:
            self.state.registers[kind] = _agreed(one.values[kind], other.values[kind])
        self.state.local = _agreed(one.local, other.local)


def _agreed(one: dict[int, Value], other: dict[int, Value]) -> dict[int, Value]:
    shared: dict[int, Value] = {}
    for number in one.keys() & other.keys():
        (a, known_a), (b, known_b) = one[number], other[number]
        if one[number] is other[number] or (a is not None and a is b and known_a is known_b):
            shared[number] = one[number]
        elif a is not None and b is not None:
            same = a == b
            known = both(known_a, known_b)
            if same.all():
                shared[number] = a, known
            elif same.any():
                shared[number] = merged(UNKNOWN, (a, known), same)
    return shared
