"""Head's time over base's, with what is known of such estimates: see the record in the README. Pure.

The simulated ratio is shrunk, since on the pairs of releases that it was fitted on moves were smaller than
simulated. Its range is narrower than what was measured: it held six in ten of the likely moves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from irdiff.cost.launch_time import COUNTS, LaunchTime


class Confidence(StrEnum):
    """How far an estimate may be trusted; the README has the record."""

    NO_CHANGE = "no change expected"
    """Within 1 %: see `_is_steady`."""
    LIKELY = "likely"
    """The direction was right in four of five."""
    UNSURE = "unsure"
    """It moved in the simulation by less than what the simulation is good for."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Head's time over base's."""

    ratio: float
    low: float
    high: float
    bound_base: str
    bound_head: str
    confidence: Confidence
    reasons: tuple[str, ...]
    """The two counts that moved most."""


@dataclass(frozen=True, kw_only=True)
class NotEstimated:
    reason: str


_MOST_UNDECIDED = 0.01
_SMALL, _SMALL_SHARE, _LARGE_SHARE = 0.2, 0.5, 0.8
"""Of simulated moves (logarithms of the ratio), half up to `_SMALL` was measured, and 80 % of the rest."""
_LIKELY = math.log(1.01)
_LEAST_REACH, _REACH = 0.012, 0.9
"""Half of the range: at least 1.2 %, else 90 % of the move."""


def estimate(base: LaunchTime, head: LaunchTime) -> Estimate | NotEstimated:
    undecided = max(base.undecided, head.undecided)
    if undecided > _MOST_UNDECIDED:
        return NotEstimated(reason=f"data decide {undecided:.0%} of the instructions")
    simulated = math.log(head.microseconds / base.microseconds)
    if _is_steady(base, head, simulated):
        moved, reach, confidence = 0.0, math.log(1.01), Confidence.NO_CHANGE
    else:
        beyond = max(0.0, abs(simulated) - _SMALL)
        size = _SMALL_SHARE * (abs(simulated) - beyond) + _LARGE_SHARE * beyond
        moved, reach = math.copysign(size, simulated), max(_LEAST_REACH, _REACH * size)
        confidence = Confidence.LIKELY if size >= _LIKELY else Confidence.UNSURE
    return Estimate(
        ratio=math.exp(moved),
        low=math.exp(moved - reach),
        high=math.exp(moved + reach),
        bound_base=base.bound,
        bound_head=head.bound,
        confidence=confidence,
        reasons=_reasons(base, head),
    )


def _is_steady(base: LaunchTime, head: LaunchTime, simulated: float) -> bool:
    """Whether nothing that moves time has moved: either all counts are nearly the same, or the memory is what
    bounds both sides for long, and neither its traffic nor the simulation moved.
    """
    if (base.blocks, base.warps, base.grid) != (head.blocks, head.warps, head.grid):
        return False

    def moved(name: str) -> float:
        return _move(base, head, name)

    if moved("global sectors") > 0.01 or moved("spill sectors") > 0.001:
        return False
    alike = (
        abs(simulated) < 0.003
        and max(moved("instructions"), moved("stall cycles")) < 0.015
        and max(moved("waits on scoreboards"), moved("waits on global loads")) < 0.05
        and max(moved("shared wavefronts"), moved("latency of one warp")) < 0.03
    )
    sides = (base, head)
    memory = (
        abs(simulated) < 0.004
        and min(side.memory_us for side in sides) > 9.0
        and min(side.memory_us / side.scheduled_us for side in sides) > 1.2
        and moved("instructions") < 0.1
        and moved("shared wavefronts") < 0.5
    )
    return alike or memory


def _move(base: LaunchTime, head: LaunchTime, name: str) -> float:
    """The absolute logarithm of the ratio of a count."""
    return abs(_log_ratio(base, head, name))


def _log_ratio(base: LaunchTime, head: LaunchTime, name: str) -> float:
    # a few wavefronts more do not matter beside all instructions
    floor = 1.0 + (base.counts["instructions"] / 50 if name == "shared wavefronts" else 0.0)
    return math.log((head.counts[name] + floor) / (base.counts[name] + floor))


def _reasons(base: LaunchTime, head: LaunchTime) -> tuple[str, ...]:
    moves = [(name, _log_ratio(base, head, name)) for name in COUNTS]
    if base.blocks != head.blocks:
        moves.append(("blocks a multiprocessor", math.log(head.blocks / base.blocks)))
    most = sorted(moves, key=lambda row: -abs(row[1]))[:2]
    return tuple(_shown(base, head, name) for name, move in most if abs(move) > 0.002)


def _shown(base: LaunchTime, head: LaunchTime, name: str) -> str:
    if name == "blocks a multiprocessor":
        return f"{name} {base.blocks} → {head.blocks}"
    before, after = base.counts[name], head.counts[name]
    change = f" ({(after / before - 1) * 100:+.1f} %)" if before else ""
    return f"{name} {before:,.0f} → {after:,.0f}{change}"
