"""Rules on facts of the code: figures of its binary, counted figures, whether it fits, and how it was
compiled.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends.stages import MACHINE_CODE
from irdiff.backends.statistic import Resource, Statistic
from irdiff.compare import statistics
from irdiff.counted_work import NotCountedWork
from irdiff.findings import FindingKind
from irdiff.gate.objections import Objection, unknown, violated, worst
from irdiff.gate.policy import DETERMINISTIC, FITS, MORE_FACTS, FactRule
from irdiff.model import Case, Run, StageStatus, Verdict
from irdiff.report import error_clusters
from irdiff.words import counted


def objection(rule: FactRule, case: Case, run: Run) -> Objection | None:
    """Covers one case, except for compile time."""
    names = tuple(name for name in rule.facts if name not in MORE_FACTS)
    objections = [_nondeterministic(case, run)] if DETERMINISTIC in rule.facts else []
    if case.verdict in (Verdict.ADDED, Verdict.CHANGED) and FITS in rule.facts:
        objections.append(_fits(case))
    if names and case.verdict is Verdict.ADDED:
        objections.append(_alone(rule, names, case, run))
    if names and case.verdict is Verdict.CHANGED:
        objections.append(_moved(rule, names, case))
    return worst(objections)


def _statistics(names: Sequence[str]) -> Iterator[Statistic]:
    for name in names:
        yield from statistics.named(name)


def _moved(rule: FactRule, names: Sequence[str], case: Case) -> Objection | None:
    has_any = False
    denied: list[str] = []
    if uncounted := _uncounted(names, case):
        return uncounted
    for statistic in _statistics(names):
        before, after = statistic.of(case.facts.base), statistic.of(case.facts.head)
        if before is None and after is None:
            continue
        if before is None or after is None:
            side = "head" if before is None else "base"
            return unknown(f"{statistic.name} is known at {side} only")
        has_any = True
        by = abs(after - before)
        beyond = by > rule.more_than and by > abs(before) * rule.more_than_percent / 100
        if beyond and statistic.is_denied(before, after):
            denied.append(f"{statistic.name} {before:g} → {after:g}")
    if denied:
        return violated(", ".join(denied))
    if has_any or _same_code(case):
        return None
    return unknown(f"neither side has {' or '.join(names)}")


def _uncounted(names: Sequence[str], case: Case) -> Objection | None:
    """Reports a counted figure that the case lacks as unknown, whatever other figures the rule names."""
    for name in names:
        named = [each for each in statistics.STATISTICS if name in (each.name, *each.facts)]
        is_counted = bool(named) and all(each.resource is Resource.WORK for each in named)
        if is_counted and not _same_code(case) and all(each.of(case.facts.head) is None for each in named):
            reasons = [side.reason for side in case.work if isinstance(side, NotCountedWork)]
            return unknown(f"{name} is not known: {reasons[0] if reasons else 'data decide it'}")
    return None


def _alone(rule: FactRule, names: Sequence[str], case: Case, run: Run) -> Objection | None:
    """A new case may not exceed what a kernel should have, or what its target has."""
    target = next(target for target in run.targets if target.name == case.target)
    denied = []
    for statistic in _statistics(names):
        most, value = statistics.bound_alone(statistic.name, target.facts), statistic.of(case.facts.head)
        if value is not None and most is not None and value > most + (0 if most else rule.more_than):
            denied.append(f"{statistic.name} {value:g}" + (f", and the target has {most:g}" if most else ""))
    return violated(f"new: {', '.join(denied)}") if denied else None


def _fits(case: Case) -> Objection | None:
    blocks = statistics.blocks(case.facts.head)
    if blocks is None:
        return None if _same_code(case) else unknown("its resources, or the target's limits, are not known")
    if blocks or statistics.blocks(case.facts.base) == 0:
        return None
    needed = case.facts.head.get("occupancy_limit", "a resource")
    return violated(f"no block of it fits: it needs more {needed} than the target has")


def _same_code(case: Case) -> bool:
    """The case may have changed only in what its launch passes."""
    statuses = [case.stages[name] for name in MACHINE_CODE if name in case.stages]
    return bool(statuses) and all(s in {StageStatus.IDENTICAL, StageStatus.EQUIVALENT} for s in statuses)


def _nondeterministic(case: Case, run: Run) -> Objection | None:
    if "head" not in case.nondeterministic:  # where base alone disagrees with itself, head has mended it
        if case.verdict is Verdict.CHANGED and not run.options.recheck:
            return unknown("was not compiled again: --no-recheck")
        is_open = "head" in case.not_recompiled
        return unknown("compiled again, head gave no answer within its time and memory") if is_open else None
    return violated(f"compiled again: {error_clusters.unstable_words(case)}")


def compile_time(rule: FactRule, cases: Sequence[Case]) -> Objection | None:
    """Covers the cases of one target."""
    compiled = [case for case in cases if case.compile_s.base and case.compile_s.head]
    before = sum(_shared_s(case.compile_s.base, case.compile_s.head) for case in compiled)
    after = sum(_shared_s(case.compile_s.head, case.compile_s.base) for case in compiled)
    skipped = [c for c in cases if any(f.kind is FindingKind.NOT_COMPILED for f in c.findings)]
    if not compiled and len(skipped) < len(cases):
        return unknown("no compile times on both sides")
    if after - before > rule.more_than and after - before > before * rule.more_than_percent / 100:
        return violated(f"compiling {counted(len(compiled), 'case')} takes {before:.1f} s → {after:.1f} s")
    return None


def _shared_s(times: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Counts stages that both sides ran: if one side stopped early, the rest means nothing."""
    return sum(seconds for stage, seconds in times.items() if stage in other)
