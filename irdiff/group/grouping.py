"""Groups cases whose change is the same edit.

Two changes are the same if they have the same origin (stage and pass) and the same signature of the
abstracted edit. How often a line occurs, or what moves beside it, depends on the kernel and not on the change
of the compiler: the group's similarity covers it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from irdiff.compare.abstraction import abstract, signature
from irdiff.compare.edits import Edit
from irdiff.findings import NOT_COMPARED, FindingKind
from irdiff.group import effect_causes, report_classes, titles
from irdiff.model import (
    GROUPED_VERDICTS,
    CaseSummary,
    Cause,
    ChangeGroup,
    ComparedCase,
    Component,
    Effects,
    Launch,
    Meaning,
    Origin,
    Pair,
    Sides,
    Verdict,
)

if TYPE_CHECKING:
    from irdiff.attribute.attribution import Attribution

MAX_EDIT_LINES = 200
"""Abstracted lines that a group shows; its id covers all."""


Key = tuple[str, str, str, tuple[str, ...]]
"""Kind, stage, pass and signature of the edit, which all cases of a group share."""


@dataclass(frozen=True, kw_only=True)
class Description:
    key: Key
    counts: Mapping[str, int]
    """Abstracted edit lines with how often each occurs."""
    size: int
    summary: CaseSummary


_Member = tuple[ComparedCase, Description]


class Judged(NamedTuple):
    pair: Pair
    case: ComparedCase
    description: Description | None
    """None if no group takes the case."""
    attribution: Attribution | None

    @property
    def id(self) -> str:
        return self.case.id


@dataclass(frozen=True, kw_only=True)
class Alike:
    key: Key
    cases: tuple[_Member, ...]
    """By id."""
    representative: str
    """As in `ChangeGroup`."""

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(case.id for case, _ in self.cases)


NO_LAUNCHES: Sides[Launch | None] = Sides(base=None, head=None)


def describe(
    case: ComparedCase,
    edit: Edit | None,
    launches: Sides[Launch | None] = NO_LAUNCHES,
    effects: Effects | None = None,
    *,
    of_kernel: Edit | None = None,
    same_compiler: bool = False,
) -> Description:
    """The key does not depend on the summary: other words never create other groups."""
    counts = _failure_lines(case) or (abstract(edit) if edit else Counter(_facts_lines(case)))
    is_asked_for = _is_asked_for(case, launches, same_compiler=same_compiler)
    causes = titles.causes_of(case, edit, launches, of_kernel)
    return Description(
        key=(_kind(case), *(_place(case.origin) if case.origin else ("", "")), signature(counts)),
        counts=counts,
        size=sum(counts.values()),
        summary=_summary(case, causes, effects, is_asked_for=is_asked_for),
    )


def _summary(
    case: ComparedCase, causes: tuple[Cause, ...], effects: Effects | None, *, is_asked_for: bool
) -> CaseSummary:
    if effects and is_asked_for and effects.kind is not Meaning.SAME:
        effects = replace(effects, kind=Meaning.INTENDED)
    class_, reasons = report_classes.class_of(case, effects, is_asked_for=is_asked_for)
    if effects and (cause := effect_causes.of(effects)):
        causes = (cause, *causes)
    return CaseSummary(
        title=titles.of_case(case, causes),
        severity=str(class_),
        reasons=reasons,
        causes=causes,
        effects=effects,
    )


def _is_asked_for(case: ComparedCase, launches: Sides[Launch | None], *, same_compiler: bool) -> bool:
    """True if only an edit of the kernel or its launch can be the reason, so that another result may be
    intended. With one compiler on both sides that is any edit. With two, the frontend may be the reason
    although the kernel was edited, too; only an edit of the program alone cannot come from the compiler.
    """
    if same_compiler and len({launch and launch.digest for launch in launches}) > 1:
        return True
    return case.origin is not None and case.origin.charged == (Component.PROGRAM,)


def group(judged: Iterable[Judged]) -> tuple[Alike, ...]:
    """The order of cases does not matter."""
    alike: dict[Key, list[_Member]] = {}
    for judged_case in sorted(judged, key=lambda judged_case: judged_case.id):
        if judged_case.description and judged_case.case.verdict in GROUPED_VERDICTS:
            alike.setdefault(judged_case.description.key, []).append(
                (judged_case.case, judged_case.description)
            )
    return tuple(
        Alike(key=key, cases=tuple(members), representative=_gravest(members, {}).smallest[0].id)
        for key, members in alike.items()
    )


def change_groups(alike: Iterable[Alike], noise: Mapping[str, Collection[str]]) -> tuple[ChangeGroup, ...]:
    """Puts the gravest first. `noise`: nondeterministic sides by case."""
    return tuple(sorted((_change_group(group, noise) for group in alike), key=report_classes.order))


class _Gravest(NamedTuple):
    summary: CaseSummary
    """The summary of that case."""
    smallest: _Member
    """The smallest edit among those that are as grave."""


def _gravest(members: Sequence[_Member], noise: Mapping[str, Collection[str]]) -> _Gravest:
    shown = [member for member in members if member[0].verdict is not Verdict.IR_ONLY] or members
    summaries = {
        case.id: report_classes.with_noise(described.summary, noise.get(case.id, ()))
        for case, described in shown
    }
    gravest = max(map(report_classes.gravity, summaries.values()))
    as_grave = [member for member in shown if report_classes.gravity(summaries[member[0].id]) == gravest]
    smallest = min(as_grave, key=lambda member: (member[1].size, member[0].id))
    return _Gravest(summaries[smallest[0].id], smallest)


def _change_group(alike: Alike, noise: Mapping[str, Collection[str]]) -> ChangeGroup:
    members = alike.cases
    summary, (smallest, described) = _gravest(members, noise)
    counts, origin = described.counts, smallest.origin
    charged = {part for case, _ in members if case.origin for part in case.origin.charged}
    return ChangeGroup(
        id=hashlib.sha256(json.dumps(alike.key).encode()).hexdigest()[:16],
        title=titles.of_group([(case, description.summary.causes) for case, description in members]),
        severity=summary.severity,
        origin_stage=origin.stage if origin else "",
        pass_name=origin.pass_name if origin else None,
        charged=tuple(component for component in Component if component in charged),
        representative=smallest.id,
        members=alike.members,
        similarity=round(
            sum(_likeness(counts, description.counts) for _, description in members) / len(members), 4
        ),
        reasons=summary.reasons,
        edit=tuple(sorted(counts, key=lambda line: (line[1:], line[:1] == "+")))[:MAX_EDIT_LINES],
    )


def _likeness(base: Mapping[str, int], other: Mapping[str, int]) -> float:
    ours, theirs = Counter(base), Counter(other)
    whole = (ours | theirs).total()
    return (ours & theirs).total() / whole if whole else 1.0


def _place(origin: Origin) -> tuple[str, str]:
    return origin.stage, origin.pass_name or ""


def _kind(case: ComparedCase) -> str:
    return case.verdict if case.verdict in (Verdict.BROKEN, Verdict.FIXED) else "changed"


def _failure_lines(case: ComparedCase) -> Counter[str]:
    failure = case.failures.head or case.failures.base
    if case.verdict not in (Verdict.BROKEN, Verdict.FIXED) or failure is None:
        return Counter()
    sign = "+" if case.verdict is Verdict.BROKEN else "-"
    return Counter([f"{sign}{failure.kind} in {failure.stage}: {titles.VARYING.sub('…', failure.message)}"])


def _facts_lines(case: ComparedCase) -> list[str]:
    """Replaces the abstracted edit by known differences if there is no text to compare."""
    without_text = (FindingKind.LAUNCH_DIFFERS, FindingKind.CALLED_IN_ANOTHER_ORDER, *NOT_COMPARED)
    lines = [f"+{finding}" for finding in case.findings if finding.kind in without_text]
    return lines or [f"+{case.origin.stage if case.origin else 'machine code'}: no text differs"]
