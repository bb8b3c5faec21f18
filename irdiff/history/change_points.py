"""Finds steps of a noisy line: where its level moved, and not only its noise.

PELT with the cost l2 (Killick, Fearnhead and Eckley, 2012), of the library ruptures, proposes where the level
may have moved, in logarithms. A proposal is a step if it is larger than what the line itself does without
one:
- its own quartiles, as rustc-perf judges changes: the upper quartile of the distances of a line's points from
the level of their stretch, plus a multiple of the interquartile range;
- no less than `LEAST_SHARE`: below that an H200's own clocks move whole sessions.

A step has two points on each side. For the last point alone, `beyond_noise` says whether it has left the
line's noise.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SHARE = 0.01
LEAST_POINTS = 2
_QUARTILE_RANGES = 3.0
_PENALTY = 6.0
"""PELT's penalty, in units of noise² × log(points); tuned on the planted lines of
`tests.programs.bench_change_points`.
"""
_NEAR = 5
"""How many points the least-squares search may misplace a step by."""
_LEAST_NOISE = 1e-4
"""In log values: events tick, so a line of equal numbers is not exact beyond that."""
_LEAST_HISTORY = 4
"""The fewest points of a line for which its quartiles mean anything."""


@dataclass(frozen=True, kw_only=True)
class LevelStep:
    index: int
    """The first point of the new level."""
    before: float
    after: float
    """Medians of the stretches on both sides."""
    threshold: float

    @property
    def share(self) -> float:
        """After ÷ before - 1."""
        return self.after / self.before - 1


def level_steps(values: Sequence[float]) -> list[LevelStep]:
    """Takes positive values; returns the oldest step first."""
    logs = np.log(np.asarray(values, dtype=float))
    places = _placed(logs, _proposed(logs))
    while True:
        judged = _judged(logs, places)
        weak = [
            step for step in judged if abs(math.log(step.after / step.before)) <= math.log1p(step.threshold)
        ]
        if not weak:
            return judged
        weakest = min(
            weak, key=lambda step: (abs(step.share) / step.threshold, _unexplained(logs, places, step.index))
        )
        places.remove(weakest.index)  # its neighbours' stretches are longer now, and are judged again


def beyond_noise(before: Sequence[float], last: float) -> tuple[float, float]:
    """Returns how far the last point lies from the level before it, and how far noise may move it, both as
    shares. The second is infinite if the line is too short.
    """
    logs = np.log(np.asarray(before, dtype=float))
    places = [step.index for step in level_steps(before)] if len(before) >= 2 * LEAST_POINTS else []
    level = float(np.median(logs[places[-1] if places else 0 :]))
    distance = math.expm1(math.log(last) - level)
    if len(before) < _LEAST_HISTORY:
        return distance, math.inf
    return distance, max(LEAST_SHARE, math.expm1(_reach(logs, places)))


def _proposed(logs: np.ndarray) -> list[int]:
    if len(logs) < 2 * LEAST_POINTS:
        return []
    import ruptures

    scaled = (logs - logs.mean()) / _noise(logs)
    search = ruptures.KernelCPD(kernel="linear", min_size=LEAST_POINTS).fit(scaled.reshape(-1, 1))
    return [int(place) for place in search.predict(pen=_PENALTY * math.log(len(logs)))[:-1]]


def _placed(logs: np.ndarray, places: Sequence[int]) -> list[int]:
    """Moves each place by a few points to minimize the absolute distances from both levels, because least
    squares draw a step to a nearby slow night.
    """
    moved = list(places)
    for number, place in enumerate(places):
        low = moved[number - 1] if number else 0
        high = places[number + 1] if number + 1 < len(places) else len(logs)
        first, last = max(low + LEAST_POINTS, place - _NEAR), min(high - LEAST_POINTS, place + _NEAR)
        near = sorted(range(first, last + 1), key=lambda other: abs(other - place))
        moved[number] = min(
            near, key=lambda other: float(_distances(logs[low:high], [other - low]).sum()), default=place
        )
    return moved


def _noise(logs: np.ndarray) -> float:
    """Returns the standard deviation of a point around its level, from the median absolute deviation of
    differences of neighbours, which steps hardly affect.
    """
    differences = np.abs(np.diff(logs))
    return max(_LEAST_NOISE, 1.4826 * float(np.median(differences)) / math.sqrt(2))


def _judged(logs: np.ndarray, places: Sequence[int]) -> list[LevelStep]:
    reach = _reach(logs, places)
    bounds = [0, *places, len(logs)]
    steps = []
    for number, place in enumerate(places):
        left, right = logs[bounds[number] : place], logs[place : bounds[number + 2]]
        # medians of a few points are surer than one, by the root of their number
        points = min(len(left), len(right))
        threshold = max(LEAST_SHARE, math.expm1(reach * math.sqrt(LEAST_POINTS / points)))
        before = _level(left, float(np.median(right)), reach)
        after = _level(right, float(np.median(left)), reach)
        steps.append(LevelStep(index=place, before=before, after=after, threshold=threshold))
    return steps


def _level(stretch: np.ndarray, other: float, reach: float) -> float:
    """Returns the median. For few points the level is where two neighbours agree within the line's noise, and
    of those the point that is nearer to the other side. If none agree, returns the other side's level.
    """
    if len(stretch) >= _LEAST_HISTORY:
        return math.exp(float(np.median(stretch)))
    pairs = [pair for pair in itertools.pairwise(stretch) if abs(pair[0] - pair[1]) <= 2 * reach]
    nearer = [min(pair, key=lambda point: abs(point - other)) for pair in pairs]
    return math.exp(float(max(nearer, key=lambda point: abs(point - other), default=other)))


def _reach(logs: np.ndarray, places: Sequence[int]) -> float:
    """Returns the largest distance of a point from its level, by quartiles."""
    distances = _distances(logs, places)
    lower, upper = np.quantile(distances, (0.25, 0.75))
    return max(_LEAST_NOISE, float(upper + _QUARTILE_RANGES * (upper - lower)))


def _unexplained(logs: np.ndarray, places: Sequence[int], without: int) -> float:
    """Returns the sum of distances from the levels without one of the steps. Of two ends of a stretch that is
    no level, the one with the smaller sum is removed.
    """
    return float(_distances(logs, [place for place in places if place != without]).sum())


def _distances(logs: np.ndarray, places: Sequence[int]) -> np.ndarray:
    bounds = [0, *places, len(logs)]
    parts = [logs[low:high] for low, high in itertools.pairwise(bounds)]
    return np.concatenate([np.abs(part - np.median(part)) for part in parts])
