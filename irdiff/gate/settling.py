"""Which findings are settled: waived, or accepted as the very edits that they are. Pure.

An acceptance settles a finding where each edit behind it was accepted: the same case with the same digest of
its edit, between the same two toolchains, on a day up to the last one. Why none of it may differ:

- the digest pins constants, types, positions and machine code, so that what runs is what was looked at;
- what it does not pin (the launcher, the assembler behind code that is the same on both sides) is part of
  the toolchains, whose digests must therefore be those of the run in which it was looked at. A rebase makes
  others; `--renew` then takes the same edits again in one command;
- what was accepted without an end is forgotten, and stays.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from irdiff import case_ids
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Certainty, GateFinding, SubjectKind
from irdiff.gate.policy import Rule, Waiver, matches
from irdiff.model import Run
from irdiff.words import counted


class Settler:
    """Applies waivers and acceptances, and remembers which were of use."""

    def __init__(
        self, run: Run, waivers: Sequence[Waiver], accepted: Sequence[Accepted], today: datetime.date
    ) -> None:
        self.waivers = waivers
        self.accepted = _Acceptances(run, accepted, today)
        self.today = today
        self.used: list[Waiver] = []
        self.expired: list[Waiver] = []

    def __call__(self, rule: Rule, finding: GateFinding) -> GateFinding:
        for waiver in self.waivers:
            if waiver.rule == rule.id and _covers(waiver, finding):
                if waiver.expires >= self.today:
                    _remember(self.used, waiver)
                    return replace(finding, settled_by=waiver)
                _remember(self.expired, waiver)
        if rule.can_be_accepted and finding.certainty is Certainty.VIOLATED and finding.edits:
            return self.accepted.settle(finding)
        return finding

    def unused(self) -> list[str]:
        return [
            f"the waiver of {waiver.rule} by {waiver.owner} settles nothing in this run"
            for waiver in self.waivers
            if waiver not in self.used and waiver not in self.expired
        ]


def _covers(waiver: Waiver, finding: GateFinding) -> bool:
    match finding.subject:
        case SubjectKind.CASE:
            target = finding.name.rpartition("@")[2]
            return (
                bool(waiver.cases or waiver.edits)
                and (not waiver.cases or case_ids.selects(waiver.cases, finding.name))
                and (not waiver.edits or finding.edits.get(finding.name) in waiver.edits)
                and (not waiver.targets or matches(waiver.targets, target))
            )
        case SubjectKind.TARGET:
            return not waiver.cases and not waiver.edits and matches(waiver.targets, finding.name)
        case SubjectKind.RUN:
            return False


def _remember(rows: list[Waiver], waiver: Waiver) -> None:
    if waiver not in rows:
        rows.append(waiver)


class _Why(IntEnum):
    """Why the edit of a case is not accepted. What a person should know first comes first."""

    OTHER_EDIT = 1
    OTHER_TOOLCHAINS = 2
    ENDED = 3
    NEW_IN_GROUP = 4
    NEVER = 5


@dataclass(frozen=True, kw_only=True)
class _Refused:
    why: _Why
    case: str
    entry: Accepted | None
    """The acceptance that comes nearest."""


class _Acceptances:
    """The acceptances, as they apply to one run on one day."""

    def __init__(self, run: Run, entries: Sequence[Accepted], today: datetime.date) -> None:
        self._run = run
        self._today = today
        self._cases = {case.id: case for case in run.cases}
        self._groups = {entry.group: entry for entry in entries}
        self._of_case: dict[str, list[Accepted]] = {}
        for entry in entries:
            for case_id in entry.edits:
                self._of_case.setdefault(case_id, []).append(entry)

    def settle(self, finding: GateFinding) -> GateFinding:
        answers = [self._answer(case_id) for case_id in finding.edits]
        refused = [answer for answer in answers if isinstance(answer, _Refused)]
        held = [answer for answer in answers if isinstance(answer, Accepted)]
        if refused:
            return replace(finding, not_accepted=self._sentence(refused, len(held)))
        unique = [entry for number, entry in enumerate(held) if entry not in held[:number]]
        return replace(finding, settled_by=tuple(unique))

    def _answer(self, case_id: str) -> Accepted | _Refused:
        case = self._cases[case_id]
        entries = self._of_case.get(case_id, [])
        same = [entry for entry in entries if entry.edits[case_id] == case.edit]
        here = [entry for entry in same if entry.is_of_toolchains(self._run)]
        for entry in reversed(here):
            if entry.expires >= self._today:
                return entry
        if here:
            return _Refused(why=_Why.ENDED, case=case_id, entry=max(here, key=lambda e: e.expires))
        if same:
            return _Refused(why=_Why.OTHER_TOOLCHAINS, case=case_id, entry=same[-1])
        if entries:
            return _Refused(why=_Why.OTHER_EDIT, case=case_id, entry=entries[-1])
        known = self._groups.get(case.group or "")
        return _Refused(why=_Why.NEW_IN_GROUP if known else _Why.NEVER, case=case_id, entry=known)

    def _sentence(self, refused: Sequence[_Refused], held: int) -> str:
        first = min(refused, key=lambda row: (row.why, row.case))
        others = sum(row.why == first.why for row in refused) - 1
        also = f"; so with {others} more" if others else ""
        entry, case = first.entry, self._cases[first.case]
        if entry is None:
            return f"accepted for {held} of {held + len(refused)} cases" if held else ""
        match first.why:
            case _Why.OTHER_EDIT:
                ours, theirs = (case.edit or "none")[:12], entry.edits[case.id][:12]
                rules = entry.normalizer, self._run.normalizer_version
                read = f" (read by other rules, {rules[0]} → {rules[1]})" if rules[0] != rules[1] else ""
                return (
                    f"the edit is another: {entry.owner} accepted {theirs} of {case.id} on {entry.on}, "
                    f"this run has {ours}{read}{also}"
                )
            case _Why.OTHER_TOOLCHAINS:
                sides = f"{entry.base_toolchain[:12]} → {entry.head_toolchain[:12]}"
                return (
                    f"{entry.owner} accepted the same edit of {case.id} between other toolchains ({sides})"
                    f"{also}: --renew takes it again"
                )
            case _Why.ENDED:
                return f"the acceptance of {case.id} by {entry.owner} ended on {entry.expires}{also}"
            case _:
                return self._new_in_group(case.group or "")

    def _new_in_group(self, group: str) -> str:
        members = [case.id for case in self._cases.values() if case.group == group]
        known = sum(member in self._of_case for member in members) or len(self._groups[group].edits)
        new = sum(member not in self._of_case for member in members)
        return f"accepted for {counted(known, 'case')}; {new} more changed the same way since"
