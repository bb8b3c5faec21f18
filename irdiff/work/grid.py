"""From some programs of a grid to all of them.

Programs of one launch differ at the edges of a tensor, by masks that depend on their place, or by data. A few
are executed first. Where all agree, one stands for all. Where they differ along one axis of the grid only, that
axis is executed whole, or what a program costs is linear along it, which further programs confirm. Otherwise a
sample is taken, and what is said of the whole is marked as an estimate.
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
_SEED = 20


@dataclass(frozen=True, kw_only=True)
class WholeGrid:
    """The cost of all programs."""

    total: Any
    exact: bool
    """Whether every program was executed, or stands in a pattern that further programs confirmed."""
    executed: int


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
    by_axis = _along_one_axis(known, grid, most)
    if by_axis is not None:
        return WholeGrid(total=by_axis, exact=True, executed=len(known))
    if every is not None:
        return WholeGrid(total=known.of(every).sum(axis=-1), exact=True, executed=len(known))
    generator = np.random.default_rng(_SEED)
    sample = [place_of(int(n), grid) for n in generator.choice(count, size=min(count, max(_SAMPLE, most // 2)), replace=False)]
    return WholeGrid(total=known.of(sample).mean(axis=-1) * count, exact=False, executed=len(known))


def _all_equal(rows: Any) -> bool:
    return bool((rows == rows[..., :1]).all())


def _probe(grid: Place) -> list[Place]:
    """Both ends and the middle of each axis, and a few places at random."""
    x, y, z = grid
    places = [(0, 0, 0), (x - 1, y - 1, z - 1), (x // 2, y // 2, z // 2)]
    for axis in range(3):
        if grid[axis] > 1:
            for value in (0, 1, grid[axis] - 1):
                place = [x // 2, y // 2, z // 2]
                place[axis] = value
                places.append((place[0], place[1], place[2]))
    generator = np.random.default_rng(_SEED)
    places += [place_of(int(n), grid) for n in generator.integers(0, math.prod(grid), 3)]
    return list(dict.fromkeys(places))


def _along_one_axis(known: Known, grid: Place, most: int) -> Any:
    """The total where programs differ along one axis alone; None where they do not, or that is not shown."""
    x, y, z = grid
    for axis in range(3):
        size = grid[axis]
        others = math.prod(grid) // size
        if size == 1:
            continue

        def line(values: Sequence[int], axis: int = axis, shift: int = 0) -> list[Place]:
            places = []
            for value in values:
                place = [x // 2, y // 2, z // 2]
                place = [(n + shift) % grid[k] for k, n in enumerate(place)]
                place[axis] = value
                places.append((place[0], place[1], place[2]))
            return places

        checks = [0, size // 3, size - 1]
        base = known.of(line(checks))
        if others > 1 and not all((known.of(line(checks, shift=step)) == base).all() for step in (1, max(grid) // 3 + 1)):
            continue
        total = _edges(known, line, size)
        if total is None:
            total = _linear(known, line, size)
        if total is None and size <= most:
            total = known.of(line(range(size))).sum(axis=-1)
        if total is not None:
            return total * others
    return None


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
                (rows[..., n] == rows[..., 0] + step * ((point - first) // period)).all() for n, point in enumerate(points)
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
