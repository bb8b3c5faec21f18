"""The class of each change, in the order of reports.

Broken cases come first, then hazards, other rounding, what an edit changes on purpose, what is not shown,
what is proved the same, and what compiles at head alone. Nothing is weighed: within a class the larger group
comes first. Time makes no class: reports list what is likely slower or faster above the groups.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum

from irdiff.compare import cases
from irdiff.findings import Finding, FindingKind
from irdiff.model import CaseSummary, ChangeGroup, ComparedCase, Effects, Meaning, StageStatus, Verdict
from irdiff.stages import Stage


class ReportClass(StrEnum):
    BROKEN = "broken"
    HAZARD = "hazard"
    ROUNDING = "rounding"
    INTENDED = "intended"
    NOT_SHOWN = "not shown"
    SAME = "same"
    FIXED = "fixed"
    IR_ONLY = "ir-only"


_OF_VERDICT = {
    Verdict.BROKEN: (ReportClass.BROKEN, "it compiles at base, but not at head"),
    Verdict.FIXED: (ReportClass.FIXED, "it compiles at head, but not at base"),
    Verdict.IR_ONLY: (ReportClass.IR_ONLY, "IR differs, the machine code is the same"),
}
_OF_MEANING = {
    Meaning.HAZARD: ReportClass.HAZARD,
    Meaning.ROUNDING: ReportClass.ROUNDING,
    Meaning.INTENDED: ReportClass.INTENDED,
    Meaning.NOT_SHOWN: ReportClass.NOT_SHOWN,
    Meaning.SAME: ReportClass.SAME,
}


_NOISE = "head disagrees with itself: one of its results may be wrong"


def class_of(
    case: ComparedCase, effects: Effects | None, *, is_asked_for: bool
) -> tuple[ReportClass, tuple[str, ...]]:
    """Returns the class with its reasons, the gravest first. `is_asked_for`: whether the case's source or
    program asks for the change.
    """
    if case.verdict in _OF_VERDICT:
        report_class, reason = _OF_VERDICT[case.verdict]
        return report_class, (reason,)
    if unseen := cases.unseen_launch(case):
        return ReportClass.NOT_SHOWN, (f"the launch was not compared: {unseen}",)
    if effects is None or cases.not_compared(case):
        if is_asked_for:
            return ReportClass.INTENDED, ("the edited source or program asks for it",)
        return ReportClass.NOT_SHOWN, (_without_effects(case),)
    return _OF_MEANING[effects.kind], effects.said or (
        "proved: the same accesses and values, by other instructions, in other registers or in another order",
    )


def _without_effects(case: ComparedCase) -> str:
    if cases.not_compared(case):
        return "the code was not compared: anything may have changed in it"
    is_launch = any(finding.kind is FindingKind.LAUNCH_DIFFERS for finding in case.findings)
    changed = {name for name, status in case.stages.items() if status is StageStatus.CHANGED}
    if is_launch or changed == {Stage.LAUNCH}:
        order = Finding(FindingKind.CALLED_IN_ANOTHER_ORDER)
        return order.words if order in case.findings else "the launch passes something else to the same code"
    return "no last text of both sides could be read"


def with_noise(summary: CaseSummary, disagreeing: Collection[str]) -> CaseSummary:
    """Nothing is shown of a nondeterministic head."""
    if "head" not in disagreeing or summary.severity == ReportClass.IR_ONLY:
        return summary
    is_proved = summary.severity == ReportClass.SAME
    class_ = str(ReportClass.NOT_SHOWN) if is_proved else summary.severity
    return replace(summary, severity=class_, reasons=(*summary.reasons, _NOISE))


def is_of_this_irdiff(group: ChangeGroup) -> bool:
    """Other versions had other classes, so their runs say nothing about these."""
    return group.severity in frozenset(ReportClass)


def shown_class(group: ChangeGroup) -> ReportClass:
    return ReportClass(group.severity) if is_of_this_irdiff(group) else ReportClass.NOT_SHOWN


def gravity(ranked: CaseSummary | ChangeGroup) -> int:
    """Gives the graver of two the larger number."""
    return -list(ReportClass).index(ReportClass(ranked.severity))


def order(group: ChangeGroup) -> tuple[int, int, str]:
    """Sorts the gravest first."""
    return -gravity(group), -len(group.members), group.id
