"""Arranges the lines of a series for the site's page, which loads the overview first and the rest when it is
shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from irdiff.compare import statistics
from irdiff.history.lines import SeriesLines, TimingLine, Values, VersionPair
from irdiff.history.steps import TIME, Step
from irdiff.model import COMPARED_VERDICTS, Verdict

Json = dict[str, Any]
_TOP_FACTS = 6
_MOST_MOVES = 4000
"""For one pair's page; further moves are counted."""


def overview(series: Sequence[SeriesLines], steps: Mapping[str, Sequence[Step]], created: str) -> Json:
    return {
        "created": created,
        "series": [_series(each, steps[each.name]) for each in series],
        "kernels": _kernels(series),
    }


def _series(series: SeriesLines, steps: Sequence[Step]) -> Json:
    targets = sorted({case.target for case in series.cases.values()})
    cost, common = _cost(series, targets)
    return {
        "name": series.name,
        "versions": [each.label for each in series.versions],
        "names": [each.name for each in series.versions],
        "targets": targets,
        "workloads": sorted({case.workload for case in series.cases.values()}),
        "pairs": [_pair(series, pair, steps) for pair in series.pairs],
        "cost_s": cost,
        "cost_cases": common,
        "failing": [
            sum(each[place] not in (None, "compiled") for each in series.outcomes.values())
            for place in range(len(series.versions))
        ],
        "steps": [_step_summary(step) for step in steps],
    }


def _pair(series: SeriesLines, pair: VersionPair, steps: Sequence[Step]) -> Json:
    """Counts are [target, verdict, count]."""
    verdicts = [(case, verdict.verdict) for case, verdict in pair.verdicts.items()]
    target = {case.case_id: case.target for case in series.cases.values()}
    counts = Counter((target[case], verdict) for case, verdict in verdicts if case in target)
    own = _of_pair(steps, pair)
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
        "compared": sum(verdict in COMPARED_VERDICTS for _, verdict in verdicts),
        "changed": sum(verdict == Verdict.CHANGED for _, verdict in verdicts),
    }


def _of_pair(steps: Iterable[Step], pair: VersionPair) -> list[Step]:
    return [step for step in steps if (step.base, step.head) == (pair.base, pair.head)]


def _cost(series: SeriesLines, targets: Sequence[str]) -> tuple[dict[str, Values], dict[str, int]]:
    """Returns processor seconds by target, over the cases that compile in every version: other sums are not
    comparable.
    """
    sums_by_target: dict[str, Values] = {}
    counts: dict[str, int] = {}
    for target in targets:
        costs = [
            _cost_compiled(series, case)
            for case in series.costs_s
            if case in series.cases and series.cases[case].target == target
        ]
        priced = [place for place in range(len(series.versions)) if any(cost[place] for cost in costs)]
        common = [cost for cost in costs if all(cost[place] is not None for place in priced)]
        counts[target] = len(common)
        if common:
            sums = {place: round(sum(cost[place] or 0.0 for cost in common), 3) for place in priced}
            sums_by_target[target] = tuple(sums.get(place) for place in range(len(series.versions)))
    return sums_by_target, counts


def _cost_compiled(series: SeriesLines, case: str) -> Values:
    outcomes = series.outcomes.get(case, (None,) * len(series.versions))
    return tuple(
        seconds if outcome in (None, "compiled") else None
        for seconds, outcome in zip(series.costs_s[case], outcomes, strict=True)
    )


def _kernels(series: Sequence[SeriesLines]) -> list[Json]:
    kernels: dict[str, set[str]] = defaultdict(set)
    counts = Counter[str]()
    for case in (case for each in series for case in each.cases.values()):
        kernels[case.workload].add(case.kernel)
        counts[case.workload] += 1
    return [
        {"workload": name, "kernels": sorted(names), "cases": counts[name]}
        for name, names in sorted(kernels.items())
    ]


def _step_summary(step: Step) -> Json:
    """Puts resources and time before counts of instructions."""
    facts = Counter(move.fact for move in step.moves)
    return {
        "id": step.id,
        "base": step.base,
        "head": step.head,
        "title": step.title,
        "severity": step.group.severity if step.group else "",
        "pass": step.group.pass_name if step.group else None,
        "cases": len(step.cases),
        "facts": sorted(facts, key=lambda name: (name not in _FIRST, -facts[name], name))[:_TOP_FACTS],
        "workloads": sorted({case.partition(":")[0] for case in step.cases}),
        "targets": sorted({case.rpartition("@")[2] for case in step.cases}),
        "slower": step.slower,
        "faster": step.faster,
        "undone": step.undone_at,
    }


_FIRST = frozenset({TIME, *(fact for fact in statistics.FACTS if not fact.endswith(".total"))})


def workload(series: SeriesLines, name: str) -> Json:
    cases = [case for case in series.cases.values() if case.workload == name]
    ids = [case.case_id for case in cases]
    facts: dict[str, dict[str, Sequence[Any]]] = defaultdict(dict)
    for case_id in ids:
        for fact, values in sorted(series.facts.get(case_id, {}).items()):
            facts[fact][case_id] = _folded(values)
    timed = {case_id: series.timings[case_id] for case_id in ids if case_id in series.timings}
    return {
        "cases": [[case.case_id, case.kernel, case.target, case.tier] for case in cases],
        "facts": dict(sorted(facts.items())),
        "cost_s": {
            case_id: _rounded(series.costs_s[case_id], 4) for case_id in ids if case_id in series.costs_s
        },
        "verdicts": {case_id: [_verdict(pair, case_id) for pair in series.pairs] for case_id in ids},
        "timings": {
            case_id: [_timing(line) for line in timing_lines if any(line.points)]
            for case_id, timing_lines in timed.items()
        },
    }


def _folded(values: Values) -> Sequence[float | None]:
    """Writes whole numbers as such, and a constant line as one value."""
    whole = tuple(int(value) if value is not None and value == int(value) else value for value in values)
    return whole[:1] if len(set(whole)) == 1 else whole


def _rounded(values: Iterable[float | None], digits: int) -> list[float | None]:
    return [None if value is None else round(value, digits) for value in values]


def _verdict(pair: VersionPair, case: str) -> str | None:
    return pair.verdicts[case].verdict if case in pair.verdicts else None


def _timing(line: TimingLine) -> Json:
    def column(name: str) -> list[Any]:
        return [None if point is None else getattr(point, name) for point in line.points]

    return {
        "gpu": line.gpu,
        "reference": line.reference,
        "us": _rounded(column("median_us"), 3),
        **{name: _rounded(column(name), 5) for name in ("ratio", "low", "high")},
        "outputs": list(line.outputs),
    }


def pair_steps(series: SeriesLines, pair: VersionPair, steps: Iterable[Step]) -> Json:
    compared = {*COMPARED_VERDICTS, Verdict.UNSUPPORTED}
    verdicts = sorted((case, each.verdict) for case, each in pair.verdicts.items())
    return {
        "steps": [_whole_step(series, step) for step in _of_pair(steps, pair)],
        "uncompared": [each for each in verdicts if each[1] not in compared],
    }


def _whole_step(series: SeriesLines, step: Step) -> Json:
    moves: dict[str, list[list[object]]] = defaultdict(list)
    telling = sorted(step.moves, key=lambda move: (move.fact not in _FIRST, move.fact, move.case_id))
    for move in telling[:_MOST_MOVES]:
        moves[move.fact].append([step.cases.index(move.case_id), move.before, move.after])
    return {
        **_step_summary(step),
        "cases_listed": list(step.cases),
        "moves": dict(moves),
        "moves_left_out": max(0, len(step.moves) - _MOST_MOVES),
        "bisect": step.bisect,
        "group": vars(step.group) if step.group else None,
        "spec": [series.versions[step.base].name, series.versions[step.head].name],
    }
