"""What programs along one axis cost, where that follows a pattern that a few of them show. Pure."""

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
_PERIODS = (1, 2, 4)
_SEED = 20
_MOST_GAPS = 4
_MOST_BETWEEN = 64


def points(size: int) -> list[int]:
    """All places that `total` may look at first."""
    return sorted(
        {*_inner(size), 0, size - 1, *(row for period in _PERIODS for row in _linear_points(size, period))}
    )


def total(line: Line, size: int) -> Any:
    """The sum over the whole axis; None where it has no pattern."""
    rows = line(_inner(size))
    if (rows == rows[..., :1]).all():  # only the first and the last differ
        return rows[..., 0] * (size - 2) + line([0, size - 1]).sum(axis=-1)
    for period in _PERIODS:
        found = _linear(line, size, period)
        if found is not None:
            return found
    return _steps(line, size)


def _steps(line: Line, size: int) -> Any:
    """Costs that change at a few places and are the same between: programs with more or fewer tiles."""
    places = sorted({0, *_inner(size), size - 1})
    rows = line(places)
    gaps = [
        (place, following)
        for n, (place, following) in enumerate(itertools.pairwise(places))
        if (rows[..., n] != rows[..., n + 1]).any()
    ]
    between = [place for begin, end in gaps for place in range(begin + 1, end)]
    if len(gaps) > _MOST_GAPS or len(between) > _MOST_BETWEEN:
        return None
    executed = sorted({*places, *between})
    rows = line(executed)
    # each program that was not executed lies between two that cost the same
    spans = [end - begin for begin, end in itertools.pairwise([*executed, size])]
    return (rows * np.array(spans)).sum(axis=-1)


def _inner(size: int) -> list[int]:
    generator = np.random.default_rng(_SEED)
    return sorted({1, 2, size // 2, size - 2, *generator.integers(1, size - 1, 8).tolist()})


def _phases(size: int, period: int) -> list[tuple[int, int]]:
    """(first place, number of places) of each phase."""
    steps = size - 1 - _START if period == 1 else (size - 1 - _START) // period - 1
    return [(_START + phase, steps) for phase in range(period)]


def _of_phase(first: int, steps: int, period: int) -> list[int]:
    return [first, first + period, first + period * (steps // 2), first + period * (steps - 1)]


def _rest(size: int, period: int) -> list[int]:
    (first, steps), *_ = _phases(size, period)
    return [*range(_START), *range(first + period * steps, size)]


def _linear_points(size: int, period: int) -> list[int]:
    return [
        *_rest(size, period),
        *(place for row in _phases(size, period) for place in _of_phase(*row, period)),
    ]


def _linear(line: Line, size: int, period: int) -> Any:
    """Costs that grow by the same amount every `period` programs; the ends are executed."""
    sum_ = line(_rest(size, period)).sum(axis=-1)
    for first, steps in _phases(size, period):
        places = _of_phase(first, steps, period)
        rows = line(places).astype(np.int64)
        step = rows[..., 1] - rows[..., 0]
        for n, place in enumerate(places):
            if not (rows[..., n] == rows[..., 0] + step * ((place - first) // period)).all():
                return None
        sum_ = sum_ + rows[..., 0] * steps + step * (steps * (steps - 1) // 2)
    return sum_
