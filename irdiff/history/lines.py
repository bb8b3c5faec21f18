"""Lines: what one fact of one case was in each version of a series, in the series' order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.history.database import Database

Values = tuple[float | None, ...]
"""One for each version; None where it is not known."""


@dataclass(frozen=True, kw_only=True)
class SeriesRow:
    """One version of a series."""

    name: str
    label: str


@dataclass(frozen=True, kw_only=True)
class Timing:
    """How fast one case of one version was on one GPU."""

    median_us: float
    ratio: float
    """To the reference of its session."""
    low: float
    high: float
    noise_floor: float
    outputs: str


@dataclass(frozen=True, kw_only=True)
class TimingLine:
    """The timings of one case on one kind of GPU, against one reference."""

    gpu: str
    reference: str
    points: tuple[Timing | None, ...]


@dataclass(frozen=True, kw_only=True)
class CaseRow:
    case_id: str
    workload: str
    kernel: str
    target: str
    tier: str


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """A change group of one run. That of the same edit in another run has other members and another title."""

    run: str
    id: str
    title: str
    severity: str
    score: float
    origin_stage: str
    pass_name: str | None
    charged: str
    representative: str
    members: int


@dataclass(frozen=True, kw_only=True)
class PairVerdict:
    """What a run says of one case."""

    verdict: str
    origin_stage: str | None
    pass_name: str | None
    group: GroupRow | None


@dataclass(frozen=True, kw_only=True)
class PairRow:
    """Two neighbours of a series that were compared."""

    run: str
    """The run that compared most of them."""
    base: int
    """Its place in the series, as `head`."""
    head: int
    created: str
    duration_s: float
    place: str
    """Its folder where it was written; empty where it is not known."""
    places: tuple[str, ...]
    """The known folders of all runs that compared them, the newest first: one a target, say."""
    verdicts: Mapping[str, PairVerdict]

    @property
    def groups(self) -> frozenset[GroupRow]:
        """Those that hold a case."""
        return frozenset(verdict.group for verdict in self.verdicts.values() if verdict.group)


@dataclass(frozen=True, kw_only=True)
class SeriesLines:
    """All that is known of one series."""

    name: str
    versions: tuple[SeriesRow, ...]
    cases: Mapping[str, CaseRow]
    facts: Mapping[str, Mapping[str, Values]]
    """By case and fact."""
    outcomes: Mapping[str, tuple[str | None, ...]]
    """By case: `compiled`, or the kind of failure."""
    costs_s: Mapping[str, Values]
    """Processor seconds by case; wall seconds where the processor's are not known."""
    timings: Mapping[str, tuple[TimingLine, ...]]
    pairs: tuple[PairRow, ...]
    """In the order of their heads."""


def series_names(database: Database) -> list[str]:
    return [name for (name,) in database.rows("SELECT DISTINCT series FROM versions ORDER BY series")]


def read(database: Database, series: str) -> SeriesLines:
    query = "SELECT version, label FROM versions WHERE series = ? ORDER BY sort_key, version"
    versions = tuple(SeriesRow(name=name, label=label) for name, label in database.rows(query, [series]))
    places = {row.name: place for place, row in enumerate(versions)}
    cases = {
        row[0]: CaseRow(case_id=row[0], workload=row[1], kernel=row[2], target=row[3], tier=row[4])
        for row in database.rows("SELECT * FROM cases ORDER BY case_id")
    }
    pairs = _pairs(database, series, places)
    facts = _facts(database, series, places)
    known = facts.keys() | {case for pair in pairs for case in pair.verdicts}
    return SeriesLines(
        name=series,
        versions=versions,
        cases={name: row for name, row in cases.items() if name in known},
        facts=facts,
        outcomes=_outcomes(database, series, places),
        costs_s=_costs(database, series, places),
        timings=_timings(database, series, places),
        pairs=pairs,
    )


def _facts(database: Database, series: str, places: Mapping[str, int]) -> dict[str, dict[str, Values]]:
    rows = database.rows(
        """SELECT case_id, fact, list(version), list(value) FROM facts JOIN versions USING (version)
        WHERE series = ? GROUP BY case_id, fact ORDER BY case_id, fact""",
        [series],
    )
    found: dict[str, dict[str, Values]] = defaultdict(dict)
    for case, fact, names, values in rows:
        found[case][fact] = _placed(names, values, places)
    return dict(found)


def _placed(names: Sequence[str], values: Sequence[float], places: Mapping[str, int]) -> Values:
    row: list[float | None] = [None] * len(places)
    for name, value in zip(names, values, strict=True):
        row[places[name]] = value
    return tuple(row)


def _outcomes(
    database: Database, series: str, places: Mapping[str, int]
) -> dict[str, tuple[str | None, ...]]:
    query = """SELECT case_id, version, outcome FROM compilations JOIN versions USING (version)
        WHERE series = ?"""
    found: dict[str, list[str | None]] = defaultdict(lambda: [None] * len(places))
    for case, version, outcome in database.rows(query, [series]):
        found[case][places[version]] = outcome
    return {case: tuple(row) for case, row in found.items()}


def _costs(database: Database, series: str, places: Mapping[str, int]) -> dict[str, Values]:
    rows = database.rows(
        """SELECT case_id, version, sum(coalesce(cpu_s, wall_s)) FROM stage_costs
        JOIN versions USING (version) WHERE series = ? GROUP BY case_id, version""",
        [series],
    )
    found: dict[str, list[float | None]] = defaultdict(lambda: [None] * len(places))
    for case, version, seconds in rows:
        found[case][places[version]] = seconds
    return {case: tuple(row) for case, row in found.items()}


def _timings(database: Database, series: str, places: Mapping[str, int]) -> dict[str, tuple[TimingLine, ...]]:
    """Of a version that was timed several times against one reference, the last session counts."""
    rows = database.rows(
        """SELECT case_id, gpu_name, reference, timings.version, median_us, ratio, ratio_low, ratio_high,
        noise_floor, outputs FROM timings JOIN sessions USING (session)
        JOIN versions ON versions.version = timings.version WHERE series = ? ORDER BY created""",
        [series],
    )
    found: dict[str, dict[tuple[str, str], list[Timing | None]]] = defaultdict(dict)
    for case, gpu, reference, version, median, ratio, low, high, floor, outputs in rows:
        points = found[case].setdefault((gpu, reference), [None] * len(places))
        points[places[version]] = Timing(
            median_us=median, ratio=ratio, low=low, high=high, noise_floor=floor, outputs=outputs
        )
    return {
        case: tuple(
            TimingLine(gpu=gpu, reference=reference, points=tuple(points))
            for (gpu, reference), points in of_case.items()
        )
        for case, of_case in found.items()
    }


def _pairs(database: Database, series: str, places: Mapping[str, int]) -> tuple[PairRow, ...]:
    """Each pair once: of a case that several runs compared, the last one counts."""
    rows = database.rows(
        """SELECT base, head, list(run ORDER BY created, run) FROM runs JOIN versions ON version = head
        WHERE series = ? GROUP BY base, head""",
        [series],
    )
    found = [
        _pair(database, runs, places[base], places[head])
        for base, head, runs in rows
        if base in places and head in places
    ]
    return tuple(sorted(found, key=lambda pair: (pair.head, -pair.base)))


def _pair(database: Database, runs: Sequence[str], base: int, head: int) -> PairRow:
    verdicts: dict[str, PairVerdict] = {}
    for run in runs:
        verdicts |= _verdicts(database, run)
    query = """SELECT run, created, duration_s, place FROM runs WHERE list_contains(?, run)
        ORDER BY compared DESC, created DESC"""
    rows = database.rows(query, [list(runs)])
    run, created, duration, place = rows[0]
    return PairRow(
        run=run,
        base=base,
        head=head,
        created=created,
        duration_s=duration,
        place=place,
        places=tuple(row[3] for row in sorted(rows, key=lambda row: row[1], reverse=True) if row[3]),
        verdicts=verdicts,
    )


def _verdicts(database: Database, run: str) -> dict[str, PairVerdict]:
    groups = _groups(database, run)
    query = "SELECT case_id, verdict, origin_stage, pass_name, group_id FROM verdicts WHERE run = ?"
    return {
        case: PairVerdict(
            verdict=verdict,
            origin_stage=stage,
            pass_name=pass_name,
            group=groups.get(group) if group else None,
        )
        for case, verdict, stage, pass_name, group in database.rows(query, [run])
    }


def _groups(database: Database, run: str) -> dict[str, GroupRow]:
    query = """SELECT group_id, title, severity, score, origin_stage, pass_name, charged, representative,
        members FROM groups WHERE run = ?"""
    names = ("id", "title", "severity", "score", "origin_stage", "pass_name", "charged", "representative")
    return {
        row[0]: GroupRow(run=run, **dict(zip((*names, "members"), row, strict=True)))
        for row in database.rows(query, [run])
    }
