"""The HTML report: one file that needs no network, no server and no permission.

Templates: `reports/report.html.j2`, `report.css`, `report.js`. Tables and groups are in the page as HTML
and can be read and searched without its script; the script filters, sorts and draws the diffs, which lie
in the page as JSON and are parsed when a group is opened. The page's own policy (CSP) allows its one
script and its one sheet by digest and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from markupsafe import Markup

from irdiff.model import Case, Fact, Failure, Run, Sides, StageStatus, Verdict
from irdiff.report import (
    bump_words,
    charts,
    commands,
    edited,
    edited_lines,
    escape,
    html_diffs,
    html_overview,
    launch_changes,
    provenance,
    reach,
    templates,
    together,
    wording,
)
from irdiff.report.forest import Forest
from irdiff.report.group_names import NamedGroup
from irdiff.report.rank import moved_facts, rank
from irdiff.report.shown import PLAIN, Shown
from irdiff.stages import in_stage_order
from irdiff.words import counted

MAX_ENTRIES = 400
"""The most groups and single cases that are shown with diffs. The rest are rows of the table of cases."""
MAX_CASE_ROWS = 2_000
"""Cases that stand in the page as rows of a table. Of more a script draws what is looked for."""
_MAX_SINGLES = 60
_MAX_EDIT_LINES = 40
_MAX_PROFILES = 9
_MAX_FACT_ROWS = 12
_MAX_STDERR_LINES = 40
_MAX_BROKEN = 100
_MAX_LAUNCH_CHANGES = 60
_MAX_NOT_RUN = 200
_STATUS_SIGN = {
    StageStatus.IDENTICAL: "·",
    StageStatus.EQUIVALENT: "=",
    StageStatus.CHANGED: "≠",
    StageStatus.ABSENT: " ",
}
_NOT_PROFILED = frozenset({"binary_bytes"})


def render(run: Run, folder: Path, timing: Forest | None = None, *, as_: Shown = PLAIN) -> str:
    """The page. Diffs are read from the artifacts of `folder`. Where one is missing, the page says so."""
    sheet, script = _asset("report.css"), _asset("report.js")
    ranked = rank(run.cases)
    entries = _entries(run, ranked, folder, as_)
    not_run = edited_lines.not_run(run)
    return (
        templates.html()
        .get_template("report.html.j2")
        .render(
            policy=_policy(script, sheet),
            sheet=sheet,
            script=script,
            headline=as_.headline(run),
            reach=reach.sentence(run) or edited.sentence(run),
            edited_lines=edited_lines.sentence(run),
            not_run=not_run[:_MAX_NOT_RUN],
            not_run_left_out=max(0, len(not_run) - _MAX_NOT_RUN),
            mood=html_overview.mood(run),
            run=run,
            base=wording.side(run.base),
            head=wording.side(run.head),
            tiles=html_overview.tiles(run),
            coverage=wording.coverage(run),
            radius=html_overview.radius(run),
            legend=html_overview.legend(run),
            matrix=html_overview.matrix(run),
            families=html_overview.by_family(run),
            broken=_failures(run, Verdict.BROKEN)[:_MAX_BROKEN],
            failing=_failures(run, Verdict.FAILING)[:_MAX_BROKEN],
            timing=_timing(timing) if timing else None,
            bump=bump_words.frame(run, MAX_ENTRIES, MAX_ENTRIES) if as_.is_bump else None,
            entries=entries,
            severities=list(dict.fromkeys(entry["severity"] for entry in entries if entry["severity"])),
            profiles=_profiles(ranked),
            cases=_case_rows(run, ranked, {member: e["number"] for e in entries for member in e["case_ids"]}),
            most_matrix_rows=html_overview.MAX_MATRIX_ROWS,
            most_cases=MAX_CASE_ROWS,
            targets=[target.name for target in run.targets],
            provenance={"sides": provenance.sides(run), "rows": provenance.rows(run)},
            launch_changes=launch_changes.of_run(run)[:_MAX_LAUNCH_CHANGES],
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


# failures and timings


def _failures(run: Run, verdict: Verdict) -> list[dict[str, Any]]:
    return [
        {
            "id": shared.cases[0].id,
            "others": [case.id for case in shared.cases[1:]],
            "error": shared.words,
            "sides": [
                (name, _failure(failure)) for name, failure in _named(shared.cases[0].failures) if failure
            ],
        }
        for shared in together.errors(case for case in run.cases if case.verdict is verdict)
    ]


def _named(sides: Sides[Failure | None]) -> list[tuple[str, Failure | None]]:
    return [("base", sides.base), ("head", sides.head)]


def _failure(failure: Failure) -> dict[str, Any]:
    signal = f", {failure.signal}" if failure.signal else ""
    lines = failure.stderr.splitlines()[-_MAX_STDERR_LINES:]
    return {
        "what": f"{failure.kind.value} in {failure.stage}{signal}: {failure.message}",
        "lines": escape.clean_lines("\n".join(lines)) if lines else [],
    }


def _timing(timing: Forest) -> dict[str, Any]:
    scale = charts.ForestScale(timing.rows)
    return {
        "headline": timing.headline,
        "device": timing.device,
        "wrong": timing.wrong,
        "axis": charts.forest_axis(scale),
        "rows": [
            (row, f"{100 * (row.ratio - 1):+.2f} %", charts.forest_row(row, scale)) for row in timing.rows
        ],
    }


# groups


def _entries(run: Run, ranked: Sequence[Case], folder: Path, as_: Shown) -> list[dict[str, Any]]:
    """Everything that has a diff: the groups, then the changed cases that are in no group."""
    cases = {case.id: case for case in run.cases}
    singles = wording.ungrouped(run, ranked)
    groups = [row for row in as_.groups(run) if row.group.representative in cases]
    found = [_group(row, cases) for row in groups[:MAX_ENTRIES]]
    found += [_single(case) for case in singles[: min(_MAX_SINGLES, MAX_ENTRIES - len(found))]]
    share = min(html_diffs.ENTRY_BYTES, html_diffs.PAGE_BYTES // max(1, len(found)))
    after = itertools.count(len((as_.whole or run).groups) + 1)
    numbers = itertools.chain((row.number for row in groups[:MAX_ENTRIES]), after)
    for number, entry in zip(numbers, found, strict=False):
        case = cases[entry["representative"]]
        entry.update(
            number=number,
            facts=_facts(case),
            diffs=html_diffs.entry(folder, case, share, call=as_.call),
            commands=commands.story(as_.call, entry["short"], case),
            stage=case.origin.stage if case.origin else "",
            unstable=together.unstable_words(case),
            story=_story(case),
        )
    return found


def _story(case: Case) -> list[str]:
    """What else is known of where the change began."""
    if case.origin is None:
        return []
    healed = ", ".join(case.origin.healed)
    lines = [f"Earlier passes whose output differed and came together again: {healed}."] if healed else []
    return [*lines, case.origin.note] if case.origin.note else lines


def _group(row: NamedGroup, cases: Mapping[str, Case]) -> dict[str, Any]:
    group = row.group
    members = [cases[member] for member in group.members if member in cases]
    count = len(group.members)
    return {
        "id": group.id,
        "short": row.short,
        "title": group.title,
        "severity": group.severity,
        "loud": wording.is_loud(group),
        "count": counted(count, "case"),
        "origin": wording.group_origin(group),
        "css_class": html_overview.stage_class(group.origin_stage),
        "charged": wording.charged(group),
        "alike": f"members are {group.likeness:.0%} alike" if count > 1 else "",
        "reasons": group.reasons,
        "edit": [escape.clean(line) for line in group.edit[:_MAX_EDIT_LINES]],
        "edit_left_out": max(0, len(group.edit) - _MAX_EDIT_LINES),
        "representative": group.representative,
        "case_ids": list(group.members),
        "targets": sorted({member.target for member in members}),
        "members": _members(members),
        "kind": "group",
    }


def _single(case: Case) -> dict[str, Any]:
    origin = case.origin
    return {
        "id": case.id,
        "short": case.id,
        "title": wording.moved(case, limit=3),
        "severity": "",
        "loud": False,
        "count": case.id,
        "origin": wording.origin(case),
        "css_class": html_overview.css_class(case),
        "charged": ", ".join(component.value for component in origin.charged) if origin else "",
        "alike": "",
        "reasons": (),
        "edit": [],
        "edit_left_out": 0,
        "representative": case.id,
        "case_ids": [case.id],
        "targets": [case.target],
        "members": [],
        "kind": "case",
    }


def _members(members: Sequence[Case]) -> list[dict[str, Any]]:
    """Kernel × target: the labels of the launches in each cell."""
    targets = sorted({case.target for case in members})
    rows: dict[str, dict[str, list[str]]] = {}
    for case in members:
        rows.setdefault(case.workload, {}).setdefault(case.target, []).append(_label(case))
    return [
        {"workload": workload, "cells": [(target, sorted(cells.get(target, []))) for target in targets]}
        for workload, cells in sorted(rows.items())
    ]


def _label(case: Case) -> str:
    return case.id.removeprefix(case.workload + ":").removesuffix("@" + case.target)


# facts


def _facts(case: Case) -> list[dict[str, Any]]:
    moved = moved_facts(case.facts.base, case.facts.head)
    return [_fact(name, base, head) for name, (base, head) in list(moved.items())[:_MAX_FACT_ROWS]]


def _fact(name: str, base: Fact, head: Fact) -> dict[str, Any]:
    numbers = isinstance(base, (int, float)) and isinstance(head, (int, float))
    bars = charts.pair_bars(float(base), float(head)) if numbers else ""
    return {"name": name, "base": wording.number(base), "head": wording.number(head), "bars": bars}


def _profiles(ranked: Sequence[Case]) -> list[dict[str, Any]]:
    """The facts that moved most often, each with its change in every case."""
    deltas: dict[str, list[tuple[float, str]]] = {}
    weights: Counter[str] = Counter()
    for case in ranked:
        for place, (name, (base, head)) in enumerate(moved_facts(case.facts.base, case.facts.head).items()):
            if (
                isinstance(base, (int, float))
                and isinstance(head, (int, float))
                and name not in _NOT_PROFILED
            ):
                deltas.setdefault(name, []).append((head - base, case.id))
                weights[name] += max(1, 8 - place)
    chosen = sorted(deltas, key=lambda name: (-weights[name], name))[:_MAX_PROFILES]
    return [_profile(name, deltas[name]) for name in chosen]


def _profile(name: str, rows: Sequence[tuple[float, str]]) -> dict[str, Any]:
    more = sum(delta > 0 for delta, _ in rows)
    largest, case_id = max(rows, key=lambda row: (abs(row[0]), row[1]))
    words = f"more in {more}, less in {len(rows) - more}"
    return {
        "name": name,
        "words": words,
        "largest": f"{largest:+g}",
        "case": case_id,
        "chart": charts.profile([delta for delta, _ in rows], f"{name}: {words}"),
    }


# tables


def _case_rows(run: Run, ranked: Sequence[Case], entry_of: Mapping[str, int]) -> list[dict[str, Any]]:
    order = {case.id: position for position, case in enumerate(ranked)}
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
        "unstable": together.unstable_words(case),
        "css_class": html_overview.css_class(case),
        "origin": wording.origin(case) if case.origin else "",
        "stages": [
            (name, _STATUS_SIGN[status], status.value) for name, status in in_stage_order(case.stages)
        ],
        "moved": _moved(case),
        "entry": entry,
    }
    signs = " ".join(name + sign for name, sign, _ in row["stages"] if sign != " ")
    words = (row[name] for name in ("id", "verdict", "unstable", "origin"))
    return {**row, "brief": [*words, signs, row["moved"], entry, row["css_class"]]}


def _moved(case: Case) -> str:
    if case.verdict is Verdict.CHANGED:
        return wording.moved(case, limit=4)
    return case.error or ""
