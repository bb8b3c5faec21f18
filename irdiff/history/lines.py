"""The value of one fact of one case in each version of a series, in the series' order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from irdiff.history.database import Database
from irdiff.history.versions import Version
from irdiff.timing.results import BAD_OUTPUTS, PROCESSES

Values = tuple[float | None, ...]
"""One for each version; None if unknown."""


@dataclass(frozen=True, kw_only=True)
class Timing:
    median_us: float
    ratio: float
    """To the reference of its session."""
    low: float
    high: float
    noise_floor: float


@dataclass(frozen=True, kw_only=True)
class TimingLine:
    """One case on one kind of GPU, against one reference."""

    gpu: str
    reference: str
    points: tuple[Timing | None, ...]
    """Not those of a busy or throttled GPU, or of fewer processes than a verdict needs."""
    outputs: tuple[str | None, ...]
    """By version, how its outputs compare with those of the reference. A wrong output stays, whatever another
    session says: a race shows at times alone.
    """


@dataclass(frozen=True, kw_only=True)
class HistoryCase:
    case_id: str
    workload: str
    kernel: str
    target: str
    tier: str


@dataclass(frozen=True, kw_only=True)
class HistoryGroup:
    """A change group of one run. The same edit in another run has other members and another title."""

    run: str
    id: str
    title: str
    severity: str
    origin_stage: str
    pass_name: str | None
    charged: str
    representative: str
    members: int


class PairVerdict(NamedTuple):
    verdict: str
    group: HistoryGroup | None
    is_unstable: bool
    """A side was nondeterministic, or its code could not be compared."""


@dataclass(frozen=True, kw_only=True)
class VersionPair:
    run: str
    """The run that compared most of the cases."""
    base: int
    """A place in the series, like `head`."""
    head: int
    created: str
    duration_s: float
    place: str
    """The folder to which it was written; empty if unknown."""
    places: tuple[str, ...]
    """The folders of all runs that compared the pair, the newest first; for example one for each target."""
    verdicts: Mapping[str, PairVerdict]

    @property
    def groups(self) -> frozenset[HistoryGroup]:
        return frozenset(verdict.group for verdict in self.verdicts.values() if verdict.group)


@dataclass(frozen=True, kw_only=True)
class SeriesLines:
    name: str
    versions: tuple[Version, ...]
    cases: Mapping[str, HistoryCase]
    facts: Mapping[str, Mapping[str, Values]]
    """By case and fact."""
    outcomes: Mapping[str, tuple[str | None, ...]]
    """By case: `compiled`, or the kind of failure."""
    costs_s: Mapping[str, Values]
    """Processor seconds by case; wall seconds if the processor's are unknown."""
    timings: Mapping[str, tuple[TimingLine, ...]]
    pairs: tuple[VersionPair, ...]
    """In the order of their heads."""
    across: frozenset[int]
    """Places of versions that were compared with one of another series."""


def series_names(database: Database) -> list[str]:
    return [name for (name,) in database.rows("SELECT DISTINCT series FROM versions ORDER BY series")]


def read(database: Database, series: str) -> SeriesLines:
    query = """SELECT version AS name, * EXCLUDE version FROM versions
        WHERE series = ? ORDER BY sort_key, version"""
    versions = tuple(database.records(Version, query, [series]))
    places = {version.name: place for place, version in enumerate(versions)}
    pairs = _pairs(database, series, places)

    def lines(table: str, value: str, keys: str) -> list[tuple[Any, ...]]:
        """Returns for each key its columns, then the value in each version."""
        values_by_version = database.rows(
            f"""SELECT {keys}, map(list(version), list(value)) FROM
            (SELECT {keys}, version, {value} AS value FROM {table} JOIN versions USING (version)
             WHERE series = ? GROUP BY ALL) GROUP BY ALL ORDER BY ALL""",  # noqa: S608 - names of this module
            [series],
        )
        return [(*line[:-1], tuple(map(line[-1].get, places))) for line in values_by_version]

    facts: dict[str, dict[str, Values]] = defaultdict(dict)
    for case, fact, values in lines("facts", "value", "case_id, fact"):
        facts[case][fact] = values
    measured = facts.keys() | {case for pair in pairs for case in pair.verdicts}
    cases = database.records(HistoryCase, "SELECT * FROM cases ORDER BY case_id")
    return SeriesLines(
        name=series,
        versions=versions,
        cases={line.case_id: line for line in cases if line.case_id in measured},
        facts=dict(facts),
        outcomes=dict(lines("compilations", "outcome", "case_id")),
        costs_s=dict(lines("stage_costs", "sum(coalesce(cpu_s, wall_s))", "case_id")),
        timings=_timings(database, series, places),
        pairs=pairs,
        across=_across(database, series, places),
    )


def _across(database: Database, series: str, places: Mapping[str, int]) -> frozenset[int]:
    compared = database.rows(
        "SELECT base, head FROM runs JOIN versions ON version = head WHERE series = ?", [series]
    )
    return frozenset(places[head] for base, head in compared if base not in places)


def _timings(database: Database, series: str, places: Mapping[str, int]) -> dict[str, tuple[TimingLine, ...]]:
    """Uses the last session if a version was timed several times."""
    measured = database.rows(
        """SELECT case_id, gpu_name, reference, timings.version, outputs,
        trustworthy AND processes >= ? AND ratio > 0, median_us, ratio, ratio_low, ratio_high, noise_floor
        FROM timings JOIN sessions USING (session)
        JOIN versions ON versions.version = timings.version WHERE series = ? ORDER BY created""",
        [PROCESSES, series],
    )
    points_of: dict[tuple[str, str, str], list[Timing | None]] = defaultdict(lambda: [None] * len(places))
    outputs_of: dict[tuple[str, str, str], list[str | None]] = defaultdict(lambda: [None] * len(places))
    for case, gpu, reference, version, outputs, is_measured, median, ratio, low, high, floor in measured:
        line, place = (case, gpu, reference), places[version]
        if outputs_of[line][place] not in BAD_OUTPUTS:
            outputs_of[line][place] = outputs
        if is_measured:
            points_of[line][place] = Timing(
                median_us=median, ratio=ratio, low=low, high=high, noise_floor=floor
            )
    by_case: dict[str, list[TimingLine]] = defaultdict(list)
    for line, every in outputs_of.items():
        case, gpu, reference = line
        points = tuple(points_of[line])
        by_case[case].append(TimingLine(gpu=gpu, reference=reference, points=points, outputs=tuple(every)))
    return {case: tuple(timing_lines) for case, timing_lines in by_case.items()}


def _pairs(database: Database, series: str, places: Mapping[str, int]) -> tuple[VersionPair, ...]:
    """Uses the last run if several runs compared a case."""
    compared = database.rows(
        """SELECT base, head, list(run ORDER BY created, run),
        arg_max((run, created, duration_s, place), (compared, created)),
        list(place ORDER BY created DESC) FILTER (place <> '')
        FROM runs JOIN versions ON version = head WHERE series = ? GROUP BY base, head""",
        [series],
    )
    pairs = [
        VersionPair(
            run=largest[0],
            base=places[base],
            head=places[head],
            created=largest[1],
            duration_s=largest[2],
            place=largest[3],
            places=tuple(folders or ()),
            verdicts=_verdicts(database, runs),
        )
        for base, head, runs, largest, folders in compared
        if base in places and head in places
    ]
    return tuple(sorted(pairs, key=lambda pair: (pair.head, -pair.base)))


def _verdicts(database: Database, runs: Sequence[str]) -> dict[str, PairVerdict]:
    verdicts: dict[str, PairVerdict] = {}
    for run in runs:
        change_groups = database.records(
            HistoryGroup, "SELECT * RENAME (group_id AS id) FROM groups WHERE run = ?", [run]
        )
        groups = {change_group.id: change_group for change_group in change_groups}
        query = "SELECT case_id, verdict, group_id, nondeterministic <> '' FROM verdicts WHERE run = ?"
        for case, verdict, group, is_unstable in database.rows(query, [run]):
            verdicts[case] = PairVerdict(verdict, groups.get(group or ""), is_unstable)
    return verdicts
