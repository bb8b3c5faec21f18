"""The upper part of the HTML report: the verdict, its counts, and kernels by targets coloured by origin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irdiff.model import Case, Run, Verdict
from irdiff.report import charts, families, wording
from irdiff.stages import MACHINE_STAGES, Stage, in_stage_order

_ORIGINS = tuple(stage for stage in Stage if stage not in MACHINE_STAGES)
"""Stages that have a colour of their own in `report.css`."""
_QUIET = (Verdict.ABSORBED, Verdict.UNCHANGED, Verdict.FIXED, Verdict.ADDED)
_LOUD = (Verdict.BROKEN, Verdict.REMOVED, Verdict.FAILING, Verdict.UNSUPPORTED)


def mood(run: Run) -> str:
    counts = run.summary.verdicts
    if counts.get(Verdict.BROKEN):
        return "bad"
    return "warn" if counts.get(Verdict.CHANGED) or counts.get(Verdict.REMOVED) else "good"


def tiles(run: Run) -> list[dict[str, Any]]:
    order = (Verdict.CHANGED, *_LOUD[:1], *_QUIET, *_LOUD[1:])
    found = [
        {"name": verdict.value, "count": run.summary.verdicts.get(verdict, 0), "filter": verdict.value}
        for verdict in order
        if run.summary.verdicts.get(verdict) or verdict in (Verdict.CHANGED, Verdict.UNCHANGED)
    ]
    unstable = sum(bool(case.nondeterministic) for case in run.cases)
    if unstable:
        found.append({"name": "nondeterministic", "count": unstable, "filter": "nondeterministic"})
    return found


def css_class(case: Case) -> str:
    """The class that colours a case: that of the first changed stage if it changed, else of its verdict."""
    if case.verdict is not Verdict.CHANGED:
        return f"v-{case.verdict.value}"
    return stage_class(case.origin.stage if case.origin else "")


def stage_class(stage: str) -> str:
    return f"s-{stage}" if stage in _ORIGINS else "s-other"


def _parts(cases: Iterable[Case]) -> list[tuple[str, int]]:
    counts = Counter(map(css_class, cases))
    order = [f"v-{Verdict.BROKEN.value}", *(f"s-{stage}" for stage in _ORIGINS), "s-other"]
    order += [f"v-{verdict.value}" for verdict in Verdict if verdict is not Verdict.BROKEN]
    return [(name, counts[name]) for name in order if counts[name]]


def _words(parts: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name[2:]} {count}" for name, count in parts)


def radius(run: Run) -> list[dict[str, Any]]:
    by_target: dict[str, list[Case]] = {}
    for case in run.cases:
        by_target.setdefault(case.target, []).append(case)
    rows = []
    for name, found in wording.in_target_order(run):
        parts = _parts(by_target.get(name, ()))
        stages = [
            (stage, row.changed, row.compared) for stage, row in in_stage_order(found.stages) if row.compared
        ]
        rows.append(
            {
                "target": name,
                "changed": found.changed,
                "compared": found.compared,
                "percent": f"{found.fraction:.0%}",
                "bar": charts.stacked_bar(parts, _words(parts)),
                "stages": stages,
            }
        )
    return rows


def legend(run: Run) -> list[tuple[str, str]]:
    return [(name, name[2:]) for name, _ in _parts(run.cases)]


MAX_MATRIX_ROWS = 500


def matrix(run: Run) -> list[dict[str, Any]]:
    """A row for each kernel; where those are too many for a page, for each workload."""
    by_kernel = _matrix(run, lambda case: (case.workload, case.kernel))
    if len(by_kernel) <= MAX_MATRIX_ROWS:
        return by_kernel
    return _matrix(run, lambda case: (case.workload, ""))


def _matrix(run: Run, row_of: Callable[[Case], tuple[str, str]]) -> list[dict[str, Any]]:
    cells: dict[tuple[str, str], dict[str, list[Case]]] = {}
    for case in run.cases:
        cells.setdefault(row_of(case), {}).setdefault(case.target, []).append(case)
    return [
        {
            "workload": workload,
            "kernel": kernel,
            "cells": [_cell(by_target.get(target.name, [])) for target in run.targets],
        }
        for (workload, kernel), by_target in sorted(cells.items())
    ]


def by_family(run: Run) -> list[dict[str, Any]]:
    cases: dict[tuple[str, str], list[Case]] = {}
    for case in run.cases:
        cases.setdefault((families.of(case.workload), case.target), []).append(case)
    return [
        {
            "name": row.name,
            "total": row.total.words,
            "percent": row.total.percent,
            "cells": [
                _family_cell(share, cases.get((row.name, target.name), []))
                for share, target in zip(row.by_target, run.targets, strict=True)
            ],
        }
        for row in families.table(run)
    ]


def _family_cell(share: families.Share, cases: Sequence[Case]) -> dict[str, Any] | None:
    if not share.words:
        return None
    parts = _parts(cases)
    return {"text": share.words, "bar": charts.stacked_bar(parts, _words(parts)), "words": _words(parts)}


def _cell(cases: Sequence[Case]) -> dict[str, Any] | None:
    if not cases:
        return None
    parts = _parts(cases)
    changed = sum(case.verdict is Verdict.CHANGED for case in cases)
    broken = sum(case.verdict is Verdict.BROKEN for case in cases)
    text = f"{changed}/{len(cases)}" + (f" · {broken} broken" if broken else "")
    return {"text": text, "bar": charts.stacked_bar(parts, _words(parts)), "words": _words(parts)}
