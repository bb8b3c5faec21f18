"""Decides which findings the acceptance file settles, in one run, on one day.

Each change behind a finding must have been accepted: the same case with the same digest of its change,
between the same two toolchains, on a day up to the last one. None of these may differ, because:
- the digest pins constants, types, positions and machine code, so the code that runs is the reviewed code;
- what it does not pin (the launcher, the assembler behind code that is the same on both sides) is part of the
toolchains, whose digests must therefore be those of the reviewed run. A rebase changes them; `--renew` then
accepts the same changes again in one command;
- an acceptance without an end would be forgotten and stay for ever.

A rule with action `deny` is settled only by entries that name it. What a GPU measured after the change was
accepted is settled by none of the entries before: who read the code has not seen it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import replace

from irdiff import case_ids
from irdiff.gate.acceptance import Accepted
from irdiff.gate.objections import Certainty
from irdiff.gate.outcome import GateFinding, SubjectKind
from irdiff.gate.policy import Action, Rule, matches
from irdiff.model import Case, Run
from irdiff.words import counted


class Settler:
    def __init__(self, run: Run, accepted: Sequence[Accepted], today: datetime.date) -> None:
        self._run = run
        self._today = today
        self._by_subject = [entry for entry in accepted if not entry.changes]
        self._by_change = [entry for entry in accepted if entry.changes]
        self._used: set[int] = set()
        self._ended: set[int] = set()
        """Places in `_by_subject` of entries that would have settled a finding if they had not ended."""
        self._cases = {case.id: case for case in run.cases}
        self._patterns = [case_ids.literally(entry.cases, self._cases) for entry in self._by_subject]
        self._files = frozenset(file.path for file in run.reach.files) if run.reach else frozenset()

    def settle(self, rule: Rule, finding: GateFinding) -> GateFinding:
        if finding.settled_by is not None:
            return finding
        for place, entry in enumerate(self._by_subject):
            if entry.rule == rule.id and self._covers(place, finding):
                if entry.expires >= self._today:
                    self._used.add(place)
                    return replace(finding, settled_by=(entry,))
                self._ended.add(place)
        return self._accept(rule, finding) if finding.changes else finding

    def _covers(self, place: int, finding: GateFinding) -> bool:
        entry = self._by_subject[place]
        match finding.subject:
            case SubjectKind.CASE:
                target = finding.name.rpartition("@")[2]
                return (
                    bool(entry.cases)
                    and case_ids.selects(self._patterns[place], finding.name)
                    and (not entry.targets or matches(entry.targets, target))
                )
            case SubjectKind.TARGET:
                return not entry.cases and matches(entry.targets, finding.name)
            case SubjectKind.FILE:
                return not entry.cases and self._is_file_of(entry, finding.name)
            case SubjectKind.NOTE:
                return finding.name in entry.notes or matches(entry.notes, finding.name)
            case SubjectKind.RUN:
                return False

    def _is_file_of(self, entry: Accepted, path: str) -> bool:
        """Matches the file's own name, or a glob that is no file's own name."""
        globs = tuple(name for name in entry.files if name not in self._files)
        return path in entry.files or matches(globs, path)

    def notes(self) -> list[str]:
        notes = []
        for place, entry in enumerate(self._by_subject):
            named = f"the acceptance of {entry.rule} by {entry.owner}"
            if place in self._ended:
                notes.append(f"{named} ended on {entry.expires} ({entry.issue})")
            elif place not in self._used:
                notes.append(f"{named} settles nothing in this run")
        return notes

    def _accept(self, rule: Rule, finding: GateFinding) -> GateFinding:
        can_be_reviewed = rule.action is Action.REVIEW and finding.certainty is Certainty.VIOLATED
        fitting = [
            entry
            for entry in self._by_change
            if entry.rule == rule.id or (not entry.rule and can_be_reviewed)
        ]
        if finding.is_measured:
            seen = [entry for entry in fitting if entry.rule or entry.has_seen(rule.id, finding.name)]
            if fitting and not seen:
                before = any(finding.changes.items() <= entry.changes.items() for entry in fitting)
                why = "the change was accepted before this was measured" if before else ""
                return replace(finding, not_accepted=why)
            fitting = seen
        if not fitting:
            return finding
        answers = [self._answer(self._cases[case_id], fitting) for case_id in finding.changes]
        holding = [answer for answer in answers if isinstance(answer, Accepted)]
        if len(holding) == len(answers):
            unique = [entry for number, entry in enumerate(holding) if entry not in holding[:number]]
            return replace(finding, settled_by=tuple(unique))
        reasons = [answer for answer in answers if isinstance(answer, str) and answer]
        partly = f"accepted for {len(holding)} of {counted(len(answers), 'case')}" if holding else ""
        return replace(finding, not_accepted=reasons[0] if reasons else partly)

    def _answer(self, case: Case, fitting: Sequence[Accepted]) -> Accepted | str:
        """Returns the entry that accepts the change of a case, or why no similar entry does."""
        entries = [entry for entry in fitting if case.id in entry.changes]
        same = [entry for entry in entries if entry.changes[case.id] == case.edit]
        here = [entry for entry in same if entry.is_of_toolchains(self._run)]
        holding = [entry for entry in here if entry.expires >= self._today]
        if holding:
            return holding[-1]
        if here:
            last = max(here, key=lambda entry: entry.expires)
            return f"the acceptance of {case.id} by {last.owner} ended on {last.expires}"
        if same:
            sides = f"{same[-1].base_toolchain[:12]} → {same[-1].head_toolchain[:12]}"
            why = (
                f"{same[-1].owner} accepted the same change of {case.id} between other toolchains ({sides}): "
            )
            return f"{why}--renew takes it again"
        if entries:
            return self._another_change(case, entries[-1])
        return self._new_in_group(case.group, fitting) if case.group else ""

    def _another_change(self, case: Case, entry: Accepted) -> str:
        versions = entry.normalizer, self._run.normalizer_version
        read = f" (read by other rules, {versions[0]} → {versions[1]})" if versions[0] != versions[1] else ""
        return (
            f"{case.id} changes in another way than {entry.owner} accepted on {entry.on}: "
            f"{entry.changes[case.id][:12]} then, {(case.edit or 'none')[:12]} now{read}"
        )

    def _new_in_group(self, group: str, fitting: Sequence[Accepted]) -> str:
        of_group = [entry for entry in fitting if entry.group == group]
        if not of_group:
            return ""
        members = [case.id for case in self._cases.values() if case.group == group]
        before = {case_id for entry in fitting for case_id in entry.changes}
        new = sum(member not in before for member in members)
        count = len(members) - new or len(of_group[-1].changes)
        return f"accepted for {counted(count, 'case')}; {new} more changed the same way since"
