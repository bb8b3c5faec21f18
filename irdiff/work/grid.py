"""From some programs of a grid to all of them.

Programs of one launch differ at the edges of a tensor, by masks that depend on their place, or by data. A few
are executed first. Where all agree, one stands for all. Where they differ along some axes of the grid only,
these are executed whole, or what a program costs is linear along one, which further programs confirm.
Otherwise a sample is taken, and what is said of the whole is marked as an estimate.

Executing ten programs together takes little longer than one, so each step asks for all that it may need.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.work import progressions

Place = tuple[int, int, int]
Costs = Callable[[Sequence[Place]], Any]
"""Places → an array (…, programs) with what each of these programs costs."""
_SEED = 20
_SHORT = 12
"""An axis of so few programs is looked at whole."""
_CHECKS = 6
_FEW = 4
_SAMPLE = 16


class TooMuch(Exception):  # noqa: N818 - what was met, not a mistake
    """What is left of the budget is too little for the programs that are asked for."""


@dataclass(frozen=True, kw_only=True)
class WholeGrid:
    """The cost of all programs."""

    total: Any
    exact: bool
    """Whether every program was executed, or stands in a pattern that further programs confirmed."""
    executed: int


class ExecutedPrograms:
    """What programs cost, each executed once."""

    def __init__(self, costs: Costs, batch: int) -> None:
        self._costs, self._batch = costs, batch
        self._rows: dict[Place, Any] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, places: Sequence[Place]) -> Any:
        """(…, programs). Raises TooMuch."""
        missing = [row for row in dict.fromkeys(places) if row not in self._rows]
        for begin in range(0, len(missing), self._batch):
            part = missing[begin : begin + self._batch]
            found = self._costs(part)
            for n, row in enumerate(part):
                self._rows[row] = found[..., n]
        return np.stack([self._rows[row] for row in places], axis=-1)

    def mean(self) -> Any:
        """Of all that were executed."""
        return np.stack(list(self._rows.values()), axis=-1).mean(axis=-1)


def whole(costs: Costs, grid: Place, *, batch: int, most: int) -> WholeGrid:
    """`batch` programs are executed at once, `most` in all. Raises TooMuch where not one can be executed."""
    programs = ExecutedPrograms(costs, batch)
    try:
        total = _exactly(programs, grid, most)
        if total is not None:
            return WholeGrid(total=total, exact=True, executed=len(programs))
    except TooMuch:
        pass
    return _sampled(programs, grid)


def place_of(index: int, grid: Place) -> Place:
    return index % grid[0], index // grid[0] % grid[1], index // (grid[0] * grid[1])


def _sampled(programs: ExecutedPrograms, grid: Place) -> WholeGrid:
    """An estimate from what was executed, and from programs at random: as many as the budget allows."""
    places = _random(grid, _SAMPLE)
    for begin, end in itertools.pairwise((0, 1, 3, _SAMPLE)):
        try:
            programs.of(places[begin:end])
        except TooMuch:
            if not len(programs):
                raise
            break
    total = programs.mean() * math.prod(grid)
    return WholeGrid(total=total, exact=False, executed=len(programs))


def _exactly(programs: ExecutedPrograms, grid: Place, most: int) -> Any:
    """The total; None where no pattern was found and not all can be executed. Raises TooMuch."""
    count = math.prod(grid)
    first = programs.of(_probe(grid))
    if _all_equal(first):
        return first[..., 0] * count
    total = None if count <= 32 else _by_varying_axes(programs, grid, most)
    if total is None and count <= most:
        total = programs.of([place_of(n, grid) for n in range(count)]).sum(axis=-1)
    return total


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


def _probe(grid: Place) -> list[Place]:
    """Both ends and the middle of the grid, and a few places at random; all of a small grid.

    The last program lies at the upper edge of every axis, so masks of any edge show there.
    """
    if math.prod(grid) <= _FEW:
        return [place_of(n, grid) for n in range(math.prod(grid))]
    last = (grid[0] - 1, grid[1] - 1, grid[2] - 1)
    some = [(0, 0, 0), last, _middle(grid), (1 % grid[0], 0, 0), (last[0], 0, 0), *_random(grid, 3)]
    return list(dict.fromkeys(some))


def _values(size: int) -> list[int]:
    """The places of an axis that are looked at: all of a short one, the ends and the middle of a long one."""
    return list(range(size)) if size <= _SHORT else sorted({0, size // 3, size // 2, size - 1})


def _by_varying_axes(programs: ExecutedPrograms, grid: Place, most: int) -> Any:
    """The total, where programs along some axes cost the same; None where none do, or too much is left."""
    bases = [_middle(grid), *_random(grid, 1)]
    lines = {
        (axis, n): [_at(base, axis, value) for value in _values(grid[axis])]
        for axis in range(3)
        for n, base in enumerate(bases)
    }
    programs.of([place for line in lines.values() for place in line])
    flat = [
        axis for axis in range(3) if all(_all_equal(programs.of(lines[axis, n])) for n in range(len(bases)))
    ]
    varying = [axis for axis in range(3) if axis not in flat]
    middle, others = _middle(grid), math.prod(grid[axis] for axis in flat)

    def flattened(place: Place) -> Place:
        for axis in flat:
            place = _at(place, axis, middle[axis])
        return place

    def line(values: Sequence[int]) -> list[Place]:
        return [_at(middle, varying[0], value) for value in values]

    checks = _random(grid, _CHECKS)
    wanted = [*checks, *map(flattened, checks)]
    size = grid[varying[0]] if len(varying) == 1 else 0
    if size >= progressions.LEAST:
        wanted += line(progressions.points(size))
    elif (left := math.prod(grid[axis] for axis in varying)) <= min(most, 64) or left == math.prod(grid):
        wanted += _plane(grid, varying)[:64]
    programs.of(wanted)
    if not (programs.of(checks) == programs.of([flattened(place) for place in checks])).all():
        return None
    if size >= progressions.LEAST:
        total = progressions.total(lambda values: programs.of(line(values)), size)
        if total is not None:
            return total * others
    if math.prod(grid[axis] for axis in varying) > most:
        return None
    return programs.of(_plane(grid, varying)).sum(axis=-1) * others


def _plane(grid: Place, varying: Sequence[int]) -> list[Place]:
    middle = _middle(grid)
    ranges = [range(grid[axis]) if axis in varying else (middle[axis],) for axis in range(3)]
    return [(x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0]]


def scaled(sample: WholeGrid, executed: WholeGrid, column: int) -> WholeGrid:
    """What a sample says, for as many executions of each instruction as all programs together have.

    `sample.total` and `executed.total`: (sure and beyond, columns, instructions), of which `column` has the
    executions. What an instruction that no program of the sample executes does besides is not known.
    """
    ours, wanted = sample.total[:, column], executed.total[:, column]
    factor = np.divide(wanted, ours, out=np.zeros_like(wanted, dtype=float), where=ours != 0)
    total = sample.total * factor[:, None, :]
    total[:, column] = wanted
    return WholeGrid(total=total, exact=False, executed=sample.executed)
