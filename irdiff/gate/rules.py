"""Each kind of rule over one run: findings, before anybody waives or accepts them. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never

from irdiff.compare import statistics
from irdiff.compare.cases import not_compared
from irdiff.findings import FindingKind
from irdiff.gate.outcome import Certainty, GateFinding, SubjectKind
from irdiff.gate.policy import (
    CompileTimeRule,
    CoverageRule,
    FactRule,
    NondeterministicRule,
    RadiusRule,
    Rule,
    SeverityRule,
    SlowerRule,
    TimedRule,
    VerdictRule,
    WrongResultRule,
    matches,
)
from irdiff.gate.timings import TimedCase
from irdiff.model import COMPARED_VERDICTS, Case, ChangeGroup, Run, StageStatus, Verdict
from irdiff.report import edit_coverage
from irdiff.stages import Stage
from irdiff.timing.results import Speed

_UNCOMPARED = frozenset({Verdict.FAILING, Verdict.UNSUPPORTED})
_MACHINE_STAGES = (Stage.SASS, Stage.AMDGCN)


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A run and what was measured of it, indexed."""

    run: Run
    groups: Mapping[str, ChangeGroup]
    timings: Mapping[str, Sequence[TimedCase]]


@dataclass(frozen=True, kw_only=True)
class _CaseDecision:
    """A decision about one case: None as certainty means that the rule holds."""

    certainty: Certainty | None
    detail: str


_HOLDS = _CaseDecision(certainty=None, detail="")
_Decide = Callable[[Case], _CaseDecision]


def findings(rule: Rule, evidence: Evidence) -> tuple[int, list[GateFinding]]:
    """How many cases the rule selects, and where it does not hold."""
    if edit_coverage.same_compiler(evidence.run):
        return 0, []  # every rule asks for something of code that changed, or may have: none can have
    selected = [case for case in evidence.run.cases if rule.selects(case)]
    if isinstance(rule, CoverageRule):
        return len(selected), list(_coverage(rule, selected, evidence))
    if not selected:
        holds = is_whole(evidence.run) if rule.may_be_empty == "whole" else rule.may_be_empty
        return 0, [] if holds else [_empty(rule)]
    match rule:
        case RadiusRule():
            return len(selected), list(_radius(rule, selected))
        case CompileTimeRule():
            return len(selected), list(_compile_time(rule, selected))
        case _:
            decide = _decider(rule, evidence)
            return len(selected), [found for c in selected if (found := _of_case(rule, c, decide(c)))]


def is_whole(run: Run) -> bool:
    """Whether nothing of the corpus was left out of the run."""
    chosen = run.options
    return not chosen.cases and not chosen.tiers and chosen.shard == (1, 1)


def _empty(rule: Rule) -> GateFinding:
    return _finding(
        rule, SubjectKind.RUN, "", _unknown("it selects no case of this run: nothing was checked"), ()
    )


def _unknown(detail: str) -> _CaseDecision:
    return _CaseDecision(certainty=Certainty.UNKNOWN, detail=detail)


def _violated(detail: str) -> _CaseDecision:
    return _CaseDecision(certainty=Certainty.VIOLATED, detail=detail)


def _of_case(rule: Rule, case: Case, seen: _CaseDecision) -> GateFinding | None:
    if seen.certainty is None:
        return None
    return _finding(rule, SubjectKind.CASE, case.id, seen, (case,) if case.group else ())


def _finding(
    rule: Rule, subject: SubjectKind, name: str, seen: _CaseDecision, behind: Sequence[Case]
) -> GateFinding:
    """`behind` are the cases whose edits, all of them accepted, would settle it."""
    certainty = seen.certainty
    assert certainty is not None
    return GateFinding(
        subject=subject,
        name=name,
        certainty=certainty,
        action=rule.action if certainty is Certainty.VIOLATED else rule.unknown_action,
        detail=seen.detail,
        groups=tuple(sorted({case.group for case in behind if case.group})),
        edits={case.id: case.edit for case in behind},
        not_accepted="",
        settled_by=None,
    )


# rules that look at one case at a time


def _decider(rule: Rule, evidence: Evidence) -> _Decide:  # noqa: PLR0911 - one line a kind
    match rule:
        case VerdictRule():
            return lambda case: _verdict(rule, case, evidence.run)
        case FactRule():
            return _if_changed(lambda case: _facts(rule, case))
        case SlowerRule():
            return _if_changed(lambda case: _slower(rule, evidence.timings.get(case.id, ())))
        case TimedRule():
            return _if_changed(lambda case: _timed(evidence.timings.get(case.id, ())))
        case WrongResultRule():
            return _if_changed(lambda case: _result(evidence.timings.get(case.id, ())))
        case NondeterministicRule():
            return lambda case: _nondeterministic(case, evidence.run)
        case SeverityRule():
            return _if_changed(lambda case: _severity(rule, case, evidence.groups))
        case RadiusRule() | CompileTimeRule() | CoverageRule():
            raise AssertionError(rule.kind)
        case _:
            assert_never(rule)


def _if_changed(decide: _Decide) -> _Decide:
    return lambda case: decide(case) if case.verdict is Verdict.CHANGED else _HOLDS


def _verdict(rule: VerdictRule, case: Case, run: Run) -> _CaseDecision:
    if case.verdict not in rule.verdicts:
        return _HOLDS
    launch = run.launches.get(case.launches.head or "")
    if case.verdict is Verdict.FAILING and launch is not None and not launch.expected:
        return _HOLDS  # the workload itself says that it does not compile for this target
    where = f", first in {case.origin.stage}" if case.origin else ""
    return _violated(f"{case.verdict}{where}" + (f": {case.error}" if case.error else ""))


def _facts(rule: FactRule, case: Case) -> _CaseDecision:
    known = False
    worse: list[str] = []
    for row in (row for name in rule.facts for row in statistics.named(name)):
        before, after = row.of(case.facts.base), row.of(case.facts.head)
        if before is None and after is None:
            continue
        if before is None or after is None:
            side = "head" if before is None else "base"
            return _unknown(f"{row.name} is known at {side} only")
        known = True
        by = abs(after - before)
        beyond = by > rule.more_than and by > abs(before) * rule.more_than_percent / 100
        if beyond and row.worsened(before, after):
            worse.append(f"{row.name} {before:g} → {after:g}")
    if worse:
        return _violated(", ".join(worse))
    if known or _same_code(case):
        return _HOLDS
    return _unknown(f"neither side has {' or '.join(rule.facts)}")


def _same_code(case: Case) -> bool:
    """Whether both sides have the same code: a case may have changed only in what its launch passes."""
    statuses = [case.stages[name] for name in _MACHINE_STAGES if name in case.stages]
    return bool(statuses) and all(s in {StageStatus.IDENTICAL, StageStatus.EQUIVALENT} for s in statuses)


def _slower(rule: SlowerRule, timings: Sequence[TimedCase]) -> _CaseDecision:
    if not timings:
        return _unknown("changed and not timed")
    for timed in timings:
        reliable = timed.enough or timed.speed is Speed.SLOWER
        beyond = max(rule.percent, timed.noise_percent)
        if reliable and timed.low_percent is not None and timed.low_percent > beyond:
            return _violated(_interval(timed))
    for timed in timings:
        if timed.faulted:
            return _unknown(_faulted(timed))
        if timed.low_percent is None or timed.high_percent is None:
            return _unknown(f"not measured on {timed.device}: {timed.note or 'no reason given'}")
        if timed.speed in (Speed.SLOWER, Speed.FASTER):
            continue
        if not timed.enough or timed.high_percent > rule.percent:
            reason = f": {timed.note}" if timed.speed is Speed.UNCLEAR and timed.note else ""
            return _unknown(f"measured too roughly to say: {_interval(timed)}{reason}")
    return _HOLDS


def _faulted(timed: TimedCase) -> str:
    return f"faulted on {timed.device}: {timed.note}"


def _interval(timed: TimedCase) -> str:
    middle = "" if timed.slower_percent is None else f"{timed.slower_percent:+.2f} % "
    high = "?" if timed.high_percent is None else f"{timed.high_percent:+.2f}"
    return f"{middle}[{timed.low_percent:+.2f}, {high}] on {timed.device}"


def _timed(timings: Sequence[TimedCase]) -> _CaseDecision:
    for timed in timings:
        if timed.faulted:
            return _violated(_faulted(timed))
    if any(timed.low_percent is not None for timed in timings):
        return _HOLDS
    if not timings:
        return _violated("changed and not timed")
    return _violated(f"could not be timed on {timings[0].device}: {timings[0].note or 'no reason given'}")


def _result(timings: Sequence[TimedCase]) -> _CaseDecision:
    for timed in timings:
        if timed.faulted and timed.same_result is False:
            return _violated(_faulted(timed))
        if timed.same_result is False:
            return _violated(f"base and head compute different results on {timed.device}: {timed.note}")
    if not timings:
        return _unknown("changed and not run")
    for timed in timings:
        if timed.faulted:
            return _unknown(_faulted(timed))
        if timed.same_result is None:
            return _unknown(f"outputs were not compared on {timed.device}: {timed.note or 'no reason given'}")
    return _HOLDS


def _nondeterministic(case: Case, run: Run) -> _CaseDecision:
    if "head" not in case.nondeterministic:  # where base alone disagrees with itself, head has mended it
        unknown = case.verdict is Verdict.CHANGED and not run.options.recheck
        return _unknown("was not compiled again: --no-recheck") if unknown else _HOLDS
    return _violated(f"disagrees with itself when compiled again: {', '.join(case.nondeterministic)}")


def _severity(rule: SeverityRule, case: Case, groups: Mapping[str, ChangeGroup]) -> _CaseDecision:
    group = groups.get(case.group) if case.group else None
    if group is None:
        return _unknown("changed and in no change group: its severity is not known")
    if matches(rule.severities, group.severity):
        return _violated(f"{group.severity}: {group.title}")
    return _HOLDS


# rules that look at one target at a time


def _by_target(cases: Sequence[Case]) -> dict[str, list[Case]]:
    rows: dict[str, list[Case]] = {}
    for case in cases:
        rows.setdefault(case.target, []).append(case)
    return rows


def _radius(rule: RadiusRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
    for target, cases in _by_target(selected).items():
        compared = [case for case in cases if case.verdict in COMPARED_VERDICTS]
        changed = [case for case in compared if case.verdict is Verdict.CHANGED]
        if not compared:
            yield _finding(rule, SubjectKind.TARGET, target, _unknown("no case was compared"), ())
        elif len(changed) > max(rule.more_than_cases, rule.percent * len(compared) / 100):
            share = f"{len(changed)} of {len(compared)} compared cases changed"
            all_known = all(case.group for case in changed)
            seen = _violated(f"{share} ({100 * len(changed) / len(compared):.1f} %)")
            yield _finding(rule, SubjectKind.TARGET, target, seen, changed if all_known else ())


def _compile_time(rule: CompileTimeRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
    for target, cases in _by_target(selected).items():
        compiled = [case for case in cases if case.compile_s.base and case.compile_s.head]
        before = sum(_shared_s(case.compile_s.base, case.compile_s.head) for case in compiled)
        after = sum(_shared_s(case.compile_s.head, case.compile_s.base) for case in compiled)
        skipped = [c for c in cases if any(f.kind is FindingKind.NOT_COMPILED for f in c.findings)]
        if not compiled and len(skipped) < len(cases):
            yield _finding(rule, SubjectKind.TARGET, target, _unknown("no compile times on both sides"), ())
        elif after - before > rule.more_than_s and after - before > before * rule.percent / 100:
            seen = _violated(f"compiling {len(compiled)} cases takes {before:.1f} s → {after:.1f} s")
            yield _finding(rule, SubjectKind.TARGET, target, seen, ())


def _shared_s(times: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The seconds in the stages that both sides ran: where one stopped early, the rest says nothing."""
    return sum(seconds for stage, seconds in times.items() if stage in other)


def _least(rule: CoverageRule, cases: Sequence[Case], run: Run) -> int:
    """How many cases must have been compared: of a small corpus at least one, and the share says the rest.

    A corpus is small where all of it was looked at, and no workload failed that may hide more launches.
    """
    hiding = any(case.verdict is Verdict.FAILING and not any(case.launches) for case in cases)
    is_small = rule.or_whole and is_whole(run) and len(cases) < rule.min_compared and not hiding
    return 1 if is_small else rule.min_compared


def _coverage(rule: CoverageRule, selected: Sequence[Case], evidence: Evidence) -> Iterator[GateFinding]:
    present = _by_target(selected)
    names = dict.fromkeys([*rule.required_targets, *(target.name for target in evidence.run.targets)])
    for target in names:
        cases = present.get(target, [])
        blind = sum(map(not_compared, cases))
        compared = sum(case.verdict in COMPARED_VERDICTS for case in cases) - blind
        failed = sum(case.verdict in _UNCOMPARED for case in cases) + blind
        least = _least(rule, cases, evidence.run)
        if target in rule.required_targets and compared < least:
            detail = f"{compared} cases compared, at least {least} are required"
            yield _finding(rule, SubjectKind.TARGET, target, _violated(detail), ())
        elif 100 * failed > rule.max_uncompared_percent * len(cases):
            detail = f"{failed} of {len(cases)} cases could not be compared"
            yield _finding(rule, SubjectKind.TARGET, target, _violated(detail), ())
