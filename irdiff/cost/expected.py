"""Predicts how a change moves the time of a launch, from what both sides execute. Pure.

`no change expected`: kernel and launch are the same, and all counts and the schedule are nearly the same, or
the memory bounds both sides and its traffic is. `likely slower` and `likely faster`: the memory bounds no
side, and both the simulated multiprocessor and a warp alone on it take longer, or less. All else is not
known. `RECORD` says how often that was right.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from irdiff.counted_work import Work
from irdiff.model import Expected, ExpectedTime, Sides

if TYPE_CHECKING:
    from irdiff.cost.launch_time import LaunchTime

_MOST_UNDECIDED = 0.01
"""Share of the instructions that data may decide."""
_LIKELY = 0.05
"""Logarithm of the ratio from which on a simulated time says the direction."""
_MEMORY_BOUND = 1.86
"""Time of the memory over that of the simulated schedulers, from which on the memory is what bounds."""
_LATENCY = "latency of one warp"
EVIDENCE = "six pairs of releases timed on an H100 (the rules were chosen on the same pairs)"
RECORD: Mapping[Expected, str] = {
    Expected.NO_CHANGE: "was right (within 1 %) in 239 of 239 cases",
    Expected.SLOWER: "had the right direction in 98 of 104 cases",
    Expected.FASTER: "had the right direction in 98 of 104 cases",
}
"""`reports/samples/cost-record.md` says how each was chosen, and what it is with a pair left out."""


@dataclass(frozen=True, kw_only=True)
class _SteadyBounds:
    """Moves, as absolute logarithms of head over base, up to which nothing that moves time has moved."""

    most: Mapping[str, float]
    memory_us: float = 0.0
    """The least time for which the memory must be busy on both sides."""
    memory_share: float = 0.0
    """And over the time of the simulated schedulers."""


_TRAFFIC = {"global sectors": 0.01, "spill sectors": 0.001}
_STEADY = {
    "all counts and the schedule are": _SteadyBounds(
        most=_TRAFFIC
        | {
            "schedule": 0.003,
            "instructions": 0.015,
            "stall cycles": 0.015,
            "waits on scoreboards": 0.05,
            "waits on global loads": 0.05,
            "shared wavefronts": 0.03,
            "latency of one warp": 0.03,
        }
    ),
    "memory bounds both sides, and its traffic is": _SteadyBounds(
        most=_TRAFFIC | {"schedule": 0.012, "instructions": 0.1, "shared wavefronts": 0.5},
        memory_us=13.9,
        memory_share=_MEMORY_BOUND,
    ),
}
"""By what is nearly the same."""


def expected_time(times: Sides[LaunchTime], work: Sides[Work], *, is_edited: bool = False) -> ExpectedTime:
    """`is_edited`: whether the kernel or its launch differs, and not the compiler alone. Other programs may
    find other data in caches although all counts are equal, so there is no `no change expected` then.
    """
    if any(side.is_least for side in work):
        return _unknown("data decide how often a loop runs")
    undecided = max(side.undecided for side in times)
    if undecided > _MOST_UNDECIDED:
        return _unknown(f"data decide {undecided:.0%} of the instructions")
    for what, steady in _STEADY.items():
        if _is_steady(times, steady):
            if is_edited:
                return _unknown(f"{what} nearly the same, but an edit may change which loads hit a cache")
            return ExpectedTime(expected=Expected.NO_CHANGE, why=f"{what} nearly the same")
    return _by_direction(times)


def _unknown(why: str) -> ExpectedTime:
    return ExpectedTime(expected=Expected.UNKNOWN, why=why)


def _is_steady(times: Sides[LaunchTime], steady: _SteadyBounds) -> bool:
    base, head = times
    if (base.blocks, base.warps, base.grid) != (head.blocks, head.warps, head.grid):
        return False
    if min(side.memory_us for side in times) < steady.memory_us:
        return False
    if min(side.memory_us / side.scheduled_us for side in times) < steady.memory_share:
        return False
    moves = dict(_moves(times))
    return all(abs(moves[name]) <= most for name, most in steady.most.items())


def _moves(times: Sides[LaunchTime]) -> Iterator[tuple[str, float]]:
    base, head = times
    yield "schedule", math.log(head.scheduled_us / base.scheduled_us)
    for name, before in base.counts.items():
        # a few wavefronts more do not matter beside all instructions
        floor = 1.0 + (base.counts["instructions"] / 50 if name == "shared wavefronts" else 0.0)
        yield name, math.log((head.counts[name] + floor) / (before + floor))


def _by_direction(times: Sides[LaunchTime]) -> ExpectedTime:
    if any(side.memory_us >= _MEMORY_BOUND * side.scheduled_us for side in times):
        return _unknown("a side is memory-bound, and the sides differ too much for `no change expected`")
    moves = dict(_moves(times))
    schedule, latency = moves["schedule"], moves[_LATENCY]
    if min(abs(schedule), abs(latency)) <= _LIKELY or schedule * latency < 0:
        return _unknown(
            "the two simulated times (a full multiprocessor, one warp alone) do not both move "
            "by more than 5 % in one direction"
        )
    expected = Expected.SLOWER if schedule > 0 else Expected.FASTER
    farthest = max(times.base.counts.keys() - {_LATENCY}, key=lambda name: (abs(moves[name]), name))
    simulated = f"{_percent(schedule)}, of one warp alone {_percent(latency)}"
    why = f"simulated time of a full multiprocessor {simulated}; {_shown(times, farthest)}"
    return ExpectedTime(expected=expected, why=why)


def _percent(move: float) -> str:
    return f"{math.expm1(move) * 100:+.0f} %"


def _shown(times: Sides[LaunchTime], name: str) -> str:
    before, after = (side.counts[name] for side in times)
    change = f" ({(after / before - 1) * 100:+.0f} %)" if before else ""
    return f"{name} {before:,.0f} → {after:,.0f}{change}"
