"""One scheduler of a multiprocessor and the warps it holds, cycle by cycle as the schedule words allow.

A warp issues in order. An instruction waits for the stall count of the one before, for the scoreboards
that it names, and for its pipe. Barriers wait for the warps of their block, asynchronous copies and matrix
instructions for their groups.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from irdiff.cost.machine import Op
from irdiff.cost.trace import TraceStep

_NONE = 7
"""The number of no scoreboard."""
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
    matrices: float = 0.0
    matrix_groups: list[float] = field(default_factory=list)
    issued: float = 0.0
    weighted: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Simulated:
    cycles: float
    """From the first to the last instruction of an average warp, with every iteration of its loops."""
    waits: dict[str, float]
    """Cycles that warps waited, by what for, weighted likewise."""


def run(  # noqa: PLR0912, PLR0915 - one step of the simulation, read from top to bottom
    ops: Sequence[Op], steps: Sequence[TraceStep], blocks: int, warps_of_block: int
) -> Simulated:
    warps = [_Warp(block=number // warps_of_block) for number in range(blocks * warps_of_block)]
    ready = [(float(number % 4), number) for number in range(len(warps))]
    heapq.heapify(ready)
    free: dict[str, float] = defaultdict(float)
    port = 0.0
    waiting: dict[int, list[tuple[float, int]]] = defaultdict(list)
    reasons: dict[str, float] = defaultdict(float)
    length = len(steps)
    living: dict[int, int] = defaultdict(int)
    for warp in warps:
        living[warp.block] += 1
    shared_tmas: dict[int, list[list[float]]] = defaultdict(list)
    taken: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    while ready:
        now, number = heapq.heappop(ready)
        warp = warps[number]
        step = steps[warp.place]
        op = ops[step.place]
        start, why = now, ""
        mask = op.waits
        board = 0
        while mask:
            if mask & 1 and warp.boards[board] > start:
                start, why = warp.boards[board], "scoreboard"
            mask >>= 1
            board += 1
        kind = op.kind
        if kind == "drain" and len(warp.groups) > op.number:
            done = max(warp.groups[: len(warp.groups) - op.number])
            if done > start:
                start, why = done, "copies"
        elif kind == "matrix wait" and len(warp.matrix_groups) > op.number:
            done = max(warp.matrix_groups[: len(warp.matrix_groups) - op.number])
            if done > start:
                start, why = done, "matrix"
        elif kind == "arrived":
            index = taken[warp.block][number]
            groups = shared_tmas[warp.block]
            if index < len(groups) and groups[index]:
                done = max(groups[index])
                if done > start:
                    start, why = done, "copies"
        pipe = op.pipe
        if pipe != "none":
            open_at = free[pipe] - _QUEUE.get(pipe, 0.0)
            if open_at > start:
                start, why = open_at, pipe
        if port > start:
            start, why = port, why or "issue"
        if start > now:
            reasons[why] += (start - now) * step.weight
            heapq.heappush(ready, (start, number))
            continue
        port = now + 1.0
        done = now + op.latency
        if pipe != "none":
            free[pipe] = max(free[pipe], now) + op.hold
            done = max(done, free[pipe] + op.latency - (op.hold if pipe != "l2" else 0.0))
        if kind == "copy":
            warp.copies.append(done)
        elif kind == "commit":
            warp.groups.append(max(warp.copies, default=now))
            warp.copies = []
            del warp.groups[:-12]
        elif kind == "matrix":
            warp.matrices = done
            if op.number:
                warp.matrix_groups.append(done)
                del warp.matrix_groups[:-12]
        elif kind == "drain":
            if op.number == 0:
                warp.groups.clear()
        elif kind == "expect":
            shared_tmas[warp.block].append([])
        elif kind == "tma":
            if not shared_tmas[warp.block]:
                shared_tmas[warp.block].append([])
            shared_tmas[warp.block][-1].append(done)
        elif kind == "arrived":
            taken[warp.block][number] += 1
        if op.result != _NONE:
            warp.boards[op.result] = max(warp.boards[op.result], done)
        if op.operands != _NONE:
            read = (
                now + 12.0
                if pipe in ("none", "alu", "fma")
                else max(now + 12.0, free[pipe] - _QUEUE.get(pipe, 0.0))
            )
            warp.boards[op.operands] = max(warp.boards[op.operands], read)
        following = now + op.stall
        warp.weighted += (now - warp.issued) * step.weight
        warp.issued = now
        warp.place += 1
        if warp.place >= length:
            living[warp.block] -= 1
            _release(waiting, warp.block, living, ready, 0.0)
            continue
        if kind == "barrier":
            waiting[warp.block].append((following, number))
            _release(waiting, warp.block, living, ready, op.latency)
            continue
        heapq.heappush(ready, (following, number))
    total = sum(warp.weighted for warp in warps) / len(warps)
    return Simulated(cycles=total, waits={name: value / len(warps) for name, value in reasons.items()})


def _release(waiting, block, living, ready, latency) -> None:  # type: ignore[no-untyped-def]
    here = waiting[block]
    if here and len(here) >= living[block]:
        time = max(now for now, _ in here) + latency
        for _, number in here:
            heapq.heappush(ready, (time, number))
        here.clear()
