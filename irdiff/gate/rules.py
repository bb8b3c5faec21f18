"""Applies each kind of rule to one run. Acceptances come later (`settling`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from irdiff import case_ids
from irdiff.gate import cost_rule, coverage_rule, fact_rule, meaning_rule
from irdiff.gate.objections import Certainty, Objection, unknown, violated
from irdiff.gate.outcome import EqualOutputs, GateFinding, SubjectKind
from irdiff.gate.policy import (
    COMPILE_S,
    CostRule,
    CoverageRule,
    FactRule,
    MeaningRule,
    Requires,
    Rule,
    VerdictRule,
)
from irdiff.gate.timings import TimedCase
from irdiff.model import COMPARED_VERDICTS, Case, Run, Verdict
from irdiff.report import edit_coverage

Timings = Mapping[str, Sequence[TimedCase]]


def findings(rule: Rule, run: Run, timings: Timings) -> tuple[int, list[GateFinding]]:
    if edit_coverage.same_compiler(run):
        return 0, []  # every rule asks for something of code that changed, or may have: none can have
    patterns = case_ids.literally(rule.cases, [case.id for case in run.cases])
    selected = [case for case in run.cases if rule.selects(case, patterns)]
    if not selected and not _is_of_the_run(rule):
        holds = coverage_rule.is_whole(run) if rule.may_be_empty == "whole" else rule.may_be_empty
        nothing = unknown("it selects no case of this run: nothing was checked")
        return 0, [] if holds else [_finding(rule, SubjectKind.RUN, "", nothing, ())]
    raised: Iterator[GateFinding]
    match rule:
        case CoverageRule(requires=Requires.COMPARED):
            by_target = coverage_rule.not_compared_enough(rule, _by_target(selected), run)
            raised = (_finding(rule, SubjectKind.TARGET, *each, ()) for each in by_target)
        case CoverageRule(requires=Requires.LAUNCHED):
            raised = _not_seen(rule, run)
        case VerdictRule(is_share=True):
            raised = _shares(rule, selected)
        case FactRule() if COMPILE_S in rule.facts:
            raised = _compile_times(rule, selected)
        case _:
            raised = _of_cases(rule, selected, run, timings)
    return len(selected), list(raised)


def _not_seen(rule: Rule, run: Run) -> Iterator[GateFinding]:
    for path, objection in coverage_rule.not_launched(run):
        yield _finding(rule, SubjectKind.FILE, path, objection, ())
    for clause, objection in coverage_rule.unexamined(run):
        yield _finding(rule, SubjectKind.NOTE, clause, objection, ())


def _is_of_the_run(rule: Rule) -> bool:
    """The rule concerns the whole run, whatever cases it selects."""
    return isinstance(rule, CoverageRule) and rule.requires is not Requires.TIMED


def _finding(
    rule: Rule, subject: SubjectKind, name: str, objection: Objection, behind: Sequence[Case]
) -> GateFinding:
    """`behind`: the cases whose changes must all be accepted to settle it."""
    equal_on = objection.equal_outputs_on
    return GateFinding(
        subject=subject,
        name=name,
        certainty=objection.certainty,
        action=rule.action if objection.certainty is Certainty.VIOLATED else rule.unknown_action,
        detail=objection.detail,
        needs_gpu=objection.needs_gpu,
        is_measured=objection.is_measured,
        groups=tuple(sorted({case.group for case in behind if case.group})),
        changes={case.id: case.edit for case in behind},
        not_accepted="",
        settled_by=EqualOutputs(devices=equal_on) if equal_on else None,
    )


def _of_cases(rule: Rule, cases: Iterable[Case], run: Run, timings: Timings) -> Iterator[GateFinding]:
    for case in cases:
        objection = _objection(rule, case, run, timings[case.id])
        if objection:
            yield _finding(rule, SubjectKind.CASE, case.id, objection, (case,) if case.group else ())


def _objection(rule: Rule, case: Case, run: Run, timings: Sequence[TimedCase]) -> Objection | None:
    match rule:
        case VerdictRule():
            return _verdict(rule, case, run)
        case FactRule():
            return fact_rule.objection(rule, case, run)
        case _ if case.verdict is not Verdict.CHANGED:
            return _measured(rule, case, timings)
        case MeaningRule():
            return meaning_rule.objection(rule, case, timings)
        case CostRule():
            return cost_rule.objection(rule, case, timings)
        case CoverageRule():
            return cost_rule.not_timed(timings)


def _measured(rule: Rule, case: Case, timings: Sequence[TimedCase]) -> Objection | None:
    """A case whose code did not change needs no measurement, but one that a GPU made counts."""
    match rule:
        case MeaningRule():
            objection = meaning_rule.wrong_outputs(rule, timings)
        case CostRule():
            objection = cost_rule.slower(rule, timings)
        case _:
            return None
    if objection is None:
        return None
    return violated(f"{case.verdict}, and yet {objection.detail}", is_measured=True)


def _verdict(rule: VerdictRule, case: Case, run: Run) -> Objection | None:
    if case.verdict not in rule.verdicts:
        return None
    launch = run.launches.get(case.launches.head or "")
    if case.verdict is Verdict.FAILING and launch is not None and not launch.expected:
        return None  # the workload itself says that it does not compile for this target
    where = f", first in {case.origin.stage}" if case.origin else ""
    return violated(f"{case.verdict}{where}" + (f" ({case.error})" if case.error else ""))


def _by_target(cases: Sequence[Case]) -> dict[str, list[Case]]:
    by_target: dict[str, list[Case]] = {}
    for case in cases:
        by_target.setdefault(case.target, []).append(case)
    return by_target


def _shares(rule: VerdictRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
    for target, cases in _by_target(selected).items():
        counted = [
            case for case in cases if case.verdict in COMPARED_VERDICTS or case.verdict in rule.verdicts
        ]
        having = [case for case in counted if case.verdict in rule.verdicts]
        if not counted:
            yield _finding(rule, SubjectKind.TARGET, target, unknown("no case was compared"), ())
        elif len(having) > max(rule.more_than_cases, rule.more_than_percent * len(counted) / 100):
            words = f"{len(having)} of {len(counted)} compared cases {' or '.join(rule.verdicts)}"
            objection = violated(f"{words} ({100 * len(having) / len(counted):.1f} %)")
            behind = having if all(case.group for case in having) else ()
            yield _finding(rule, SubjectKind.TARGET, target, objection, behind)


def _compile_times(rule: FactRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
    for target, cases in _by_target(selected).items():
        if objection := fact_rule.compile_time(rule, cases):
            yield _finding(rule, SubjectKind.TARGET, target, objection, ())
