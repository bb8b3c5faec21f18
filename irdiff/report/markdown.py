"""The Markdown report: a pull request comment or a job summary, never longer than it may be.

Templates: `reports/*.md.j2`. Where the whole does not fit, rows are left out last-first and counted:
broken cases are the last to go, then risky groups, then the other groups, then single cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from irdiff.errors import UsageError
from irdiff.model import Case, Run, Verdict
from irdiff.report import (
    bump_words,
    commands,
    edited,
    edited_lines,
    escape,
    families,
    launch_changes,
    provenance,
    reach,
    templates,
    together,
    wording,
)
from irdiff.report.forest import Forest, ForestRow
from irdiff.report.group_names import NamedGroup
from irdiff.report.rank import rank
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.together import SharedError
from irdiff.words import counted

LIMIT = 60_000
"""GitHub refuses comments of more than 65,536 characters; some are left to whoever wraps this text."""
_SMALLEST_LIMIT = 1_000
_MAX_TARGETS = 40
_MAX_FAMILIES = 60
_MAX_FAMILY_TARGETS = 12
_MAX_MEMBERS = 60
_MAX_NOTES = 10
_MAX_NOT_RUN = 20
_SHORT_NOTE = 160
_MAX_LAUNCH_CHANGES = 10
_MAX_PROVENANCE = 20
_KINDS = ("broken", "wrong", "slower", "families", "loud", "quiet", "ungrouped", "unclear", "others")
"""The parts that may be left out. Where room is short, the first ones are kept longest."""
_OTHERS = (Verdict.FAILING, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED)


def render(run: Run, timing: Forest | None = None, limit: int = LIMIT, *, as_: Shown = PLAIN) -> str:
    """The report in at most `limit` characters. Raises UsageError for a limit that holds no report."""
    if limit < _SMALLEST_LIMIT:
        raise UsageError(f"a Markdown report needs at least {_SMALLEST_LIMIT} characters, not {limit}")
    frame, items = _frame(run, timing, as_), _items(run, timing, as_)
    frame["bump"] = bump_words.frame(run) if as_.is_bump else None
    template = templates.markdown().get_template("report.md.j2")

    def first(count: int) -> str:
        return template.render(**frame, **_kept(items, count))

    whole = first(len(items))
    if len(whole) <= limit:
        return whole
    fits, too_many = 0, len(items)
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if len(first(middle)) <= limit else (fits, middle)
    text = first(fits)
    return text if len(text) <= limit else _headline_only(frame, limit)


def _headline_only(frame: Mapping[str, Any], limit: int) -> str:
    """The headline, with as many notes as there is room for: they say what was not compared."""
    text = f"### irdiff: {escape.markdown(frame['headline'])}\n\n"
    end = "The report is too long to be shown here: see the HTML report.\n"
    for note in frame["notes"]:
        quoted = f"> {escape.markdown(note, limit=_SHORT_NOTE)}\n\n"
        text += quoted if len(text) + len(quoted) + len(end) <= limit else ""
    return text + end


# what is always there


def _frame(run: Run, timing: Forest | None, as_: Shown) -> dict[str, Any]:
    not_run = edited_lines.not_run(run)
    return {
        "headline": as_.headline(run),
        "base": wording.side(run.base),
        "head": wording.side(run.head),
        "timing": timing,
        "reach": reach.sentence(run) or edited.sentence(run),
        "edited_lines": edited_lines.sentence(run),
        "not_run": [
            {"place": stretch.place, "text": stretch.lines[0].text} for stretch in not_run[:_MAX_NOT_RUN]
        ],
        "not_run_left_out": max(0, len(not_run) - _MAX_NOT_RUN),
        "coverage": wording.coverage(run),
        "radius": _radius(run)[:_MAX_TARGETS],
        "radius_left_out": max(0, len(run.summary.radius) - _MAX_TARGETS),
        "notes": run.notes[:_MAX_NOTES],
        "provenance": _provenance(run),
        "launch_changes": [
            {"text": str(change), "cases": counted(count, "changed case")}
            for change, count in launch_changes.of_run(run)[:_MAX_LAUNCH_CHANGES]
        ],
        "open_ungrouped": not run.groups,
        "commands": _commands(run, as_),
    }


def _commands(run: Run, as_: Shown) -> list[str]:
    """To copy: what tells more of the first group, or case, and what compares it again anywhere."""
    groups = as_.groups(run)
    cases = {case.id: case for case in run.cases}
    changed = next((case.id for case in rank(run.cases)), "")
    case_id = groups[0].group.representative if groups else changed
    if case_id not in cases:
        return []
    name = groups[0].short if groups else case_id
    words = [*commands.story(as_.call, name, cases[case_id]), commands.page(as_.call)]
    fetch = [as_.fetch] if as_.fetch else []
    again = commands.again(run, cases[case_id])
    return [*fetch, *words, *([again] if again else [])]


def _radius(run: Run) -> list[dict[str, Any]]:
    origins: dict[str, Counter[str]] = {}
    for case in run.cases:
        if case.verdict is Verdict.CHANGED and case.origin:
            origins.setdefault(case.target, Counter())[case.origin.stage] += 1
    return [
        {
            "target": target,
            "changed": radius.changed,
            "compared": radius.compared,
            "percent": f"{radius.fraction:.0%}",
            "origins": ", ".join(
                f"{stage} {n}" for stage, n in origins.get(target, Counter()).most_common(8)
            ),
        }
        for target, radius in wording.in_target_order(run)
    ]


def _provenance(run: Run) -> dict[str, Any]:
    sides, rows = provenance.sides(run), provenance.rows(run)
    return {
        "sides": [{"name": name, "base": base, "head": head} for name, base, head in sides[:_MAX_PROVENANCE]],
        "rows": [{"name": name, "value": value} for name, value in rows[:_MAX_PROVENANCE]],
    }


# what is left out where there is too much


def _items(run: Run, timing: Forest | None, as_: Shown) -> list[tuple[str, Any]]:
    """Everything that may be left out, the most important first, each with its place in the template."""
    ranked = rank(run.cases)
    cases = {case.id: case for case in run.cases}
    broken = sorted((case for case in run.cases if case.verdict is Verdict.BROKEN), key=lambda case: case.id)
    return [
        *(("broken", _error(shared)) for shared in together.errors(broken)),
        *(("wrong", {"id": row.case_id, "text": row.words}) for row in (timing.wrong if timing else ())),
        *(("slower", _slower(row)) for row in (timing.rows if timing else ()) if row.verdict == "slower"),
        *(("families", found) for found in _families(run)),
        *(("loud" if wording.is_loud(row.group) else "quiet", _group(row, cases)) for row in as_.groups(run)),
        *(("ungrouped", _row(case)) for case in wording.ungrouped(run, ranked)),
        *(("unclear", _unclear(row)) for row in (timing.rows if timing else ()) if row.why),
        *(("others", other) for other in _others(run)),
    ]


def _families(run: Run) -> list[dict[str, Any]]:
    """The table of families, or nothing where there is none."""
    rows = families.table(run)
    if not rows:
        return []
    table = {
        "targets": [target.name for target in run.targets[:_MAX_FAMILY_TARGETS]],
        "rows": [
            {
                "name": row.name,
                "shares": [share.words for share in row.by_target[:_MAX_FAMILY_TARGETS]],
                "total": row.total.words,
                "percent": row.total.percent,
            }
            for row in rows[:_MAX_FAMILIES]
        ],
        "rows_left_out": max(0, len(rows) - _MAX_FAMILIES),
        "targets_left_out": max(0, len(run.targets) - _MAX_FAMILY_TARGETS),
    }
    return [table]


def _group(row: NamedGroup, cases: Mapping[str, Case]) -> dict[str, Any]:
    group = row.group
    count = len(group.members)
    alike = f"members are {group.likeness:.0%} alike" if count > 1 and group.likeness < 1 else ""
    representative = cases.get(group.representative)
    return {
        "number": row.number,
        "short": row.short,
        "title": group.title,
        "severity": group.severity,
        "origin": wording.group_origin(group),
        "charged": wording.charged(group),
        "cases": counted(count, "case"),
        "targets": wording.members_by_target(group, cases),
        "alike": alike,
        "reason": wording.first_reason(group),
        "edit": group.edit,
        "representative": group.representative,
        "moved": wording.moved(representative) if representative else "not in this run",
        "members": group.members[:_MAX_MEMBERS] if count > 1 else (),
        "members_left_out": max(0, count - _MAX_MEMBERS),
    }


def _unclear(row: ForestRow) -> dict[str, str]:
    return {"id": row.case_id, "text": row.why}


def _slower(row: ForestRow) -> dict[str, str]:
    change, low, high = (f"{100 * (ratio - 1):+.1f} %" for ratio in (row.ratio, row.low, row.high))
    times = f"{row.base_us:.4g} → {row.head_us:.4g} µs"
    return {"id": row.case_id, "text": f"{change} ({low} to {high}), {times}, outputs {row.outputs}"}


def _row(case: Case) -> dict[str, str]:
    unstable = f" ({together.unstable_words(case)})" if case.nondeterministic else ""
    return {
        "id": case.id,
        "origin": wording.origin(case),
        "moved": wording.moved(case, limit=4),
        "unstable": unstable,
    }


def _others(run: Run) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for verdict in _OTHERS:
        cases = [case for case in run.cases if case.verdict is verdict]
        silent = [case for case in cases if not case.error]
        shared = together.errors(case for case in cases if case.error)
        rows += [{"title": verdict.value, "cases": len(each.cases), **_error(each)} for each in shared]
        rows += [
            {"title": verdict.value, "cases": 1, "id": case.id, "more": 0, "error": ""} for case in silent
        ]
    unstable = [
        {"title": f"nondeterministic: {words}", "cases": 1, "id": case.id, "more": 0, "error": ""}
        for words, cases in together.unstable(run.cases)
        for case in cases
    ]
    return [*unstable, *rows]


def _error(shared: SharedError) -> dict[str, Any]:
    return {"id": shared.cases[0].id, "more": len(shared.cases) - 1, "error": shared.words}


def _kept(items: Sequence[tuple[str, Any]], count: int) -> dict[str, Any]:
    kept: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    for kind, item in items[:count]:
        kept[kind].append(item)
    by_title: dict[str, list[Any]] = {}
    for line in kept["others"]:
        by_title.setdefault(line["title"], []).append(line)
    others = [
        {"title": f"{title}: {sum(line['cases'] for line in lines)}", "lines": lines}
        for title, lines in by_title.items()
    ]
    return {**kept, "others": others, "left_out": _left_out(items[count:])}


def _left_out(items: Sequence[tuple[str, Any]]) -> str:
    words = {
        "broken": "broken cases",
        "wrong": "wrong results and faults",
        "slower": "slower cases",
        "families": "table by family",
        "loud": "risky groups",
        "quiet": "groups",
        "ungrouped": "changed cases",
        "unclear": "cases timed without a verdict",
        "others": "other cases",
    }
    counts = Counter(kind for kind, _ in items)
    found = [f"{counts[kind]} {words[kind]}" for kind in _KINDS if counts[kind]]
    return f"left out: {', '.join(found)}" if found else ""
