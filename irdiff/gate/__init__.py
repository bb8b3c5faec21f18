"""The gate: a policy over a run, to pass or fail with reasons. Missing data never passes silently."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from irdiff.gate import rules
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Outcome, RuleOutcome
from irdiff.gate.policy import Policy
from irdiff.gate.settling import Settler
from irdiff.gate.timings import TimedCase
from irdiff.model import Run
from irdiff.report import edit_coverage, group_names
from irdiff.report.phrases import side

__all__ = ["Outcome", "Policy", "evaluate"]

MAX_NOTES = 50


def evaluate(
    run: Run,
    policy: Policy,
    *,
    timings: Sequence[TimedCase] = (),
    notes: Sequence[str] = (),
    accepted: Sequence[Accepted] = (),
    today: datetime.date,
) -> Outcome:
    """Every rule of the policy over the run. Passes only where no blocking finding is left unsettled.

    A run without cases does not pass, unless there is nothing to compare: one compiler on both sides.
    """
    evidence = rules.Evidence(
        run=run,
        groups={group.id: group for group in run.groups},
        timings=_by_case(run, timings),
    )
    settle = Settler(run, policy.waiver, accepted, today)
    outcomes = []
    for rule in policy.rule:
        examined, found = rules.findings(rule, evidence)
        settled = tuple(settle(rule, finding) for finding in found)
        outcomes.append(RuleOutcome(rule=rule, examined=examined, findings=settled))
    return Outcome(
        passed=bool(run.cases or edit_coverage.same_compiler(run))
        and all(outcome.holds for outcome in outcomes),
        base=side(run.base),
        head=side(run.head),
        timed_on=tuple(sorted({timed.device for timed in timings})),
        rules=tuple(outcomes),
        expired=tuple(settle.expired),
        group_names={row.group.id: row.short for row in group_names.named(run)},
        notes=(*_same(run), *[*run.notes, *notes][:MAX_NOTES], *_unread(run, timings), *settle.unused()),
    )


def _same(run: Run) -> list[str]:
    return [edit_coverage.identical(run.edited)] if run.edited and edit_coverage.same_compiler(run) else []


def _by_case(run: Run, timings: Sequence[TimedCase]) -> dict[str, list[TimedCase]]:
    known = {case.id for case in run.cases}
    rows: dict[str, list[TimedCase]] = {}
    for timed in timings:
        if timed.case in known:
            rows.setdefault(timed.case, []).append(timed)
    return rows


def _unread(run: Run, timings: Sequence[TimedCase]) -> list[str]:
    known = {case.id for case in run.cases}
    strangers = sum(timed.case not in known for timed in timings)
    return [f"{strangers} timings are of cases that this run does not have"] if strangers else []
