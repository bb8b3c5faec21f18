"""The gate applies a policy to a run. It passes or fails with reasons, and missing data never passes
silently.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence

from irdiff.gate import rules
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Outcome, RuleOutcome, count_cases
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
    """Passes only if every blocking finding is settled. A run in which nothing was compared does not pass,
    unless one compiler is on both sides.
    """
    of_case: dict[str, list[TimedCase]] = {case.id: [] for case in run.cases}
    unread: list[TimedCase] = []
    for timed in timings:
        of_case.get(timed.case, unread).append(timed)
    settler = Settler(run, accepted, today)
    outcomes = []
    for rule in policy.rule:
        examined, findings = rules.findings(rule, run, of_case)
        settled = tuple(settler.settle(rule, finding) for finding in findings)
        outcomes.append(RuleOutcome(rule=rule, examined=examined, findings=settled))
    counts = count_cases(run)
    is_same = edit_coverage.same_compiler(run)
    return Outcome(
        passed=bool(counts.compared or is_same) and all(outcome.holds for outcome in outcomes),
        base=side(run.base),
        head=side(run.head),
        counts=counts,
        timed_on=tuple(sorted({timed.device for timed in timings})),
        rules=tuple(outcomes),
        group_names={group.group.id: group.short for group in group_names.named(run)},
        notes=(
            *([] if timings else ["no timings: rules about measured times or outputs could not be decided"]),
            *([edit_coverage.identical(run.edited)] if run.edited and is_same else []),
            *[*run.notes, *notes][:MAX_NOTES],
            *([f"{len(unread)} timings are of cases that this run does not have"] if unread else []),
            *settler.notes(),
        ),
    )
