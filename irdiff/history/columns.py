"""The lines of a series as a page reads them: in columns, by what a page needs at once. Pure.

A page that opens loads the overview alone: what each version moved, and the names of all kernels. A kernel's
lines, and what moved in a pair, are loaded when they are looked at.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irdiff.compare import statistics
from irdiff.history.lines import GroupRow, PairRow, SeriesLines, TimingLine, Values
from irdiff.history.steps import TIME, Move, Step
from irdiff.model import COMPARED_VERDICTS, Verdict

Json = dict[str, Any]
_TOP_FACTS = 6
_MOST_MOVES = 4000
"""Of one pair's page; what is beyond is counted."""


def overview(series: Sequence[SeriesLines], steps: Mapping[str, Sequence[Step]], created: str) -> Json:
    return {
        "created": created,
        "series": [_series(row, steps[row.name]) for row in series],
        "kernels": _kernels(series),
    }


def _series(series: SeriesLines, steps: Sequence[Step]) -> Json:
    targets = sorted({case.target for case in series.cases.values()})
    cost, common = _cost(series, targets)
    return {
        "name": series.name,
        "versions": [row.label for row in series.versions],
        "names": [row.name for row in series.versions],
        "targets": targets,
        "workloads": workloads(series),
        "pairs": [_pair(series, pair, steps) for pair in series.pairs],
        "cost_s": cost,
        "cost_cases": common,
        "failing": [
            sum(row[place] not in (None, "compiled") for row in series.outcomes.values())
            for place in range(len(series.versions))
        ],
        "steps": [_step_row(step) for step in steps],
    }


def workloads(series: SeriesLines) -> list[str]:
    """In the order of the files that hold their lines."""
    return sorted({case.workload for case in series.cases.values()})


def _pair(series: SeriesLines, pair: PairRow, steps: Sequence[Step]) -> Json:
    """Counts by target and verdict, as [target, verdict, count]."""
    counts = Counter(
        (series.cases[case].target, told.verdict)
        for case, told in pair.verdicts.items()
        if case in series.cases
    )
    own = [step for step in steps if (step.base, step.head) == (pair.base, pair.head)]
    return {
        "base": pair.base,
        "head": pair.head,
        "run": pair.run,
        "created": pair.created,
        "duration_s": pair.duration_s,
        "counts": [[target, verdict, count] for (target, verdict), count in sorted(counts.items())],
        "groups": len(pair.groups),
        "slower": sum(step.slower for step in own),
        "faster": sum(step.faster for step in own),
        "compared": sum(told.verdict in COMPARED_VERDICTS for told in pair.verdicts.values()),
        "changed": sum(told.verdict == Verdict.CHANGED for told in pair.verdicts.values()),
    }


def _cost(series: SeriesLines, targets: Sequence[str]) -> tuple[dict[str, Values], dict[str, int]]:
    """Processor seconds by target, over the cases that compile in every version that compiles any: of other
    cases in each, sums say nothing.
    """
    found: dict[str, Values] = {}
    counts: dict[str, int] = {}
    for target in targets:
        rows = [
            _cost_compiled(series, case)
            for case in series.costs_s
            if case in series.cases and series.cases[case].target == target
        ]
        priced = [place for place in range(len(series.versions)) if any(row[place] for row in rows)]
        common = [row for row in rows if all(row[place] is not None for place in priced)]
        counts[target] = len(common)
        if common:
            sums = {place: round(sum(row[place] or 0.0 for row in common), 3) for place in priced}
            found[target] = tuple(sums.get(place) for place in range(len(series.versions)))
    return found, counts


def _cost_compiled(series: SeriesLines, case: str) -> Values:
    """What compiling a case cost, without the versions in which it fails."""
    outcomes = series.outcomes.get(case, (None,) * len(series.versions))
    return tuple(
        seconds if outcome in (None, "compiled") else None
        for seconds, outcome in zip(series.costs_s[case], outcomes, strict=True)
    )


def _kernels(series: Sequence[SeriesLines]) -> list[Json]:
    """Workloads with what they launch: what search looks through."""
    found: dict[str, Json] = {}
    for row in series:
        for case in row.cases.values():
            entry = found.setdefault(case.workload, {"kernels": set(), "cases": 0})
            entry["kernels"].add(case.kernel)
            entry["cases"] += 1
    return [
        {"workload": name, "kernels": sorted(row["kernels"]), "cases": row["cases"]}
        for name, row in sorted(found.items())
    ]


def _step_row(step: Step) -> Json:
    """A step as lists of steps show it."""
    facts = Counter(move.fact for move in step.moves)
    return {
        "id": step.id,
        "base": step.base,
        "head": step.head,
        "title": step.title,
        "severity": step.group.severity if step.group else "",
        "pass": step.group.pass_name if step.group else None,
        "cases": len(step.cases),
        "facts": [name for name, _ in _told_first(facts)],
        "workloads": sorted({case.partition(":")[0] for case in step.cases}),
        "targets": sorted({case.rpartition("@")[2] for case in step.cases}),
        "slower": step.slower,
        "faster": step.faster,
        "undone": step.undone_at,
    }


_FIRST = frozenset({TIME, *(fact for fact in statistics.FACTS if not fact.endswith(".total"))})


def _told_first(facts: Mapping[str, int]) -> list[tuple[str, int]]:
    """Resources and time before counts of instructions, then by how many cases moved."""
    order = sorted(facts.items(), key=lambda row: (row[0] not in _FIRST, -row[1], row[0]))
    return order[:_TOP_FACTS]


def workload(series: SeriesLines, name: str) -> Json:
    """All lines of one workload in one series."""
    cases = [case for case in series.cases.values() if case.workload == name]
    facts: dict[str, dict[str, Values]] = defaultdict(dict)
    for case in cases:
        for fact, values in series.facts.get(case.case_id, {}).items():
            facts[fact][case.case_id] = _short(values)
    return {
        "cases": [[case.case_id, case.kernel, case.target, case.tier] for case in cases],
        "facts": {
            fact: {case: _folded(values) for case, values in rows.items()}
            for fact, rows in sorted(facts.items())
        },
        "cost_s": {
            case.case_id: [
                None if value is None else round(value, 4) for value in series.costs_s[case.case_id]
            ]
            for case in cases
            if case.case_id in series.costs_s
        },
        "verdicts": {case.case_id: [_verdict(pair, case.case_id) for pair in series.pairs] for case in cases},
        "timings": {
            case.case_id: [_timing(line) for line in series.timings[case.case_id]]
            for case in cases
            if case.case_id in series.timings
        },
    }


def _short(values: Values) -> Values:
    """Whole numbers as such: shorter, and what facts are."""
    return tuple(int(value) if value is not None and value == int(value) else value for value in values)


def _folded(values: Values) -> Values | list[Any]:
    """A line that never bends, as its one value."""
    return [values[0]] if len(set(values)) == 1 else values


def _verdict(pair: PairRow, case: str) -> str | None:
    told = pair.verdicts.get(case)
    return told.verdict if told else None


def _timing(line: TimingLine) -> Json:
    points = line.points
    return {
        "gpu": line.gpu,
        "reference": line.reference,
        "us": [None if point is None else round(point.median_us, 3) for point in points],
        "ratio": [None if point is None else round(point.ratio, 5) for point in points],
        "low": [None if point is None else round(point.low, 5) for point in points],
        "high": [None if point is None else round(point.high, 5) for point in points],
        "outputs": [None if point is None else point.outputs for point in points],
    }


def pair_steps(series: SeriesLines, pair: PairRow, steps: Iterable[Step]) -> Json:
    """What moved between two neighbours, with every case."""
    own = [step for step in steps if (step.base, step.head) == (pair.base, pair.head)]
    broken = [
        [case, told.verdict]
        for case, told in sorted(pair.verdicts.items())
        if told.verdict not in COMPARED_VERDICTS and told.verdict != Verdict.UNSUPPORTED
    ]
    return {"steps": [_whole_step(series, step) for step in own], "uncompared": broken}


def _whole_step(series: SeriesLines, step: Step) -> Json:
    moves: dict[str, list[list[object]]] = defaultdict(list)
    for move in _most_telling(step.moves):
        moves[move.fact].append([step.cases.index(move.case_id), move.before, move.after])
    return {
        **_step_row(step),
        "cases_listed": list(step.cases),
        "moves": dict(moves),
        "moves_left_out": max(0, len(step.moves) - _MOST_MOVES),
        "bisect": step.bisect,
        "group": _group(step.group),
        "spec": [series.versions[step.base].name, series.versions[step.head].name],
    }


def _most_telling(moves: Sequence[Move]) -> list[Move]:
    return sorted(moves, key=lambda move: (move.fact not in _FIRST, move.fact, move.case_id))[:_MOST_MOVES]


def _group(group: GroupRow | None) -> Json | None:
    if group is None:
        return None
    return {
        "id": group.id,
        "origin": group.origin_stage,
        "charged": group.charged,
        "members": group.members,
        "representative": group.representative,
    }
