"""The gate: a policy over a run, to pass or fail with reasons. Missing data never passes silently."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from irdiff.gate import rules
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Certainty, Finding, Outcome, RuleOutcome, Subject
from irdiff.gate.policy import Policy, Rule, Waiver, matches
from irdiff.gate.timings import Timed
from irdiff.model import Run

__all__ = ["Outcome", "Policy", "Timed", "evaluate"]

MAX_NOTES = 50


def evaluate(
    run: Run,
    policy: Policy,
    *,
    timings: Sequence[Timed] = (),
    notes: Sequence[str] = (),
    accepted: Sequence[Accepted] = (),
    today: datetime.date,
) -> Outcome:
    """Every rule of the policy over the run. Passes only where no blocking finding is left unsettled."""
    evidence = rules.Evidence(
        run=run,
        groups={group.id: group for group in run.groups},
        timings=_by_case(run, timings),
    )
    settle = _Settler(policy.waiver, accepted, today)
    outcomes = []
    for rule in policy.rule:
        examined, found = rules.findings(rule, evidence)
        settled = tuple(settle(rule, finding) for finding in found)
        outcomes.append(RuleOutcome(rule=rule, examined=examined, findings=settled))
    return Outcome(
        passed=bool(run.cases) and all(outcome.holds for outcome in outcomes),
        base=run.base.spec,
        head=run.head.spec,
        timed_on=tuple(sorted({timed.device for timed in timings})),
        rules=tuple(outcomes),
        expired=tuple(settle.expired),
        notes=(*[*run.notes, *notes][:MAX_NOTES], *_unread(run, timings), *settle.unused()),
    )


def _by_case(run: Run, timings: Sequence[Timed]) -> dict[str, list[Timed]]:
    known = {case.id for case in run.cases}
    rows: dict[str, list[Timed]] = {}
    for timed in timings:
        if timed.case in known:
            rows.setdefault(timed.case, []).append(timed)
    return rows


def _unread(run: Run, timings: Sequence[Timed]) -> list[str]:
    known = {case.id for case in run.cases}
    strangers = sum(timed.case not in known for timed in timings)
    return [f"{strangers} timings are of cases that this run does not have"] if strangers else []


class _Settler:
    """Applies waivers and acceptances, and remembers which were of use."""

    def __init__(self, waivers: Sequence[Waiver], accepted: Sequence[Accepted], today: datetime.date) -> None:
        self.waivers = waivers
        self.accepted = {entry.group: entry for entry in accepted}
        self.today = today
        self.used: list[Waiver] = []
        self.expired: list[Waiver] = []

    def __call__(self, rule: Rule, finding: Finding) -> Finding:
        for waiver in self.waivers:
            if waiver.rule == rule.id and _covers(waiver, finding):
                if waiver.expires >= self.today:
                    self._remember(self.used, waiver)
                    return replace(finding, settled_by=waiver)
                self._remember(self.expired, waiver)
        if rule.can_be_accepted and finding.certainty is Certainty.VIOLATED and finding.groups:
            entries = [self.accepted.get(group) for group in finding.groups]
            if all(entries):
                return replace(finding, settled_by=tuple(entry for entry in entries if entry))
        return finding

    def unused(self) -> list[str]:
        return [
            f"the waiver of {waiver.rule} by {waiver.owner} settles nothing in this run"
            for waiver in self.waivers
            if waiver not in self.used and waiver not in self.expired
        ]

    @staticmethod
    def _remember(rows: list[Waiver], waiver: Waiver) -> None:
        if waiver not in rows:
            rows.append(waiver)


def _covers(waiver: Waiver, finding: Finding) -> bool:
    match finding.subject:
        case Subject.CASE:
            target = finding.name.rpartition("@")[2]
            named = matches(waiver.cases, finding.name) or bool({*waiver.groups} & {*finding.groups})
            return named and (not waiver.targets or matches(waiver.targets, target))
        case Subject.TARGET:
            return not waiver.cases and not waiver.groups and matches(waiver.targets, finding.name)
        case Subject.RUN:
            return False
