"""Finds the launch option that separates the cases that became slower from those that became faster."""

from __future__ import annotations

from collections.abc import Collection

from irdiff.model import Case, Run
from irdiff.report.timing_summary import TimingRow
from irdiff.timing.results import Speed

_LEAST = 4
"""Fewer cases of a kind are no rule."""


def sentence(run: Run, timed: Collection[TimingRow]) -> str:
    """Formats `num_warps separates them: all 12 slower cases have 4, all 5 faster ones 8 or 16.` Empty if no
    option does, or more than one.
    """
    cases = {case.id: case for case in run.cases}
    slower, faster = (
        [_options(run, cases.get(timing.case_id)) for timing in timed if timing.measured.speed is speed]
        for speed in (Speed.SLOWER, Speed.FASTER)
    )
    if min(len(slower), len(faster)) < _LEAST:
        return ""
    separating = []
    for name in set[str]().union(*slower, *faster):
        ours, theirs = ({options.get(name, "nothing") for options in side} for side in (slower, faster))
        if ours.isdisjoint(theirs):
            words = f"all {len(slower)} slower cases have {_listed(ours)}"
            separating.append(
                f"{name} separates them: {words}, all {len(faster)} faster ones {_listed(theirs)}."
            )
    return separating[0] if len(separating) == 1 else ""


def _options(run: Run, case: Case | None) -> dict[str, str]:
    launch = run.launches.get(case.launches.head or "") if case else None
    return {name: str(value) for name, value in launch.options.items()} if launch else {}


def _listed(values: Collection[str]) -> str:
    *others, last = sorted(values, key=lambda value: (len(value), value))
    return f"{', '.join(others)} or {last}" if others else last
