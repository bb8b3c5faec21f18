"""The gate: a policy over a run, to pass or fail with reasons. Missing data never passes silently. Pure.

A finding no longer blocks where a waiver settles it, or where each edit behind it was accepted: the same case
with the same digest of its edit, between the same two toolchains, on a day up to the last one. Why none of it
may differ:

- the digest pins constants, types, positions and machine code, so the code that runs is the reviewed code;
- what it does not pin (the launcher, the assembler behind code that is the same on both sides) is part of
  the toolchains, whose digests must therefore be those of the run in which it was looked at. A rebase makes
  others; `--renew` then takes the same edits again in one command;
- an acceptance without an end would be forgotten and stay for ever.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from irdiff import case_ids
from irdiff.gate import rules
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome, SubjectKind, count_cases
from irdiff.gate.policy import Policy, Rule, Waiver, matches
from irdiff.gate.timings import TimedCase
from irdiff.model import Case, Run
from irdiff.report import edit_coverage, group_names
from irdiff.report.phrases import side
from irdiff.words import counted

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

    A run in which nothing was compared does not pass, unless there is nothing to compare: one compiler on
    both sides.
    """
    of_case: dict[str, list[TimedCase]] = {case.id: [] for case in run.cases}
    unread: list[TimedCase] = []
    for timed in timings:
        of_case.get(timed.case, unread).append(timed)
    settler = Settler(run, policy.waiver, accepted, today)
    outcomes = []
    for rule in policy.rule:
        examined, found = rules.findings(rule, run, of_case)
        settled = tuple(settler.settle(rule, finding) for finding in found)
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
        group_names={row.group.id: row.short for row in group_names.named(run)},
        notes=(
            *([] if timings else ["no timings: rules that need them could not be decided"]),
            *([edit_coverage.identical(run.edited)] if run.edited and is_same else []),
            *[*run.notes, *notes][:MAX_NOTES],
            *([f"{len(unread)} timings are of cases that this run does not have"] if unread else []),
            *settler.notes(),
        ),
    )


class Settler:
    """The waivers and acceptances, as they apply to one run on one day."""

    def __init__(
        self, run: Run, waivers: Sequence[Waiver], accepted: Sequence[Accepted], today: datetime.date
    ) -> None:
        self._run = run
        self._waivers = waivers
        self._today = today
        self._used: dict[Waiver, None] = {}
        self._expired: dict[Waiver, None] = {}
        """Those that would have settled a finding if they had not expired."""
        self._cases = {case.id: case for case in run.cases}
        self._patterns = {row: case_ids.literally(row.cases, self._cases) for row in waivers}
        self._files = frozenset(file.path for file in run.reach.files) if run.reach else frozenset()
        self._groups = {entry.group: entry for entry in accepted}
        self._of_case: dict[str, list[Accepted]] = {}
        for entry in accepted:
            for case_id in entry.edits:
                self._of_case.setdefault(case_id, []).append(entry)

    def settle(self, rule: Rule, finding: GateFinding) -> GateFinding:
        for waiver in self._waivers:
            if waiver.rule == rule.id and self._covers(waiver, finding):
                if waiver.expires >= self._today:
                    self._used[waiver] = None
                    return replace(finding, settled_by=waiver)
                self._expired[waiver] = None
        if rule.can_be_accepted and finding.certainty is Certainty.VIOLATED and finding.edits:
            return self._accept(finding)
        return finding

    def _covers(self, waiver: Waiver, finding: GateFinding) -> bool:
        match finding.subject:
            case SubjectKind.CASE:
                target = finding.name.rpartition("@")[2]
                return (
                    bool(waiver.cases or waiver.edits)
                    and (not waiver.cases or case_ids.selects(self._patterns[waiver], finding.name))
                    and (not waiver.edits or finding.edits.get(finding.name) in waiver.edits)
                    and (not waiver.targets or matches(waiver.targets, target))
                )
            case SubjectKind.TARGET:
                return not waiver.cases and not waiver.edits and matches(waiver.targets, finding.name)
            case SubjectKind.FILE:
                return not waiver.cases and not waiver.edits and self._means_file(waiver, finding.name)
            case SubjectKind.RUN:
                return False

    def _means_file(self, waiver: Waiver, path: str) -> bool:
        """By its own name, or by a glob that is no file's own name."""
        globs = tuple(name for name in waiver.files if name not in self._files)
        return path in waiver.files or matches(globs, path)

    def notes(self) -> list[str]:
        unused = [row for row in self._waivers if row not in self._used and row not in self._expired]
        return [
            *(f"the waiver of {row.rule} by {row.owner} settles nothing in this run" for row in unused),
            *(
                f"the waiver of {row.rule} by {row.owner} ended on {row.expires} ({row.issue})"
                for row in self._expired
            ),
        ]

    def _accept(self, finding: GateFinding) -> GateFinding:
        answers = [self._answer(self._cases[case_id]) for case_id in finding.edits]
        held = [answer for answer in answers if isinstance(answer, Accepted)]
        if len(held) == len(answers):
            unique = [entry for number, entry in enumerate(held) if entry not in held[:number]]
            return replace(finding, settled_by=tuple(unique))
        reasons = [answer for answer in answers if isinstance(answer, str) and answer]
        partly = f"accepted for {len(held)} of {len(answers)} cases" if held else ""
        return replace(finding, not_accepted=reasons[0] if reasons else partly)

    def _answer(self, case: Case) -> Accepted | str:
        """What accepts the edit of a case, or why nothing does, as far as something like it was accepted."""
        entries = self._of_case.get(case.id, [])
        same = [entry for entry in entries if entry.edits[case.id] == case.edit]
        here = [entry for entry in same if entry.is_of_toolchains(self._run)]
        held = [entry for entry in here if entry.expires >= self._today]
        if held:
            return held[-1]
        if here:
            last = max(here, key=lambda entry: entry.expires)
            return f"the acceptance of {case.id} by {last.owner} ended on {last.expires}"
        if same:
            sides = f"{same[-1].base_toolchain[:12]} → {same[-1].head_toolchain[:12]}"
            why = f"{same[-1].owner} accepted the same edit of {case.id} between other toolchains ({sides}): "
            return f"{why}--renew takes it again"
        if entries:
            return self._another_edit(case, entries[-1])
        return self._new_in_group(case.group) if case.group in self._groups else ""

    def _another_edit(self, case: Case, entry: Accepted) -> str:
        rules = entry.normalizer, self._run.normalizer_version
        read = f" (read by other rules, {rules[0]} → {rules[1]})" if rules[0] != rules[1] else ""
        return (
            f"the edit is another: {entry.owner} accepted {entry.edits[case.id][:12]} of {case.id} "
            f"on {entry.on}, this run has {(case.edit or 'none')[:12]}{read}"
        )

    def _new_in_group(self, group: str) -> str:
        members = [case.id for case in self._cases.values() if case.group == group]
        new = sum(member not in self._of_case for member in members)
        known = len(members) - new or len(self._groups[group].edits)
        return f"accepted for {counted(known, 'case')}; {new} more changed the same way since"
