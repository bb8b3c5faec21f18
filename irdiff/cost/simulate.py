"""One scheduler of a multiprocessor and the warps it holds, cycle by cycle as the schedule words allow.

A warp issues in order. An instruction waits for the stall count of the one before, for the scoreboards
that it names, and for its pipe. Barriers wait for the warps of their block, asynchronous copies and matrix
instructions for their groups.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from irdiff.cost.trace import TraceStep
from irdiff.execution.schedule import Op

_NONE = 7
"""The number of no scoreboard."""
_READ_CYCLES = 12.0
"""After these an instruction has read its operands, unless it waits in a pipe."""
_WAITS = frozenset({"drain", "matrix wait", "arrived"})
"""Kinds of instructions that wait for others than scoreboards."""
_QUIET = frozenset({"plain", "load", "barrier", "matrix wait"})
"""Kinds of instructions whose groups nobody waits for."""
_GROUPS = 12
"""As many of the last groups are remembered."""
_BOARDS = [tuple(board for board in range(6) if mask >> board & 1) for mask in range(64)]
"""The scoreboards that each mask names."""
_QUEUE = {"l2": 400.0, "lsu": 64.0, "tensor": 0.0, "xu": 32.0}
"""Cycles of work that a pipe takes in before an instruction has to wait."""


@dataclass(kw_only=True)
class _Warp:
    block: int
    place: int = 0
    boards: list[float] = field(default_factory=lambda: [0.0] * 8)
    copies: list[float] = field(default_factory=list)
    """When the copies since the last commit arrive."""
    groups: list[float] = field(default_factory=list)
    matrix_groups: list[float] = field(default_factory=list)
    arrivals: int = 0
    """How often it has waited for an mbarrier."""
    issued: float = 0.0
    weighted: float = 0.0


def run(ops: Sequence[Op], steps: Sequence[TraceStep], blocks: int, warps_of_block: int) -> float:
    """Cycles from the first to the last instruction of an average warp, with every iteration of its loops."""
    return _Scheduler(ops, steps, blocks, warps_of_block).run()


class _Scheduler:
    """Warps that are ready issue in the order of their times; one that has to wait is looked at later."""

    def __init__(
        self, ops: Sequence[Op], steps: Sequence[TraceStep], blocks: int, warps_of_block: int
    ) -> None:
        self._ops, self._steps = ops, steps
        self._warps = [_Warp(block=number // warps_of_block) for number in range(blocks * warps_of_block)]
        self._ready = [(float(number % 4), number) for number in range(len(self._warps))]
        heapq.heapify(self._ready)
        self._waiting: list[int] = []
        """Warps for which the port is not free yet; the first of them by number goes next."""
        self._living = Counter(warp.block for warp in self._warps)
        self._at_barrier: dict[int, list[tuple[float, int]]] = defaultdict(list)
        self._free: dict[str, float] = defaultdict(float)
        """When each pipe has done what it was given."""
        self._port = 0.0
        """When the next instruction can issue."""
        self._bulk_copies: dict[int, list[list[float]]] = defaultdict(list)
        """By block: when the copies arrive that each mbarrier waits for, in order."""

    def run(self) -> float:
        ready, waiting, warps, steps, ops = self._ready, self._waiting, self._warps, self._steps, self._ops
        last = len(steps) - 1
        while ready or waiting:
            port = self._port
            while ready and ready[0][0] <= port:
                heapq.heappush(waiting, heapq.heappop(ready)[1])
            now, number = (port, heapq.heappop(waiting)) if waiting else heapq.heappop(ready)
            warp = warps[number]
            step = steps[warp.place]
            op = ops[step.place]
            start = self._begin(warp, op, now)
            if start > now:
                heapq.heappush(ready, (start, number))
                continue
            self._port = now + 1.0
            self._issue(warp, op, now)
            warp.weighted += (now - warp.issued) * step.weight
            warp.issued = now
            warp.place += 1
            if warp.place <= last and op.kind != "barrier":
                heapq.heappush(ready, (now + op.stall, number))
            else:
                self._stop(number, op, now + op.stall)
        return sum(warp.weighted for warp in warps) / len(warps)

    def _begin(self, warp: _Warp, op: Op, now: float) -> float:
        """When an instruction can issue, if nothing else issues."""
        start = now
        if op.waits:
            boards = warp.boards
            for board in _BOARDS[op.waits]:
                if boards[board] > start:  # noqa: PLR1730 - `max` takes a fifth of a simulation, here and below
                    start = boards[board]
        if op.kind in _WAITS:
            start = max(start, self._arrived(warp, op))
        if op.pipe != "none":
            free = self._free[op.pipe] - _QUEUE.get(op.pipe, 0.0)
            if free > start:  # noqa: PLR1730
                start = free
        return start

    def _arrived(self, warp: _Warp, op: Op) -> float:
        """When what an instruction of `_WAITS` waits for is there; 0 where nothing is under way."""
        if op.kind == "arrived":
            here = self._bulk_copies[warp.block][warp.arrivals : warp.arrivals + 1]
            return max(here[0], default=0.0) if here else 0.0
        groups = warp.groups if op.kind == "drain" else warp.matrix_groups
        return max(groups[: max(0, len(groups) - op.number)], default=0.0)

    def _issue(self, warp: _Warp, op: Op, now: float) -> None:
        done = now + op.latency
        free = 0.0
        if op.pipe != "none":
            free = self._free[op.pipe]
            free = self._free[op.pipe] = (free if free > now else now) + op.hold
            through = free + op.latency - (op.hold if op.pipe != "l2" else 0.0)
            if through > done:  # noqa: PLR1730
                done = through
        if op.kind not in _QUIET:
            self._note(warp, op, now, done)
        boards = warp.boards
        if op.result != _NONE and done > boards[op.result]:
            boards[op.result] = done
        if op.operands != _NONE:
            read = now + _READ_CYCLES
            if op.pipe not in ("none", "alu", "fma"):
                read = max(read, free - _QUEUE.get(op.pipe, 0.0))
            if read > boards[op.operands]:  # noqa: PLR1730
                boards[op.operands] = read

    def _note(self, warp: _Warp, op: Op, now: float, done: float) -> None:
        """Notes when copies and matrix instructions end, for instructions that wait for their groups."""
        match op.kind:
            case "copy":
                warp.copies.append(done)
            case "commit":
                warp.groups.append(max(warp.copies, default=now))
                warp.copies = []
                del warp.groups[:-_GROUPS]
            case "matrix" if op.number:
                warp.matrix_groups.append(done)
                del warp.matrix_groups[:-_GROUPS]
            case "drain" if op.number == 0:
                warp.groups.clear()
            case "expect":
                self._bulk_copies[warp.block].append([])
            case "tma":
                copies = self._bulk_copies[warp.block]
                if not copies:
                    copies.append([])
                copies[-1].append(done)
            case "arrived":
                warp.arrivals += 1

    def _stop(self, number: int, op: Op, following: float) -> None:
        """At the end of a warp, or at a barrier."""
        warp = self._warps[number]
        if warp.place >= len(self._steps):
            self._living[warp.block] -= 1
            self._release(warp.block, 0.0)
        else:
            self._at_barrier[warp.block].append((following, number))
            self._release(warp.block, op.latency)

    def _release(self, block: int, latency: float) -> None:
        """Lets the warps of a block go on once all that live are at its barrier."""
        here = self._at_barrier[block]
        if here and len(here) >= self._living[block]:
            time = max(now for now, _ in here) + latency
            for _, number in here:
                heapq.heappush(self._ready, (time, number))
            here.clear()
