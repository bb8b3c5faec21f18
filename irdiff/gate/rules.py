"""Each kind of rule over one run: findings, before anybody waives or accepts them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from irdiff import case_ids
from irdiff.backends.stages import MACHINE_CODE
from irdiff.backends.statistic import Resource
from irdiff.compare import statistics
from irdiff.compare.cases import not_compared
from irdiff.counted_work import NotCountedWork
from irdiff.findings import FindingKind
from irdiff.gate import policy
from irdiff.gate.outcome import Certainty, GateFinding, SubjectKind
from irdiff.gate.policy import Rule
from irdiff.gate.timings import TimedCase
from irdiff.model import COMPARED_VERDICTS, Case, Expected, Meaning, Run, StageStatus, Verdict
from irdiff.report import edit_coverage
from irdiff.timing.results import Speed

_UNCOMPARED = frozenset({Verdict.FAILING, Verdict.UNSUPPORTED})

Objection = tuple[Certainty, str]
"""Why a rule does not hold, or may not hold, with the figures that decided it."""


def findings(
    rule: Rule, run: Run, timings: Mapping[str, Sequence[TimedCase]]
) -> tuple[int, list[GateFinding]]:
    """How many cases the rule selects, and where it does not hold. `timings` are by case id."""
    if edit_coverage.same_compiler(run):
        return 0, []  # every rule asks for something of code that changed, or may have: none can have
    patterns = case_ids.literally(rule.cases, [case.id for case in run.cases])
    selected = [case for case in run.cases if rule.selects(case, patterns)]
    if not selected and not isinstance(rule, policy.CoverageRule | policy.ReachRule):
        holds = is_whole(run) if rule.may_be_empty == "whole" else rule.may_be_empty
        nothing = _unknown("it selects no case of this run: nothing was checked")
        return 0, [] if holds else [_finding(rule, SubjectKind.RUN, "", nothing, ())]
    match rule:
        case policy.CoverageRule():
            found = _coverage(rule, selected, run)
        case policy.ReachRule():
            found = _reach(rule, run)
        case policy.RadiusRule():
            found = _radius(rule, selected)
        case policy.CompileTimeRule():
            found = _compile_time(rule, selected)
        case _:
            found = _of_cases(rule, selected, run, timings)
    return len(selected), list(found)


def is_whole(run: Run) -> bool:
    """Whether nothing of the corpus was left out of the run."""
    chosen = run.options
    return not chosen.cases and not chosen.tiers and chosen.shard == (1, 1)


def _unknown(detail: str) -> Objection:
    return Certainty.UNKNOWN, detail


def _violated(detail: str) -> Objection:
    return Certainty.VIOLATED, detail


def _finding(
    rule: Rule, subject: SubjectKind, name: str, objection: Objection, behind: Sequence[Case]
) -> GateFinding:
    """`behind` are the cases whose edits, all of them accepted, would settle it."""
    certainty, detail = objection
    return GateFinding(
        subject=subject,
        name=name,
        certainty=certainty,
        action=rule.action if certainty is Certainty.VIOLATED else rule.unknown_action,
        detail=detail,
        groups=tuple(sorted({case.group for case in behind if case.group})),
        edits={case.id: case.edit for case in behind},
        not_accepted="",
        settled_by=None,
    )


# rules that look at one case at a time


def _of_cases(
    rule: Rule, cases: Iterable[Case], run: Run, timings: Mapping[str, Sequence[TimedCase]]
) -> Iterator[GateFinding]:
    for case in cases:
        objection = _objection(rule, case, run, timings[case.id])
        if objection:
            yield _finding(rule, SubjectKind.CASE, case.id, objection, (case,) if case.group else ())


def _objection(  # noqa: PLR0911 - one line a kind
    rule: Rule, case: Case, run: Run, timings: Sequence[TimedCase]
) -> Objection | None:
    match rule:
        case policy.VerdictRule():
            return _verdict(rule, case, run)
        case policy.NondeterministicRule():
            return _nondeterministic(case, run)
        case policy.FactRule() if case.verdict is Verdict.ADDED:
            return _facts_alone(rule, case, run)
        case policy.FitsRule() if case.verdict in (Verdict.ADDED, Verdict.CHANGED):
            return _fits(case)
        case _ if case.verdict is not Verdict.CHANGED:
            return None
        case policy.FactRule():
            return _facts(rule, case)
        case policy.SlowerRule():
            return _slower(rule.percent, timings)
        case policy.CostRule():
            return _cost(rule, case, timings)
        case policy.TimedRule():
            return _timed(timings)
        case policy.WrongResultRule():
            return _result(timings)
        case policy.MeaningRule():
            return _meaning(rule, case)
        case _:
            raise AssertionError(rule.kind)


def _verdict(rule: policy.VerdictRule, case: Case, run: Run) -> Objection | None:
    if case.verdict not in rule.verdicts:
        return None
    launch = run.launches.get(case.launches.head or "")
    if case.verdict is Verdict.FAILING and launch is not None and not launch.expected:
        return None  # the workload itself says that it does not compile for this target
    where = f", first in {case.origin.stage}" if case.origin else ""
    return _violated(f"{case.verdict}{where}" + (f": {case.error}" if case.error else ""))


def _facts(rule: policy.FactRule, case: Case) -> Objection | None:
    known = False
    denied: list[str] = []
    if uncounted := _uncounted(rule, case):
        return uncounted
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
        if beyond and row.is_denied(before, after):
            denied.append(f"{row.name} {before:g} → {after:g}")
    if denied:
        return _violated(", ".join(denied))
    if known or _same_code(case):
        return None
    return _unknown(f"neither side has {' or '.join(rule.facts)}")


def _uncounted(rule: policy.FactRule, case: Case) -> Objection | None:
    """A counted figure that the case does not have is not known, whatever other figures the rule names."""
    for name in rule.facts:
        rows = [row for row in statistics.STATISTICS if name in (row.name, *row.facts)]
        is_counted = bool(rows) and all(row.resource is Resource.WORK for row in rows)
        if is_counted and not _same_code(case) and all(row.of(case.facts.head) is None for row in rows):
            reasons = [side.reason for side in case.work if isinstance(side, NotCountedWork)]
            return _unknown(f"{name} is not known: {reasons[0] if reasons else 'data decide it'}")
    return None


def _facts_alone(rule: policy.FactRule, case: Case, run: Run) -> Objection | None:
    """Of a new case: what it has of what no kernel should have, or more than its target has."""
    target = next(target for target in run.targets if target.name == case.target)
    denied = []
    for row in (row for name in rule.facts for row in statistics.named(name)):
        most, found = statistics.bound_alone(row.name, target.facts), row.of(case.facts.head)
        if found is not None and most is not None and found > most + (0 if most else rule.more_than):
            denied.append(f"{row.name} {found:g}" + (f", and the target has {most:g}" if most else ""))
    return _violated(f"new: {', '.join(denied)}") if denied else None


def _fits(case: Case) -> Objection | None:
    blocks = statistics.blocks(case.facts.head)
    if blocks is None:
        return None if _same_code(case) else _unknown("its resources, or the target's limits, are not known")
    if blocks or statistics.blocks(case.facts.base) == 0:
        return None
    needed = case.facts.head.get("occupancy_limit", "a resource")
    return _violated(f"no block of it fits: it needs more {needed} than the target has")


def _same_code(case: Case) -> bool:
    """Whether both sides have the same code: a case may have changed only in what its launch passes."""
    statuses = [case.stages[name] for name in MACHINE_CODE if name in case.stages]
    return bool(statuses) and all(s in {StageStatus.IDENTICAL, StageStatus.EQUIVALENT} for s in statuses)


def _cost(rule: policy.CostRule, case: Case, timings: Sequence[TimedCase]) -> Objection | None:
    if timings:
        return _slower(rule.percent, timings)
    expected = case.expected
    if expected is None:
        return _unknown("changed, not timed, and nothing is expected of its time")
    words = f"not timed; {expected.expected}: {expected.why}"
    match expected.expected:
        case Expected.NO_CHANGE:
            return None
        case Expected.SLOWER:
            return _violated(words)
        case Expected.FASTER | Expected.UNKNOWN:
            return _unknown(words)


def _slower(percent: float, timings: Sequence[TimedCase]) -> Objection | None:
    if not timings:
        return _unknown("changed and not timed")
    for timed in timings:
        reliable = timed.enough or timed.speed is Speed.SLOWER
        beyond = max(percent, timed.noise_percent)
        if reliable and timed.low_percent is not None and timed.low_percent > beyond:
            return _violated(timed.interval)
    for timed in timings:
        if timed.faulted:
            return _unknown(timed.fault)
        if timed.low_percent is None or timed.high_percent is None:
            return _unknown(f"not measured on {timed.device}: {timed.reason}")
        if timed.speed in (Speed.SLOWER, Speed.FASTER):
            continue
        if not timed.enough or timed.high_percent > percent:
            reason = f": {timed.note}" if timed.speed is Speed.UNCLEAR and timed.note else ""
            return _unknown(f"measured too roughly to say: {timed.interval}{reason}")
    return None


def _timed(timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        if timed.faulted:
            return _violated(timed.fault)
    if any(timed.low_percent is not None for timed in timings):
        return None
    if not timings:
        return _violated("changed and not timed")
    return _violated(f"could not be timed on {timings[0].device}: {timings[0].reason}")


def _result(timings: Sequence[TimedCase]) -> Objection | None:
    for timed in timings:
        if timed.faulted and timed.same_result is False:
            return _violated(timed.fault)
        if timed.same_result is False:
            return _violated(f"base and head compute different results on {timed.device}: {timed.note}")
    if not timings:
        return _unknown("changed and not run")
    for timed in timings:
        if timed.faulted:
            return _unknown(timed.fault)
        if timed.same_result is None:
            return _unknown(f"outputs were not compared on {timed.device}: {timed.reason}")
    return None


def _nondeterministic(case: Case, run: Run) -> Objection | None:
    if "head" not in case.nondeterministic:  # where base alone disagrees with itself, head has mended it
        unknown = case.verdict is Verdict.CHANGED and not run.options.recheck
        return _unknown("was not compiled again: --no-recheck") if unknown else None
    return _violated(f"disagrees with itself when compiled again: {', '.join(case.nondeterministic)}")


_REASONS = 3


def _meaning(rule: policy.MeaningRule, case: Case) -> Objection | None:
    if case.summary is None:
        return _unknown("changed, and what that means for its results is not known")
    effects = case.summary.effects
    meaning = effects.kind if effects else Meaning.NOT_SHOWN
    if meaning not in rule.meanings:
        return None
    return _violated(f"{meaning}: {'; '.join(case.summary.reasons[:_REASONS])}")


# rules that look at one target at a time


def _by_target(cases: Sequence[Case]) -> dict[str, list[Case]]:
    rows: dict[str, list[Case]] = {}
    for case in cases:
        rows.setdefault(case.target, []).append(case)
    return rows


def _radius(rule: policy.RadiusRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
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


def _compile_time(rule: policy.CompileTimeRule, selected: Sequence[Case]) -> Iterator[GateFinding]:
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


def _reach(rule: policy.ReachRule, run: Run) -> Iterator[GateFinding]:
    for file in run.reach.files if run.reach else ():
        if file.not_run:
            words = f"new or changed, and ran in no launch: {', '.join(file.not_run)}"
            yield _finding(rule, SubjectKind.FILE, file.path, _violated(words), ())
    for path in edit_coverage.none_read(run):
        if not path.endswith(".py"):  # one without kernels: a test, a script
            words = "no launch reads it, nor any other file that changed"
            yield _finding(rule, SubjectKind.FILE, path, _unknown(words), ())


def _least(rule: policy.CoverageRule, cases: Sequence[Case], run: Run) -> int:
    """How many cases must have been compared: of a small corpus at least one, and the share says the rest.

    A corpus is small where all of it was looked at, and no workload failed that may hide more launches. What
    is new has nothing to be compared with.
    """
    hiding = any(case.verdict is Verdict.FAILING and not any(case.launches) for case in cases)
    old = sum(case.verdict is not Verdict.ADDED for case in cases)
    is_small = rule.or_whole and is_whole(run) and old < rule.min_compared and not hiding
    return 1 if is_small else rule.min_compared


def _coverage(rule: policy.CoverageRule, selected: Sequence[Case], run: Run) -> Iterator[GateFinding]:
    present = _by_target(selected)
    names = dict.fromkeys([*rule.required_targets, *(target.name for target in run.targets)])
    for target in names:
        cases = present.get(target, [])
        blind = sum(map(not_compared, cases))
        compared = sum(case.verdict in COMPARED_VERDICTS for case in cases) - blind
        failed = sum(case.verdict in _UNCOMPARED for case in cases) + blind
        least = _least(rule, cases, run)
        if target in rule.required_targets and compared < least:
            detail = f"{compared} cases compared, at least {least} are required"
            yield _finding(rule, SubjectKind.TARGET, target, _violated(detail), ())
        elif 100 * failed > rule.max_uncompared_percent * len(cases):
            detail = f"{failed} of {len(cases)} cases could not be compared"
            yield _finding(rule, SubjectKind.TARGET, target, _violated(detail), ())
