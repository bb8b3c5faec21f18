"""From some programs of a grid to all of them.

Programs of one launch differ at the edges of a tensor, by masks that depend on their place, or by data. A few
are executed first. Where all agree, one stands for all. Where they differ along some axes of the grid only,
these are executed whole, or what a program costs is linear along one, which further programs confirm.
Otherwise a sample is taken, and what is said of the whole is marked as an estimate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Place = tuple[int, int, int]
Costs = Callable[[Sequence[Place]], Any]
"""Places → an array (…, programs) with what each of these programs costs."""
_SAMPLE = 24
_FEW = 8
_SEED = 20
_SHORT = 12
"""An axis of so few programs is looked at whole."""


@dataclass(frozen=True, kw_only=True)
class WholeGrid:
    """The cost of all programs."""

    total: Any
    exact: bool
    """Whether every program was executed, or stands in a pattern that further programs confirmed."""
    executed: int


def sampled(costs: Costs, grid: Place) -> WholeGrid:
    """An estimate from a few programs at random."""
    count = math.prod(grid)
    places = list(dict.fromkeys(_random(grid, _FEW)))
    return WholeGrid(total=costs(places).mean(axis=-1) * count, exact=False, executed=len(places))


def place_of(index: int, grid: Place) -> Place:
    return index % grid[0], index // grid[0] % grid[1], index // (grid[0] * grid[1])


class Known:
    """What programs cost, each executed once."""

    def __init__(self, costs: Costs, batch: int) -> None:
        self._costs, self._batch = costs, batch
        self._rows: dict[Place, Any] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, places: Sequence[Place]) -> Any:
        """(…, programs)."""
        missing = [row for row in dict.fromkeys(places) if row not in self._rows]
        for begin in range(0, len(missing), self._batch):
            part = missing[begin : begin + self._batch]
            found = self._costs(part)
            for n, row in enumerate(part):
                self._rows[row] = found[..., n]
        return np.stack([self._rows[row] for row in places], axis=-1)


def whole(costs: Costs, grid: Place, *, batch: int, most: int) -> WholeGrid:
    """`batch` programs are executed at once, `most` in all."""
    count = math.prod(grid)
    known = Known(costs, batch)
    every = [place_of(n, grid) for n in range(count)] if count <= min(most, 4096) else None
    if count <= 4:
        assert every is not None
        return WholeGrid(total=known.of(every).sum(axis=-1), exact=True, executed=count)
    probe = _probe(grid)
    first = known.of(probe)
    if _all_equal(first):
        return WholeGrid(total=first[..., 0] * count, exact=True, executed=len(known))
    if every is not None and count <= batch:
        return WholeGrid(total=known.of(every).sum(axis=-1), exact=True, executed=len(known))
    total = _by_varying_axes(known, grid, most)
    if total is not None:
        return WholeGrid(total=total, exact=True, executed=len(known))
    if every is not None:
        return WholeGrid(total=known.of(every).sum(axis=-1), exact=True, executed=len(known))
    generator = np.random.default_rng(_SEED)
    chosen = generator.choice(count, size=min(count, max(_SAMPLE, most // 2)), replace=False)
    sample = [place_of(int(n), grid) for n in chosen]
    return WholeGrid(total=known.of(sample).mean(axis=-1) * count, exact=False, executed=len(known))


def _all_equal(rows: Any) -> bool:
    return bool((rows == rows[..., :1]).all())


def _at(place: Place, axis: int, value: int) -> Place:
    changed = list(place)
    changed[axis] = value
    return changed[0], changed[1], changed[2]


def _middle(grid: Place) -> Place:
    return grid[0] // 2, grid[1] // 2, grid[2] // 2


def _random(grid: Place, count: int) -> list[Place]:
    generator = np.random.default_rng(_SEED)
    return [place_of(int(n), grid) for n in generator.integers(0, math.prod(grid), count)]


def _values(size: int) -> list[int]:
    """The places of an axis that are looked at: all of a short one, the ends and the middle of a long one."""
    return list(range(size)) if size <= _SHORT else sorted({0, 1, size // 3, size // 2, size - 1})


def _probe(grid: Place) -> list[Place]:
    """Both ends and the middle of each axis, and a few places at random."""
    last = (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    lines = [
        _at(_middle(grid), axis, value)
        for axis in range(3)
        for value in (0, 1, grid[axis] - 1)
        if value < grid[axis]
    ]
    short = [
        _at(_middle(grid), axis, value)
        for axis in range(3)
        if 1 < grid[axis] <= _SHORT
        for value in range(grid[axis])
    ]
    return list(dict.fromkeys([(0, 0, 0), last, _middle(grid), *lines, *short, *_random(grid, 3)]))


def _by_varying_axes(known: Known, grid: Place, most: int) -> Any:
    """The total, where programs along some axes cost the same; None where none do, or too much is left."""
    bases = [_middle(grid), *_random(grid, 2)]
    flat = [
        axis
        for axis in range(3)
        if all(_all_equal(known.of([_at(b, axis, v) for v in _values(grid[axis])])) for b in bases)
    ]
    varying = [axis for axis in range(3) if axis not in flat]
    middle = _middle(grid)

    def flattened(place: Place) -> Place:
        for axis in flat:
            place = _at(place, axis, middle[axis])
        return place

    checks = _random(grid, 24)
    if not (known.of(checks) == known.of([flattened(place) for place in checks])).all():
        return None
    others = math.prod(grid[axis] for axis in flat)
    if len(varying) == 1:
        axis = varying[0]

        def line(values: Sequence[int]) -> list[Place]:
            return [_at(middle, axis, value) for value in values]

        total = _edges(known, line, grid[axis])
        if total is None:
            total = _linear(known, line, grid[axis])
        if total is not None:
            return total * others
    if math.prod(grid[axis] for axis in varying) > most:
        return None
    ranges = [range(grid[axis]) if axis in varying else (middle[axis],) for axis in range(3)]
    plane = [(x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0]]
    return known.of(plane).sum(axis=-1) * others


def _edges(known: Known, line: Callable[[Sequence[int]], list[Place]], size: int) -> Any:
    """Only the first and the last program of the line differ from the others."""
    if size < 8:
        return None
    generator = np.random.default_rng(_SEED)
    inner = sorted({1, 2, size // 2, size - 2, *generator.integers(1, size - 1, 8).tolist()})
    rows = known.of(line(inner))
    if not _all_equal(rows):
        return None
    ends = known.of(line([0, size - 1]))
    return rows[..., 0] * (size - 2) + ends.sum(axis=-1)


def _linear(known: Known, line: Callable[[Sequence[int]], list[Place]], size: int) -> Any:
    """Costs that grow by the same amount every 1, 2 or 4 programs; the ends are executed."""
    if size < 24:
        return None
    for period in (1, 2, 4):
        start = 4
        count = (size - 1 - start) // period - 1
        total = known.of(line([*range(start), size - 1])).sum(axis=-1)
        used = start + 1
        fits = True
        for phase in range(period):
            first = start + phase
            steps = count if period > 1 else size - 1 - start
            points = [first, first + period, first + period * (steps // 2), first + period * (steps - 1)]
            rows = known.of(line(points)).astype(np.int64)
            step = rows[..., 1] - rows[..., 0]
            fits = all(
                (rows[..., n] == rows[..., 0] + step * ((point - first) // period)).all()
                for n, point in enumerate(points)
            )
            if not fits:
                break
            total = total + rows[..., 0] * steps + step * (steps * (steps - 1) // 2)
            used += steps
        if fits:
            rest = range(start + period * count, size - 1) if period > 1 else ()
            if rest:
                total = total + known.of(line(list(rest))).sum(axis=-1)
                used += len(rest)
            assert used == size
            return total
    return None
