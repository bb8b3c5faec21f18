"""Counts where each statistic moved up and down, over the changed cases of a target.

It does not say whether a move costs time: registers and code size did not predict that
(`reports/samples/cost-record.md`).

A case is an *outlier* if spills moved, or another statistic moved by a tenth or more and lies beyond the far
fences of its target: three interquartile ranges outside the quartiles (Tukey, "Exploratory Data Analysis",
1977).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import quantiles

from irdiff.backends.statistic import Resource, Statistic
from irdiff.compare import statistics
from irdiff.model import COMPARED_VERDICTS, Case, Run, Target, Verdict
from irdiff.report import families

_LEAST_OUTLYING = 0.10
_FENCE = 3.0


@dataclass(frozen=True, kw_only=True)
class StatisticMove:
    case_id: str
    """Empty for several."""
    base: float
    head: float
    unit: str

    @property
    def relative(self) -> float:
        """Head's change as a share of base, or of head if base is 0."""
        return (self.head - self.base) / (self.base or abs(self.head) or 1.0)

    @property
    def percent(self) -> str:
        share = round(100 * self.relative, 1)
        return "" if not self.base else f"{share:+.1f} %" if share else "0 %"

    @property
    def words(self) -> str:
        """`120 → 240 B (+100.0 %)`."""
        percent = f" ({self.percent})" if self.base and self.head != self.base else ""
        return f"{self.base:,.0f} → {self.head:,.0f}{f' {self.unit}' if self.unit else ''}{percent}"


@dataclass(frozen=True, kw_only=True)
class Movement:
    statistic: Statistic
    part: str
    """The target, or a family and a target."""
    up: tuple[StatisticMove, ...]
    """The largest moves first."""
    down: tuple[StatisticMove, ...]
    same: int
    unknown: int
    """Changed cases without the facts."""
    affected: StatisticMove
    """Over the cases in which it moved."""
    total: StatisticMove
    """Over all changed cases."""
    quantiles: tuple[float, ...]
    """Relative change over all compared cases: least, 5th, 25th, 50th, 75th and 95th percentile, greatest. A
    case with the same code counts as 0.
    """

    @property
    def words(self) -> str:
        """`6 up, 7 down`."""
        words = counts(len(self.up), len(self.down))
        return f"{words}, {self.unknown} not known" if self.unknown else words

    @property
    def far(self) -> tuple[str, ...]:
        return tuple(f"{value:+.1%}" if value else "0" for value in self.quantiles)


@dataclass(frozen=True, kw_only=True)
class Outlier:
    case_id: str
    words: str
    is_spill: bool
    share: float
    """The relative move without its sign."""


def counts(up: int, down: int) -> str:
    """`6 up, 7 down`."""
    return ", ".join(f"{count} {word}" for count, word in ((up, "up"), (down, "down")) if count)


def by_target(run: Run) -> list[Movement]:
    """Keeps the order of statistics, then of targets. Leaves out statistics that did not move."""
    movements = [
        movement for target in run.targets for movement in _of(target.name, target, _compared(run, target))
    ]
    return sorted(movements, key=lambda movement: statistics.NAMES.index(movement.statistic.name))


def by_family(run: Run) -> list[Movement]:
    movements = []
    for target in run.targets:
        compared = _compared(run, target)
        for name in sorted({families.of(case.workload) for case in compared}):
            part = [case for case in compared if families.of(case.workload) == name]
            movements += _of(f"{name} {target.name}", target, part)
    return sorted(movements, key=lambda movement: movement.part)


def _compared(run: Run, target: Target) -> list[Case]:
    return [case for case in run.cases if case.target == target.name and case.verdict in COMPARED_VERDICTS]


def _of(part: str, target: Target, cases: Sequence[Case]) -> list[Movement]:
    # occupancy says what blocks say, in warps
    told = (
        statistic
        for statistic in statistics.of_backend(target.backend)
        if statistic.resource is not Resource.BLOCKS
    )
    movements = (_movement(statistic, part, cases) for statistic in told)
    return [movement for movement in movements if movement.up or movement.down]


def _movement(statistic: Statistic, part: str, cases: Sequence[Case]) -> Movement:
    changed = [case for case in cases if case.verdict is Verdict.CHANGED]
    moves = [move for case in changed if (move := _move(statistic, case))]
    same, unknown = len(cases) - len(changed), len(changed) - len(moves)
    return summed(statistic, part, moves, same=same, unknown=unknown)


def summed(
    statistic: Statistic, part: str, moves: Sequence[StatisticMove], *, same: int, unknown: int
) -> Movement:
    """`same`, `unknown`: how many more cases have the same code, or no facts."""
    moved = [move for move in moves if move.base != move.head]
    relative = [*(move.relative for move in moves), *[0.0] * same] or [0.0]
    twentieths = quantiles(relative if len(relative) > 1 else 2 * relative, n=20, method="inclusive")
    return Movement(
        statistic=statistic,
        part=part,
        up=_farthest(move for move in moved if move.head > move.base),
        down=_farthest(move for move in moved if move.head < move.base),
        same=same + len(moves) - len(moved),
        unknown=unknown,
        affected=_total(statistic, moved),
        total=_total(statistic, moves),
        quantiles=(min(relative), *(twentieths[place] for place in (0, 4, 9, 14, 18)), max(relative)),
    )


def _move(statistic: Statistic, case: Case) -> StatisticMove | None:
    base, head = statistic.of(case.facts.base), statistic.of(case.facts.head)
    if base is None or head is None:
        return None
    return StatisticMove(case_id=case.id, base=base, head=head, unit=statistic.unit)


def _farthest(moves: Iterable[StatisticMove]) -> tuple[StatisticMove, ...]:
    """Puts a figure that becomes nonzero or zero before all shares."""
    return tuple(sorted(moves, key=lambda m: (-abs(m.relative), -abs(m.head - m.base), m.case_id)))


def _total(statistic: Statistic, moves: Sequence[StatisticMove]) -> StatisticMove:
    base, head = sum(move.base for move in moves), sum(move.head for move in moves)
    return StatisticMove(case_id="", base=base, head=head, unit=statistic.unit)


# outliers


def outliers(movements: Iterable[Movement]) -> list[Outlier]:
    """Takes movements by target. Puts spills first, then the largest moves."""
    outlying = [
        Outlier(
            case_id=move.case_id,
            words=f"{movement.statistic.name} {move.words}",
            is_spill=movement.statistic.should_be_none,
            share=abs(move.relative),
        )
        for movement in movements
        for move in (*movement.up, *movement.down)
        if _is_far(movement, move)
    ]
    return sorted(outlying, key=lambda outlier: (not outlier.is_spill, -outlier.share, outlier.case_id))


def _is_far(movement: Movement, move: StatisticMove) -> bool:
    low, high = movement.quantiles[2], movement.quantiles[4]
    is_far = not -_FENCE * (high - low) <= move.relative - low <= (1 + _FENCE) * (high - low)
    return movement.statistic.should_be_none or (is_far and abs(move.relative) >= _LEAST_OUTLYING)
