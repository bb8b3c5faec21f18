"""The HTML report: one file that needs no network, no server and no permission.

Templates: `reports/report.html.j2`, `report.css`, `report.js`. Tables and groups are in the page as HTML
and can be read and searched without its script; the script filters, sorts and draws the diffs, which lie
in the page as JSON and are parsed when a group is opened. The page's own policy (CSP) allows its one
script and its one sheet by digest and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.model import Case, Run, StageStatus, Verdict
from irdiff.report import (
    charts,
    commands,
    error_clusters,
    escape,
    html_diffs,
    html_overview,
    phrases,
    templates,
    view,
)
from irdiff.report.error_clusters import SharedError
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingSummary
from irdiff.report.view import RunView
from irdiff.stages import in_stage_order

MAX_ENTRIES = 400
"""The most groups and single cases that are shown with diffs. The rest are rows of the table of cases."""
MAX_CASE_ROWS = 2_000
"""Cases that stand in the page as rows of a table. Of more a script draws what is looked for."""
_OPEN_GROUPS = 8
"""Groups that are listed at once. The others are behind one more click."""
_MAX_SINGLES = 60
_MAX_EDIT_LINES = 40
_MAX_FACTS = 12
_MAX_STDERR_LINES = 40
_LIMITS = replace(view.WHOLE, groups=MAX_ENTRIES, unfolded=0, rows=400, notes=400)
_STATUS_SIGN = {
    StageStatus.IDENTICAL: "·",
    StageStatus.EQUIVALENT: "=",
    StageStatus.CHANGED: "≠",
    StageStatus.ABSENT: " ",
}


def render(run: Run, folder: Path, timing: TimingSummary | None = None, *, as_: Shown = PLAIN) -> str:
    """The page. Diffs are read from the artifacts of `folder`. Where one is missing, the page says so."""
    sheet, script = _asset("report.css"), _asset("report.js")
    shown = view.of(run, GroupDiffs(folder, run), timing, _LIMITS, as_=as_)
    cases = {case.id: case for case in run.cases}
    entries = list(_entries(shown, run, cases, folder, as_))
    rows = _case_rows(run, {member: entry["number"] for entry in entries for member in entry["case_ids"]})
    return (
        templates.html()
        .get_template("report.html.j2")
        .render(
            policy=_policy(script, sheet),
            sheet=sheet,
            script=script,
            view=shown,
            limits=_LIMITS,
            overview=html_overview.of(run),
            failures=_failures,
            statistics=[(row, _statistic_charts(row)) for row in shown.statistics],
            forest=_forest(timing) if timing else None,
            entries=entries,
            open_groups=_OPEN_GROUPS,
            severities=list(dict.fromkeys(entry["severity"] for entry in entries if entry["severity"])),
            cases=rows,
            most_cases=MAX_CASE_ROWS,
        )
    )


def _asset(name: str) -> Markup:
    return Markup((templates.folder() / name).read_text("utf-8"))  # noqa: S704 - a file of irdiff's own


def _policy(script: str, sheet: str) -> str:
    return (
        f"default-src 'none'; script-src '{_digest(script)}'; style-src '{_digest(sheet)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


# failures, statistics and timings


def _failures(shared: SharedError) -> list[tuple[str, str, list[str]]]:
    """Of the first case: side, what happened, and the last lines it printed."""
    rows = []
    for name, failure in shared.cases[0].failures.items():
        if failure:
            signal = f", {failure.signal}" if failure.signal else ""
            what = f"{failure.kind.value} in {failure.stage}{signal}: {failure.message}"
            lines = failure.stderr.splitlines()[-_MAX_STDERR_LINES:]
            rows.append((name, what, escape.clean_lines("\n".join(lines)) if lines else []))
    return rows


def _statistic_charts(row: view.StatisticRow) -> tuple[Markup, Markup]:
    """How many got worse and better, and by what share each."""
    words = f"{row.name}: {row.worse} worse, {row.better} better"
    moves = [move.relative for cell in row.cells if cell for move in (*cell.worse, *cell.better)]
    bar = charts.stacked_bar([("c-up", row.worse), ("c-down", row.better)], words)
    return bar, charts.profile(moves, words)


def _forest(timing: TimingSummary) -> dict[str, Any]:
    scale = charts.ForestScale(timing.rows)
    rows = [(row, f"{100 * (row.ratio - 1):+.2f} %", charts.forest_row(row, scale)) for row in timing.rows]
    return {"axis": charts.forest_axis(scale), "rows": rows}


# groups


def _entries(
    shown: RunView, run: Run, cases: Mapping[str, Case], folder: Path, as_: Shown
) -> Iterator[dict[str, Any]]:
    """Everything that has a diff: the groups, then the changed cases that are in no group."""
    of_number = {row.number: row.group for row in as_.groups(run)}
    groups = [row for row in shown.groups if row.representative in cases]
    singles = shown.singles.rows[: min(_MAX_SINGLES, MAX_ENTRIES - len(groups))]
    share = min(html_diffs.ENTRY_BYTES, html_diffs.PAGE_BYTES // max(1, len(groups) + len(singles)))
    for row in groups:
        group, case = of_number[row.number], cases[row.representative]
        found = [cases[name] for name in group.members if name in cases]
        yield {
            **_entry(case, row.short, share, folder, as_),
            **vars(row),
            "is_group": True,
            "css_class": html_overview.stage_class(row.stage),
            "reasons": group.reasons,
            "edit": [escape.clean(line) for line in group.edit[:_MAX_EDIT_LINES]],
            "edit_left_out": max(0, len(group.edit) - _MAX_EDIT_LINES),
            "case_ids": group.members,
            "targets": sorted({case.target for case in found}),
            "stage": case.origin.stage if case.origin else "",
            "members": _members(found),
        }
    for number, single in enumerate(singles, len((as_.whole or run).groups) + 1):
        case = cases[single.id]
        yield {**_entry(case, single.id, share, folder, as_), "number": number}


def _entry(case: Case, name: str, share: int, folder: Path, as_: Shown) -> dict[str, Any]:
    """A case on its own, and of a group what is of its smallest example."""
    origin, title = case.origin, phrases.moved(case, limit=3)
    return {
        "is_group": False,
        "short": name,
        "title": title,
        "whole_title": title,
        "severity": "",
        "loud": False,
        "cases": case.id,
        "origin": phrases.origin(case),
        "css_class": html_overview.css_class(case),
        "charged": ", ".join(component.value for component in origin.charged) if origin else "",
        "alike": "",
        "representative": case.id,
        "reasons": (),
        "edit": [],
        "edit_left_out": 0,
        "case_ids": [case.id],
        "targets": [case.target],
        "members": [],
        "facts": _facts(case),
        "diffs": html_diffs.entry(folder, case, share, call=as_.call),
        "commands": commands.story(as_.call, name, case),
        "stage": origin.stage if origin else "",
        "unstable": error_clusters.unstable_words(case),
        "masked": ", ".join(origin.masked) if origin else "",
        "note": origin.note if origin else "",
    }


def _members(members: Sequence[Case]) -> list[dict[str, Any]]:
    """Kernel × target: the labels of the launches in each cell."""
    if len(members) < 2:
        return []
    targets = sorted({case.target for case in members})
    rows: dict[str, dict[str, list[str]]] = {}
    for case in members:
        label = case.id.removeprefix(case.workload + ":").removesuffix("@" + case.target)
        rows.setdefault(case.workload, {}).setdefault(case.target, []).append(label)
    return [
        {"workload": workload, "cells": [(target, sorted(cells.get(target, []))) for target in targets]}
        for workload, cells in sorted(rows.items())
    ]


def _facts(case: Case) -> list[tuple[str, str, str, str]]:
    """Name, value at base and at head, and bars where these are numbers."""
    rows = []
    for name, (base, head) in list(phrases.moved_facts(case.facts.base, case.facts.head).items())[
        :_MAX_FACTS
    ]:
        is_number = isinstance(base, (int, float)) and isinstance(head, (int, float))
        bars = charts.pair_bars(float(base), float(head)) if is_number else ""
        rows.append((name, phrases.number(base), phrases.number(head), bars))
    return rows


# the table of cases


def _case_rows(run: Run, entry_of: Mapping[str, int]) -> list[dict[str, Any]]:
    order = {case.id: position for position, case in enumerate(phrases.rank(run.cases))}
    first = (Verdict.BROKEN, Verdict.CHANGED, Verdict.REMOVED, Verdict.FIXED, Verdict.ADDED, Verdict.ABSORBED)
    ranks = {verdict: position for position, verdict in enumerate(first)}
    cases = sorted(
        run.cases, key=lambda case: (ranks.get(case.verdict, len(first)), order.get(case.id, 0), case.id)
    )
    return [_case_row(case, entry_of.get(case.id)) for case in cases]


def _case_row(case: Case, entry: int | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "id": case.id,
        "workload": case.workload,
        "target": case.target,
        "verdict": case.verdict.value,
        "unstable": error_clusters.unstable_words(case),
        "css_class": html_overview.css_class(case),
        "origin": phrases.origin(case) if case.origin else "",
        "stages": [
            (name, _STATUS_SIGN[status], status.value) for name, status in in_stage_order(case.stages)
        ],
        "moved": phrases.moved(case, limit=4) if case.verdict is Verdict.CHANGED else case.error or "",
        "entry": entry,
    }
    signs = " ".join(name + sign for name, sign, _ in row["stages"] if sign != " ")
    words = (row[name] for name in ("id", "verdict", "unstable", "origin"))
    return {**row, "brief": [*words, signs, row["moved"], entry, row["css_class"]]}
