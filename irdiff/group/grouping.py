"""Cases whose change is the same edit, as one group. Pure and deterministic.

Two changes are the same where they have the same origin (stage and pass) and the same essence of the
abstracted edit. How often a line occurs, or what moves beside it, depends on the kernel and not on the change
of the compiler. The group's likeness is how alike its members are beyond that, occurrences included.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from irdiff.compare.abstraction import abstract, essence
from irdiff.compare.edits import Edit
from irdiff.effects.cases import RISKS
from irdiff.findings import FindingKind
from irdiff.group import severity, titles
from irdiff.model import (
    GROUPED_VERDICTS,
    Case,
    CaseSummary,
    Cause,
    ChangeGroup,
    Component,
    Effects,
    Launch,
    Origin,
    Sides,
    Verdict,
)

MAX_EDIT_LINES = 200
"""Abstracted lines that a group shows; its id covers all."""


Key = tuple[str, str, str, tuple[str, ...]]
"""Kind, stage, pass and essence of the edit: what the cases of a group have in common."""


@dataclass(frozen=True, kw_only=True)
class Description:
    """What grouping needs of a case. Its texts are not among it."""

    key: Key
    counts: Mapping[str, int]
    """Abstracted edit lines with how often each occurs."""
    size: int
    summary: CaseSummary


_Member = tuple[Case, Description]
NO_LAUNCHES: Sides[Launch | None] = Sides(base=None, head=None)


def describe(
    case: Case,
    edit: Edit | None,
    launches: Sides[Launch | None] = NO_LAUNCHES,
    effects: tuple[Effects, Cause] | None = None,
    *,
    same_compiler: bool = False,
) -> Description:
    """The description of one case from its canonical edit; None where there is no text to compare.

    The key does not depend on the summary: other words never make other groups.
    """
    counts = _failure_lines(case) or (abstract(edit) if edit else Counter(_facts_lines(case)))
    is_asked_for = _is_asked_for(case, launches, same_compiler=same_compiler)
    return Description(
        key=(_kind(case), *(_place(case.origin) if case.origin else ("", "")), essence(counts)),
        counts=counts,
        size=sum(counts.values()),
        summary=_summary(case, edit, launches, effects, is_asked_for=is_asked_for),
    )


def _summary(
    case: Case,
    edit: Edit | None,
    launches: Sides[Launch | None],
    effects: tuple[Effects, Cause] | None,
    *,
    is_asked_for: bool,
) -> CaseSummary:
    causes = titles.causes_of(case, edit, launches)
    ranked = severity.rank(case, edit, effects and effects[0], is_asked_for=is_asked_for)
    if effects and effects[0].kind in RISKS:
        causes = (effects[1], *causes)
    return CaseSummary(
        title=titles.of_case(case, causes),
        severity=str(ranked.severity),
        score=ranked.score,
        reasons=ranked.reasons,
        causes=causes,
        effects=effects and effects[0],
    )


def _is_asked_for(case: Case, launches: Sides[Launch | None], *, same_compiler: bool) -> bool:
    """Whether the kernel's text was edited, or what launches it, so that another result may be meant. Nothing
    else can be the reason where one compiler is given other launches.
    """
    if same_compiler and len({launch and launch.digest for launch in launches}) > 1:
        return True
    is_edited = launches.base and launches.head and launches.base.source_digest != launches.head.source_digest
    asks = {Component.PROGRAM, *([Component.FRONTEND] if is_edited else [])}
    return case.origin is not None and bool(case.origin.charged) and asks.issuperset(case.origin.charged)


def group(
    cases: Iterable[Case], description_of: Callable[[Case], Description]
) -> tuple[tuple[ChangeGroup, ...], dict[str, str]]:
    """The groups, the gravest first, and the group id of each case. The order of cases does not matter."""
    rows: dict[Key, list[_Member]] = {}
    for case in cases:
        if case.verdict in GROUPED_VERDICTS:
            description = description_of(case)
            rows.setdefault(description.key, []).append((case, description))
    groups = [_group(key, found) for key, found in rows.items()]
    groups.sort(key=severity.order)
    return tuple(groups), {case_id: g.id for g in groups for case_id in g.members}


def _group(key: Key, members: list[_Member]) -> ChangeGroup:
    members.sort(key=lambda row: row[0].id)
    shown = [row for row in members if row[0].verdict is not Verdict.ABSORBED] or members
    _, gravest = max(shown, key=lambda row: (*severity.gravity(row[1].summary), row[0].id))
    as_grave = [row for row in shown if severity.why(row[1].summary) == severity.why(gravest.summary)]
    smallest, described = min(as_grave, key=lambda row: (row[1].size, row[0].id))
    summary, counts, origin = gravest.summary, described.counts, smallest.origin
    charged = {part for case, _ in members if case.origin for part in case.origin.charged}
    return ChangeGroup(
        id=hashlib.sha256(json.dumps(key).encode()).hexdigest()[:16],
        title=titles.of_group([(case, row.summary.causes) for case, row in members]),
        severity=summary.severity,
        score=summary.score,
        origin_stage=origin.stage if origin else "",
        pass_name=origin.pass_name if origin else None,
        charged=tuple(component for component in Component if component in charged),
        representative=smallest.id,
        members=tuple(case.id for case, _ in members),
        likeness=round(sum(_likeness(counts, row.counts) for _, row in members) / len(members), 4),
        reasons=summary.reasons,
        edit=tuple(sorted(counts, key=lambda line: (line[1:], line[:1] == "+")))[:MAX_EDIT_LINES],
    )


def _likeness(base: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Lines in common over all lines, occurrences included."""
    ours, theirs = Counter(base), Counter(other)
    whole = (ours | theirs).total()
    return (ours & theirs).total() / whole if whole else 1.0


def _place(origin: Origin) -> tuple[str, str]:
    return origin.stage, origin.pass_name or ""


def _kind(case: Case) -> str:
    return case.verdict if case.verdict in (Verdict.BROKEN, Verdict.FIXED) else "changed"


def _failure_lines(case: Case) -> Counter[str]:
    failure = case.failures.head or case.failures.base
    if case.verdict not in (Verdict.BROKEN, Verdict.FIXED) or failure is None:
        return Counter()
    sign = "+" if case.verdict is Verdict.BROKEN else "-"
    return Counter([f"{sign}{failure.kind} in {failure.stage}: {titles.VARYING.sub('…', failure.message)}"])


def _facts_lines(case: Case) -> list[str]:
    """The abstracted edit where there is no text to compare: what is known to differ."""
    without_text = (FindingKind.LAUNCH_DIFFERS, FindingKind.NOT_COMPARED)
    lines = [f"+{finding}" for finding in case.findings if finding.kind in without_text]
    return lines or [f"+{case.origin.stage if case.origin else 'machine code'}: no text differs"]
