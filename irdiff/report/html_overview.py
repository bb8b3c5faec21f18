"""The coloured tables of the page: kernels and families by target, by where the change begins."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from irdiff.model import Case, Run, Target, Verdict
from irdiff.report import charts, families, phrases
from irdiff.stages import MACHINE_STAGES, Stage, in_stage_order

MAX_MATRIX_ROWS = 500
_ORIGINS = tuple(stage for stage in Stage if stage not in MACHINE_STAGES)
"""Stages that have a colour of their own in `report.css`."""
_TILES = (
    *(Verdict.CHANGED, Verdict.BROKEN, Verdict.ABSORBED, Verdict.UNCHANGED, Verdict.FIXED, Verdict.ADDED),
    *(Verdict.REMOVED, Verdict.FAILING, Verdict.UNSUPPORTED),
)


def of(run: Run) -> dict[str, Any]:
    by_kernel = _matrix(run, lambda case: (case.workload, case.kernel))
    # where kernels are too many for a page, workloads
    kernels = by_kernel if len(by_kernel) <= MAX_MATRIX_ROWS else _matrix(run, lambda c: (c.workload, ""))
    by_family = families.table(run)
    rows = {row["names"][0]: row for row in _matrix(run, lambda case: (families.of(case.workload), ""))}
    return {
        "mood": _mood(run),
        "tiles": _tiles(run),
        "legend": [(name, name[2:]) for name, _ in _parts(run.cases)],
        "radius": _radius(run),
        "kernels": kernels[:MAX_MATRIX_ROWS],
        "kernels_left_out": max(0, len(kernels) - MAX_MATRIX_ROWS),
        "families": [(row, rows[row.name]["cells"]) for row in by_family],
    }


def _mood(run: Run) -> str:
    counts = run.summary.verdicts
    if counts.get(Verdict.BROKEN):
        return "bad"
    return "warn" if counts.get(Verdict.CHANGED) or counts.get(Verdict.REMOVED) else "good"


def _tiles(run: Run) -> list[tuple[str, int]]:
    counts = run.summary.verdicts
    shown = (Verdict.CHANGED, Verdict.UNCHANGED)
    found = [(name.value, counts.get(name, 0)) for name in _TILES if counts.get(name) or name in shown]
    unstable = sum(bool(case.nondeterministic) for case in run.cases)
    return [*found, ("nondeterministic", unstable)] if unstable else found


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


def _bar(cases: Iterable[Case]) -> dict[str, Any]:
    parts = _parts(cases)
    words = ", ".join(f"{name[2:]} {count}" for name, count in parts)
    return {"bar": charts.stacked_bar(parts, words), "words": words}


def _radius(run: Run) -> list[dict[str, Any]]:
    return [
        {
            "target": name,
            "radius": found,
            "percent": f"{found.fraction:.0%}",
            "stages": [(stage, row) for stage, row in in_stage_order(found.stages) if row.compared],
            **_bar(case for case in run.cases if case.target == name),
        }
        for name, found in phrases.in_target_order(run)
    ]


def _matrix(run: Run, row_of: Callable[[Case], tuple[str, str]]) -> list[dict[str, Any]]:
    cells: dict[tuple[str, str], dict[str, list[Case]]] = {}
    for case in run.cases:
        cells.setdefault(row_of(case), {}).setdefault(case.target, []).append(case)
    return [
        {"names": names, "cells": [_cell(target, by_target.get(target.name, [])) for target in run.targets]}
        for names, by_target in sorted(cells.items())
    ]


def _cell(target: Target, cases: Sequence[Case]) -> dict[str, Any] | None:
    if not cases:
        return None
    changed = sum(case.verdict is Verdict.CHANGED for case in cases)
    broken = sum(case.verdict is Verdict.BROKEN for case in cases)
    text = f"{changed}/{len(cases)}" + (f" · {broken} broken" if broken else "")
    return {"target": target.name, "text": text, **_bar(cases)}
