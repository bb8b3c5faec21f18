"""Steps: where the lines of cases moved, grouped by cause.

Cases of one change group whose facts moved are one step: the same edit moved them. An edit that may be wrong
is a step, whether a fact moved or not. Facts are exact, so any other number is a move. Timings are noisy:
neighbours of one session differ if their intervals say so, and long lines where `change_points` finds a
level.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.group.report_classes import ReportClass
from irdiff.history import change_points
from irdiff.history.database import NOT_CARRIED
from irdiff.history.lines import HistoryGroup, SeriesLines, Timing, Values, VersionPair
from irdiff.history.versions import COMMITS, RELEASES
from irdiff.model import Verdict
from irdiff.words import first_few

TIME = "time"
LONG = 12
"""From so many timings on, a line's own history is better than the intervals of two sessions."""
_BACK = 0.5
"""The share of a step's moves that must have their former value again for it to be undone."""
_NAMED = 3
"""Workloads in the title of a step without a group."""
_WITHOUT_GROUP: Mapping[str, str] = {
    Verdict.BROKEN: "compiles no more",
    Verdict.FIXED: "compiles now",
    Verdict.ADDED: "new",
    Verdict.REMOVED: "gone",
}


@dataclass(frozen=True, kw_only=True)
class Move:
    case_id: str
    fact: str
    """A fact's name, or `time`, whose values are ratios to a reference."""
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Step:
    """The figures that moved between two neighbouring versions for one reason."""

    id: str
    base: int
    head: int
    """Places of both versions in the series."""
    group: HistoryGroup | None
    title: str
    cases: tuple[str, ...]
    moves: tuple[Move, ...]
    undone_at: int | None
    """The place of the version at which most of it was undone."""
    bisect: str

    @property
    def is_hazard(self) -> bool:
        return self.group is not None and self.group.severity == ReportClass.HAZARD

    @property
    def slower(self) -> int:
        return sum(move.fact == TIME and move.after > move.before for move in self.moves)

    @property
    def faster(self) -> int:
        return sum(move.fact == TIME and move.after < move.before for move in self.moves)


def find(series: SeriesLines) -> list[Step]:
    """Puts the newest first, and the gravest of a pair."""
    timed = _timing_moves(series)
    steps = [step for pair in series.pairs for step in _of_pair(series, pair, timed)]
    return sorted(steps, key=lambda step: (-step.head, not step.is_hazard, -len(step.cases), step.id))


def _of_pair(
    series: SeriesLines, pair: VersionPair, timed: Mapping[tuple[str, int, int], Move]
) -> list[Step]:
    members: dict[tuple[HistoryGroup | None, str], list[str]] = defaultdict(list)
    moves: dict[str, list[Move]] = {}
    for case, (verdict, group, _) in pair.verdicts.items():
        moves[case] = _moves(series.facts.get(case, {}), case, pair)
        if (case, pair.base, pair.head) in timed:
            moves[case].append(timed[case, pair.base, pair.head])
        is_risk = group is not None and group.severity == ReportClass.HAZARD
        if moves[case] or is_risk or verdict in _WITHOUT_GROUP:
            members[group, "" if group else verdict].append(case)
    return [_step(series, pair, group, verdict, cases, moves) for (group, verdict), cases in members.items()]


def _moves(facts: Mapping[str, Values], case: str, pair: VersionPair) -> list[Move]:
    moves = []
    for fact, values in facts.items():
        if fact in NOT_CARRIED:  # moves with names and debug information
            continue
        before, after = values[pair.base], values[pair.head]
        if before is not None and after is not None and before != after:
            moves.append(Move(case_id=case, fact=fact, before=before, after=after))
    return moves


def _step(
    series: SeriesLines,
    pair: VersionPair,
    group: HistoryGroup | None,
    verdict: str,
    members: Sequence[str],
    moves: Mapping[str, Sequence[Move]],
) -> Step:
    cases = tuple(sorted(members))
    listed = tuple(move for case in cases for move in moves[case])
    shown = group.representative if group else cases[0]
    key = f"{series.name} {series.versions[pair.base].name} {series.versions[pair.head].name}"
    cause = f"{group.id} {group.representative}" if group else verdict
    return Step(
        id=hashlib.sha256(f"{key} {cause}".encode()).hexdigest()[:12],
        base=pair.base,
        head=pair.head,
        group=group,
        title=group.title if group else _title(verdict, cases),
        cases=cases,
        moves=listed,
        undone_at=_undone_at(series, pair.head, listed),
        bisect=bisect_command(series, pair.base, pair.head, shown),
    )


def _title(verdict: str, cases: Sequence[str]) -> str:
    names = sorted({case.partition(":")[0] for case in cases})
    return f"{_WITHOUT_GROUP.get(verdict, f'moved, though {verdict}')}: {first_few(names, _NAMED)}"


def _undone_at(series: SeriesLines, head: int, moves: Sequence[Move]) -> int | None:
    """Returns the first later version at which at least half of the moved facts have their former value
    again.
    """
    exact = [move for move in moves if move.fact != TIME]
    for place in range(head + 1, len(series.versions)):
        back = sum(series.facts[move.case_id][move.fact][place] == move.before for move in exact)
        if exact and back >= _BACK * len(exact):
            return place
    return None


def bisect_command(series: SeriesLines, base: int, head: int, case: str) -> str:
    """Returns nothing if the versions are neither commits nor releases."""
    good, bad = series.versions[base], series.versions[head]
    if series.name == COMMITS:
        return f"irdiff bisect {good.name} {bad.name} --case '{case}'"
    if series.name == RELEASES:  # each release is on a branch of its own
        merge_base = f'"$(git merge-base v{good.label} v{bad.label})"'
        return f"irdiff bisect {merge_base} v{bad.label} --case '{case}'"
    return ""


# timings


def _timing_moves(series: SeriesLines) -> dict[tuple[str, int, int], Move]:
    """Keyed by case and pair. A case that was timed on several kinds of GPU counts with the largest move."""
    largest: dict[tuple[str, int, int], Move] = {}
    for case, lines in series.timings.items():
        for line in lines:
            for base, head in timing_steps(line.points):
                before, after = line.points[base], line.points[head]
                assert before is not None
                assert after is not None
                move = Move(case_id=case, fact=TIME, before=before.ratio, after=after.ratio)
                earlier = largest.get((case, base, head), move)
                largest[case, base, head] = max(
                    earlier, move, key=lambda move: abs(math.log(move.after / move.before))
                )
    return largest


def timing_steps(points: Sequence[Timing | None]) -> list[tuple[int, int]]:
    """Returns neighbours among the timed versions between which the time moved."""
    timed = [(place, point) for place, point in enumerate(points) if point is not None]
    neighbours = list(itertools.pairwise(timed))
    if len(timed) >= LONG:
        steps = change_points.level_steps([point.ratio for _, point in timed])
        moved = [neighbours[step.index - 1] for step in steps]
    else:
        moved = [(before, after) for before, after in neighbours if differ(before[1], after[1])]
    return [(before[0], after[0]) for before, after in moved]


def differ(before: Timing, after: Timing) -> bool:
    """Compares two ratios to one reference. They differ by more than the same binary loaded again; treating
    the reference's error as independent is cautious.
    """
    distance = abs(math.log(after.ratio / before.ratio))
    halves = [math.log(point.high / point.low) / 2 for point in (before, after)]
    floor = math.log1p(max(before.noise_floor, after.noise_floor, change_points.LEAST_SHARE))
    return distance > math.hypot(*halves) + floor
