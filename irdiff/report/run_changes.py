"""Groups that are new, gone or changed between two runs, such as two pushes to a pull request.

A group is changed if it has other cases, or a case has another concrete edit. Cases that only one of the runs
compared are counted apart: nothing is known of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.diffs import launch_changes
from irdiff.diffs.launch_changes import LaunchChange
from irdiff.model import Case, ChangeGroup, Run
from irdiff.report import distinct_edits, phrases
from irdiff.words import first_few


@dataclass(frozen=True, kw_only=True)
class GroupCounts:
    new: int
    gone: int
    changed: int

    def sentence(self, since: str) -> str:
        """`groups since 5d6e7f8: 2 new, 1 gone`."""
        counts = [f"{count} {word}" for word, count in vars(self).items() if count]
        return f"groups since {since}: {', '.join(counts)}" if counts else f"the same groups as at {since}"


def prints(run: Run) -> Mapping[str, str]:
    """Maps group ids to a digest of the cases and their concrete changes."""
    edits = {case.id: (case.verdict, case.edit) for case in run.cases}
    members = {group.id: [(member, edits.get(member)) for member in group.members] for group in run.groups}
    return {name: _digest(of_group) for name, of_group in members.items()}


def short_prints(run: Run, digits: int) -> Mapping[str, str]:
    """Shortens ids and digests to so many digits."""
    return {_digest(name)[:digits]: print_[:digits] for name, print_ in prints(run).items()}


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def counts(old: Mapping[str, str], new: Mapping[str, str]) -> GroupCounts:
    """Takes the results of `prints` for two runs."""
    both = old.keys() & new.keys()
    return GroupCounts(
        new=len(new.keys() - both),
        gone=len(old.keys() - both),
        changed=sum(old[name] != new[name] for name in both),
    )


@dataclass(frozen=True, kw_only=True)
class ChangedGroup:
    new: ChangeGroup
    joined: tuple[str, ...]
    """Cases that are new in it."""
    left: tuple[str, ...]
    edited: tuple[str, ...]
    """Cases of both runs with another concrete change."""


@dataclass(frozen=True, kw_only=True)
class ChangedCase:
    old: Case
    new: Case
    facts: tuple[LaunchChange, ...]
    """`head.registers: 32 → 40`."""

    @property
    def is_other(self) -> bool:
        return (self.old.verdict, self.old.edit) != (self.new.verdict, self.new.edit) or bool(self.facts)

    def __str__(self) -> str:
        differences = ["other lines differ"] if self.old.edit != self.new.edit else []
        if self.old.verdict is not self.new.verdict:
            differences = [f"{self.old.verdict} → {self.new.verdict}"]
        return f"{self.new.id}: {first_few([*differences, *map(str, self.facts)], _SHOWN)}"


@dataclass(frozen=True, kw_only=True)
class RunChanges:
    new: tuple[ChangeGroup, ...]
    gone: tuple[ChangeGroup, ...]
    changed: tuple[ChangedGroup, ...]
    cases: tuple[ChangedCase, ...]
    only_old: tuple[str, ...]
    """Cases that the new run did not compare."""
    only_new: tuple[str, ...]
    notes: tuple[str, ...]
    """Other differences between the runs, which may be the reason."""

    @property
    def counts(self) -> GroupCounts:
        return GroupCounts(new=len(self.new), gone=len(self.gone), changed=len(self.changed))

    @property
    def is_empty(self) -> bool:
        return not (self.new or self.gone or self.changed or self.cases or self.only_old or self.only_new)


_SHOWN = 5


def between(old: Run, new: Run) -> RunChanges:
    groups = {group.id: group for group in old.groups}
    still = {group.id for group in new.groups}
    before = {case.id: case for case in old.cases}
    after = {case.id: case for case in new.cases}
    both = [case for case in old.cases if case.id in after]
    other_edit = {case.id for case in both if case.edit != after[case.id].edit}
    ordered = distinct_edits.ordered_groups(new)
    changed = [_group(groups[group.id], group, other_edit) for group in ordered if group.id in groups]
    cases = [ChangedCase(old=case, new=after[case.id], facts=_facts(case, after[case.id])) for case in both]
    return RunChanges(
        new=tuple(group for group in ordered if group.id not in groups),
        gone=tuple(group for group in distinct_edits.ordered_groups(old) if group.id not in still),
        changed=tuple(each for each in changed if each.joined or each.left or each.edited),
        cases=tuple(each for each in cases if each.is_other),
        only_old=tuple(sorted(before.keys() - after.keys())),
        only_new=tuple(sorted(after.keys() - before.keys())),
        notes=tuple(_notes(old, new)),
    )


def _group(old: ChangeGroup, new: ChangeGroup, other_edit: set[str]) -> ChangedGroup:
    ours, theirs = set(old.members), set(new.members)
    return ChangedGroup(
        new=new,
        joined=tuple(sorted(theirs - ours)),
        left=tuple(sorted(ours - theirs)),
        edited=tuple(sorted(ours & theirs & other_edit)),
    )


def _facts(old: Case, new: Case) -> tuple[LaunchChange, ...]:
    """Compares only sides that both runs compiled to machine code: other cases have no facts."""
    shared = [side for side, (ours, theirs) in old.facts.zip(new.facts).items() if ours and theirs]
    return launch_changes.between(*({side: case.facts.of(side) for side in shared} for case in (old, new)))


def _notes(old: Run, new: Run) -> list[str]:
    notes = []
    for name, ours, theirs in (("base", old.base, new.base), ("head", old.head, new.head)):
        if ours.digest != theirs.digest:
            digests = f"{ours.digest[:12]} → {theirs.digest[:12]}"
            notes.append(
                f"{name} is another toolchain: {phrases.side(ours)} → {phrases.side(theirs)} ({digests})"
            )
        if ours.corpus != theirs.corpus:
            notes.append(f"{name} has other kernels")
    if old.normalizer_version != new.normalizer_version:
        notes.append("the rules of normalization differ: groups may have other ids for this reason alone")
    if old.irdiff_version != new.irdiff_version:
        notes.append(f"made by irdiff {old.irdiff_version} and {new.irdiff_version}")
    return notes
