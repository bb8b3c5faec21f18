"""From some programs of a grid to all of them.

Programs of one launch differ at the edges of a tensor, by masks that depend on their place, or by data. A few
are executed first. Where all agree, one stands for all. Where they differ along some axes of the grid only,
these are executed whole, or what a program costs is linear along one, which further programs confirm.
Otherwise nothing is said of the whole: a sample of two sides that differ would compare what was sampled.

Executing ten programs together takes little longer than one, so each step asks for all that it may need.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.execution import progressions

Place = tuple[int, int, int]
Costs = Callable[[Sequence[Place]], Any]
"""Places → an array (…, programs) with what each of these programs costs."""
_SEED = 20
_SHORT = 12
"""An axis of so few programs is looked at whole."""
_CHECKS = 6
_FEW = 4


@dataclass(frozen=True, kw_only=True)
class WholeGrid:
    """The cost of all programs."""

    total: Any
    executed: int
    """Programs; each other one stands in a pattern that some of these confirmed."""


class ExecutedPrograms:
    """Costs of programs, each executed once. Programs that cost the same share one array."""

    def __init__(self, costs: Costs, batch: int) -> None:
        self._costs, self._batch = costs, batch
        self._kind_of: dict[Place, int] = {}
        self._kinds: list[Any] = []
        self._kind_of_content: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._kind_of)

    def kinds(self, places: Sequence[Place]) -> list[int]:
        """A number for each place; programs of one number cost the same."""
        missing = [place for place in dict.fromkeys(places) if place not in self._kind_of]
        for begin in range(0, len(missing), self._batch):
            self._keep(missing[begin : begin + self._batch])
        return [self._kind_of[place] for place in places]

    def are_equal(self, places: Sequence[Place]) -> bool:
        return len(set(self.kinds(places))) == 1

    def of(self, places: Sequence[Place]) -> Any:
        """(…, programs)."""
        return np.stack([self._kinds[kind] for kind in self.kinds(places)], axis=-1)

    def sum(self, places: Sequence[Place]) -> Any:
        counts = Counter(self.kinds(places))
        return sum(self._kinds[kind] * count for kind, count in counts.items())

    def _keep(self, places: Sequence[Place]) -> None:
        costs = self._costs(places)
        as_first = (costs == costs[..., :1]).all(axis=tuple(range(costs.ndim - 1)))
        for n, place in enumerate(places):
            if n and as_first[n]:
                self._kind_of[place] = self._kind_of[places[0]]
                continue
            cost = costs[..., n].copy()
            digest = hashlib.blake2b(cost.tobytes()).digest()
            kind = self._kind_of[place] = self._kind_of_content.setdefault(digest, len(self._kinds))
            if kind == len(self._kinds):
                self._kinds.append(cost)


def whole(costs: Costs, grid: Place, *, batch: int, most: int) -> WholeGrid | None:
    """`batch` programs are executed at once, `most` in all. None where they differ and show no pattern.

    Raises what `costs` raises.
    """
    programs = ExecutedPrograms(costs, batch)
    total = _exactly(programs, grid, most)
    return None if total is None else WholeGrid(total=total, executed=len(programs))


def place_of(index: int, grid: Place) -> Place:
    return index % grid[0], index // grid[0] % grid[1], index // (grid[0] * grid[1])


def _exactly(programs: ExecutedPrograms, grid: Place, most: int) -> Any:
    """The total; None where no pattern was found and not all can be executed."""
    count = math.prod(grid)
    probe = _probe(grid)
    if programs.are_equal(probe):
        return programs.sum(probe[:1]) * count
    total = None if count <= 32 else _by_varying_axes(programs, grid, most)
    if total is None and count <= most:
        total = programs.sum([place_of(n, grid) for n in range(count)])
    return total


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
    programs.kinds([place for line in lines.values() for place in line])
    flat = [axis for axis in range(3) if all(programs.are_equal(lines[axis, n]) for n in range(len(bases)))]
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
    programs.kinds(wanted)
    if programs.kinds(checks) != programs.kinds([flattened(place) for place in checks]):
        return None
    if size >= progressions.LEAST:
        total = progressions.total(lambda values: programs.of(line(values)), size)
        if total is not None:
            return total * others
    if math.prod(grid[axis] for axis in varying) > most:
        return None
    return programs.sum(_plane(grid, varying)) * others


def _plane(grid: Place, varying: Sequence[int]) -> list[Place]:
    middle = _middle(grid)
    ranges = [range(grid[axis]) if axis in varying else (middle[axis],) for axis in range(3)]
    return [(x, y, z) for z in ranges[2] for y in ranges[1] for x in ranges[0]]
