from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Iterator, Sequence
from typing import Any

from irdiff.errors import UsageError
from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import GateFinding, Outcome, RuleOutcome, SubjectKind
from irdiff.model import ChangeGroup, Run
from irdiff.report import group_names

REVIEW = "review"
"""Stands for all change groups that wait for a review."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Decision:
    owner: str
    reason: str
    issue: str
    on: datetime.date
    expires: datetime.date


def accept(run: Run, outcome: Outcome, names: Sequence[str], decision: Decision) -> tuple[Accepted, ...]:
    """names: change groups by number or (cut) id, cases, rules, or `review`. Raises UsageError for a name
    that the run does not have: only what was reviewed can be accepted.
    """
    rules = {rule.rule.id: rule for rule in outcome.rules}
    entries: list[Accepted] = []
    for name in names:
        if name == REVIEW:
            entries += accept_groups(run, outcome, outcome.waiting, decision)
        elif name in rules:
            entries += _of_rule(run, rules[name], decision)
        else:
            entries += accept_groups(run, outcome, [name], decision)
    return tuple(entries)


def accept_groups(
    run: Run, outcome: Outcome, names: Sequence[str], decision: Decision
) -> tuple[Accepted, ...]:
    """Writes one entry for each group or case. Raises UsageError."""
    changes = {case.id: case.edit for case in run.cases}
    entries = []
    for name in names:
        group, members = _find(run, name)
        digests = {member: digest for member in members if (digest := changes[member]) is not None}
        if len(digests) < len(members):
            raise UsageError(
                f"group {group.id[:12]!a} cannot be accepted: the run has no digest of the change of one of "
                "its cases",
                hint="compare again without --stages, then accept the group of the new run",
            )
        terms = {**_between(run), **dataclasses.asdict(decision)}
        measured = tuple(name for case, name in _measured(outcome) if case in digests)
        entries.append(
            Accepted(changes=digests, measured=measured, group=group.id, title=group.title[:200], **terms)
        )
    return tuple(entries)


def _measured(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """Yields cases, and what `Accepted.measured` says of them."""
    for rule in outcome.rules:
        for finding in rule.findings:
            if finding.is_measured:
                yield finding.name, f"{rule.rule.id} {finding.name}"


def _of_rule(run: Run, outcome: RuleOutcome, decision: Decision) -> Iterator[Accepted]:
    """Settles blocking findings by the changes behind them, or else by their names."""
    rule = outcome.rule
    blocking = [finding for finding in outcome.findings if finding.blocks]
    if not blocking:
        raise UsageError(
            f"nothing of the rule {rule.id!r} blocks: there is nothing to accept",
            hint="irdiff gate RUN lists what blocks",
        )
    if not decision.issue:
        raise UsageError(
            f"accepting a finding of the rule {rule.id!r} needs the issue in which it will be mended",
            hint="add --issue URL",
        )
    if any(finding.subject is SubjectKind.RUN for finding in blocking):
        raise UsageError(
            f"the rule {rule.id!r} selects no case of this run: that cannot be accepted",
            hint="compare such cases, or set `may_be_empty` in the policy",
        )
    terms: dict[str, Any] = {**dataclasses.asdict(decision), "rule": rule.id}
    changes = {
        case: digest
        for finding in blocking
        if _has_changes(finding)
        for case, digest in finding.changes.items()
        if digest is not None
    }
    if changes:
        yield Accepted(changes=changes, group=rule.id, title=rule.reason[:200], **_between(run), **terms)
    rest = [finding for finding in blocking if not _has_changes(finding)]
    for subject in (SubjectKind.CASE, SubjectKind.TARGET, SubjectKind.FILE, SubjectKind.NOTE):
        if names := tuple(finding.name for finding in rest if finding.subject is subject):
            yield Accepted(**terms, **_subjects(subject, names))


def _subjects(subject: SubjectKind, names: tuple[str, ...]) -> dict[str, Any]:
    return {f"{subject.value}s": names}


def _has_changes(finding: GateFinding) -> bool:
    return bool(finding.changes) and all(finding.changes.values())


def _between(run: Run) -> dict[str, Any]:
    return {
        "base": run.base.spec,
        "base_toolchain": run.base.digest,
        "head": run.head.spec,
        "head_toolchain": run.head.digest,
        "normalizer": run.normalizer_version,
    }


def renew(run: Run, present: tuple[Accepted, ...], decision: Decision) -> tuple[Accepted, ...]:
    """Renews entries of the same changes for this run's toolchains and a new last day.

    It accepts nothing new, because each change, including constants and positions, was reviewed before.
    Reason and issue are kept if not given.
    """
    changes = {case.id: case.edit for case in run.cases}
    settled = {
        (entry.rule, *change)
        for entry in present
        if entry.is_of_toolchains(run) and entry.expires >= decision.expires
        for change in entry.changes.items()
    }
    entries = []
    for entry in reversed(present):  # of one change the last entry counts
        same = {(entry.rule, *each) for each in entry.changes.items() if each in changes.items()}
        again = {case: digest for _, case, digest in sorted(same - settled)}
        settled |= same
        if again:
            terms = dataclasses.asdict(decision)
            terms |= {"reason": decision.reason or entry.reason, "issue": decision.issue or entry.issue}
            entries.append(dataclasses.replace(entry, changes=again, **_between(run), **terms))
    return tuple(reversed(entries))


def _find(run: Run, name: str) -> tuple[ChangeGroup, tuple[str, ...]]:
    of_case = {member: group for group in run.groups for member in group.members}
    if name in of_case:
        return of_case[name], (name,)
    group = group_names.find(run, name)
    if group is None:
        raise group_names.unknown(run, name)
    return group, group.members
