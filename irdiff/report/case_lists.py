"""Sections of a report that list cases, each case with one sentence.

Terminal, Markdown and page print every list in the same way, so a new section is one more `CaseList` here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from irdiff.model import Run
from irdiff.report import expected_times, moved
from irdiff.report.lists import Listed, listed
from irdiff.report.moved import Movement
from irdiff.report.timing_summary import TimingSummary
from irdiff.timing.results import Speed


@dataclass(frozen=True, kw_only=True)
class CaseLine:
    name: str
    """The name of the case, or of the family whose figures moved."""
    words: str


@dataclass(frozen=True, kw_only=True)
class CaseList:
    title: str
    noun: str
    """The word for an entry, to say how many are left out."""
    lines: Listed[CaseLine]
    is_alarm: bool = False
    in_timing_table: bool = False
    """The page leaves the list out: its timing table shows these cases."""


class _NamedCase(Protocol):
    @property
    def case_id(self) -> str: ...
    @property
    def words(self) -> str: ...


def first(run: Run, timing: TimingSummary | None, most: int) -> tuple[CaseList, ...]:
    """The lists that stand before the figures and the groups."""
    timed = timing.rows if timing else ()
    slower = [case for case in timed if case.measured.speed is Speed.SLOWER]
    faster = [case for case in reversed(timed) if case.measured.speed is Speed.FASTER]
    likely = expected_times.likely(run, {case.case_id for case in timed})
    return _not_empty(
        CaseList(
            title="wrong results and faults when run",
            noun="case",
            lines=listed(_lines(timing.wrong if timing else ()), most),
            is_alarm=True,
        ),
        CaseList(
            title="slower",
            noun="slower case",
            lines=listed(_lines(slower), most),
            is_alarm=True,
            in_timing_table=True,
        ),
        CaseList(
            title="faster",
            noun="faster case",
            lines=listed(_lines(faster), (most + 1) // 2),
            in_timing_table=True,
        ),
        CaseList(
            title="time likely to move (simulated, not measured)",
            noun="case",
            lines=listed(_lines(likely), most),
        ),
    )


def details(
    run: Run,
    timing: TimingSummary | None,
    movements: Sequence[Movement],
    most: int,
    *,
    is_bump: bool,
    has_families: bool,
) -> tuple[CaseList, ...]:
    """The lists that stand after the groups: folded in Markdown and on the page.

    is_bump: another release of the toolchain, whose outliers are listed. has_families: the figures that
    moved are listed by family, too.
    """
    unclear = [
        CaseLine(name=case.case_id, words=case.measured.why)
        for case in (timing.rows if timing else ())
        if case.measured.why
    ]
    by_family = [
        CaseLine(name=movement.part, words=f"{movement.statistic.name}: {movement.words}")
        for movement in (moved.by_family(run) if has_families else ())
    ]
    outliers = moved.outliers(movements) if is_bump else ()
    return _not_empty(
        CaseList(
            title=f"timed without a verdict: {len(unclear)}",
            noun="case",
            lines=listed(unclear, most),
            in_timing_table=True,
        ),
        CaseList(title=f"outliers: {len(outliers)}", noun="outlier", lines=listed(_lines(outliers), most)),
        CaseList(
            title="figures that moved, by family and target", noun="line", lines=listed(by_family, 2 * most)
        ),
    )


def _lines(cases: Iterable[_NamedCase]) -> list[CaseLine]:
    return [CaseLine(name=case.case_id, words=case.words) for case in cases]


def _not_empty(*lists: CaseList) -> tuple[CaseList, ...]:
    return tuple(case_list for case_list in lists if case_list.lines)
