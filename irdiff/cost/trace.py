"""The instructions that an average warp runs, in order: each loop a few times, each of these for many."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from irdiff.ir.blocks import CodeInstruction

FILLING, STEADY = 3, 2
"""Simulated iterations of a loop: those that fill its pipeline, and those that stand for the rest."""
MOST = 9_000
"""Instructions of a trace; with more, fewer iterations are taken."""
_OFTEN = 0.4
"""Share of the passes in which an instruction must run to be taken as run each time."""


@dataclass(kw_only=True)
class TracedLoop:
    """The instructions from `head` to the backward branch `tail`; the whole kernel is one that runs once."""

    head: int
    tail: int
    runs: float
    """Iterations of an average warp in all."""
    inner: list[TracedLoop] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class TraceStep:
    place: int
    weight: float
    """How many passes over the instruction this one stands for."""


def loops(code: Sequence[CodeInstruction], executed: Any) -> TracedLoop:
    """Raises nothing; a backward branch that never ran is no loop."""
    count = len(code)
    whole = TracedLoop(head=0, tail=count - 1, runs=1.0)
    tails: dict[int, int] = {}
    for ins in code:
        if (
            ins.target is not None
            and not ins.form.leads.calls
            and ins.target < ins.place
            and executed[ins.place] > 0
        ):
            tails[ins.target] = max(ins.place, tails.get(ins.target, 0))
    loops_of_code = [
        TracedLoop(head=head, tail=tail, runs=float(executed[head]))
        for head, tail in tails.items()
        if executed[head] > 0
    ]
    for loop in sorted(loops_of_code, key=lambda loop: (loop.head, -loop.tail)):
        _place(whole, loop)
    return whole


def _place(parent: TracedLoop, loop: TracedLoop) -> None:
    for inner in parent.inner:
        if inner.head <= loop.head and loop.tail <= inner.tail:
            _place(inner, loop)
            return
    if not parent.inner or parent.inner[-1].tail < loop.head:  # else they overlap: the first counts
        parent.inner.append(loop)


def steps(code: Sequence[CodeInstruction], executed: Any) -> list[TraceStep]:
    times = executed.tolist()  # a number of an array takes ten times as long to read
    whole = loops(code, times)
    for filling, steady in ((FILLING, STEADY), (2, 1), (1, 1), (0, 1)):
        result = []
        for step in _of(whole, times, 1.0, 1.0, filling, steady):
            result.append(step)
            if len(result) > MOST:
                break
        else:
            return result
    return result


def _of(
    loop: TracedLoop, times: Sequence[float], entries: float, weight: float, filling: int, steady: int
) -> Iterator[TraceStep]:
    """`entries`: passes over the code around it, of which this pass stands for `weight`."""
    iterations = max(1.0, loop.runs / max(entries, 1e-9)) if loop.head or loop.runs != 1.0 else 1.0
    whole, often = max(1, round(iterations)), _OFTEN * loop.runs
    weights = (
        [1.0] * whole
        if whole <= filling + steady
        else [1.0] * filling + [(iterations - filling) / steady] * steady
    )
    for each in weights:
        place, inner = loop.head, iter(loop.inner)
        following = next(inner, None)
        while place <= loop.tail:
            if following is not None and place == following.head:
                if following.runs >= often:
                    yield from _of(following, times, max(loop.runs, 1e-9), weight * each, filling, steady)
                place, following = following.tail + 1, next(inner, None)
                continue
            if times[place] >= often:
                yield TraceStep(place, weight * each)
            place += 1
