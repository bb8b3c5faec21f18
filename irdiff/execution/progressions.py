"""Costs of programs along one axis, if they follow a pattern that a few of them show. Pure."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Line = Callable[[Sequence[int]], Any]
"""Places on the axis → an array (…, places) of what each costs."""
LEAST = 24
"""Programs of the shortest axis of which a pattern is looked for."""
_START = 4
_PERIOD = 4
_MOST_GAPS = 4
_MOST_BETWEEN = 64


def points(size: int) -> list[int]:
    """The places that `total` looks at first: both ends, and four of each phase."""
    return sorted({*_rest(size), *(place for first in _phases() for place in _of_phase(first, size))})


def total(line: Line, size: int) -> Any:
    """The sum over the whole axis; None where it has no pattern."""
    costs = line(points(size))
    if (costs[..., 1:-1] == costs[..., 1:2]).all():  # only the first and the last differ
        return costs[..., 1] * (size - 2) + costs[..., 0] + costs[..., -1]
    linear = _linear(line, size)
    return _stepwise(line, size) if linear is None else linear


def _phases() -> range:
    return range(_START, _START + _PERIOD)


def _steps(size: int) -> int:
    """Places of each phase."""
    return (size - 1 - _START) // _PERIOD - 1


def _of_phase(first: int, size: int) -> list[int]:
    return [first + _PERIOD * n for n in (0, 1, _steps(size) // 2, _steps(size) - 1)]


def _rest(size: int) -> list[int]:
    return [*range(_START), *range(_START + _PERIOD * _steps(size), size)]


def _linear(line: Line, size: int) -> Any:
    """Costs that grow by the same amount every 1, 2 or 4 programs; the ends are executed."""
    whole, steps = line(_rest(size)).sum(axis=-1), _steps(size)
    for first in _phases():
        places = _of_phase(first, size)
        costs = line(places).astype(np.int64)
        step = costs[..., 1] - costs[..., 0]
        for n, place in enumerate(places):
            if not (costs[..., n] == costs[..., 0] + step * ((place - first) // _PERIOD)).all():
                return None
        whole = whole + costs[..., 0] * steps + step * (steps * (steps - 1) // 2)
    return whole


def _stepwise(line: Line, size: int) -> Any:
    """Costs that change at a few places and are the same between: programs with more or fewer tiles."""
    places = points(size)
    costs = line(places)
    gaps = [
        (place, following)
        for n, (place, following) in enumerate(itertools.pairwise(places))
        if (costs[..., n] != costs[..., n + 1]).any()
    ]
    between = [place for begin, end in gaps for place in range(begin + 1, end)]
    if len(gaps) > _MOST_GAPS or len(between) > _MOST_BETWEEN:
        return None
    executed = sorted({*places, *between})
    # each program that was not executed lies between two that cost the same
    spans = [end - begin for begin, end in itertools.pairwise([*executed, size])]
    return (line(executed) * np.array(spans)).sum(axis=-1)
