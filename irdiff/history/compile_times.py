"""Finds where compile time moved in a run, from the history of each case: a single pair of times cannot show
it.
"""

from __future__ import annotations

import math

from irdiff.compare.statistics import COMPILE_TIME
from irdiff.history import change_points, versions
from irdiff.history.database import Database
from irdiff.model import COMPARED_VERDICTS, Run
from irdiff.report import moved
from irdiff.report.moved import Movement, StatisticMove

_LINES = """SELECT case_id, max_by(version, place), list(cpu ORDER BY place), list(wall ORDER BY place) FROM
    (SELECT case_id, version, (sort_key, version) AS place,
     CASE WHEN count(cpu_s) = count(*) THEN 1000 * sum(cpu_s) END AS cpu,
     CASE WHEN count(wall_s) = count(*) THEN 1000 * sum(wall_s) END AS wall
     FROM stage_costs JOIN versions USING (version)
     WHERE series = ? AND (sort_key, version) <= (?, ?) GROUP BY ALL) GROUP BY case_id"""
"""By case: the last version up to one, and the milliseconds of each, of the processor and of the clock."""


def of_run(history: Database, run: Run) -> tuple[Movement, ...] | None:
    """Returns, by target, cases whose compile time at head left its line by more than that line ever did.
    None if the history lacks the run's head: that toolchain with those kernels.
    """
    head = versions.of_run(run).head
    query = "SELECT series, sort_key FROM versions WHERE version = ? AND toolchain = ? AND corpus = ?"
    series = history.rows(query, [head.name, head.toolchain, head.corpus])
    if not series:
        return None
    case_lines = history.rows(_LINES, [*series[0], head.name])
    lines = {case: cpu if cpu[-1] else wall for case, last, cpu, wall in case_lines if last == head.name}
    movements = []
    for target in run.targets:
        cases = [c.id for c in run.cases if c.target == target.name and c.verdict in COMPARED_VERDICTS]
        moves = [move for case in cases if (move := _move(case, lines.get(case, [])))]
        unknown = len(cases) - len(moves)
        movements.append(moved.summed(COMPILE_TIME, target.name, moves, same=0, unknown=unknown))
    return tuple(movement for movement in movements if movement.up or movement.down)


def _move(case_id: str, line: list[float | None]) -> StatisticMove | None:
    """A time within the noise moves from the last point to itself."""
    *before, last = [value for value in line if value] or [0.0]
    if not before or not line[-1]:
        return None
    share, allowed = change_points.beyond_noise(before, last)
    if math.isinf(allowed):
        return None
    level = last / (1 + share) if abs(math.log1p(share)) > math.log1p(allowed) else last
    return StatisticMove(case_id=case_id, base=level, head=last, unit=COMPILE_TIME.unit)
