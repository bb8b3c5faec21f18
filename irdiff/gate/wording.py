"""The words that every output of the gate uses. Plain text: whoever prints it escapes it."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass

from irdiff.gate.acceptance import Accepted
from irdiff.gate.outcome import Certainty, GateFinding, Outcome, RuleOutcome, SubjectKind
from irdiff.gate.policy import Waiver
from irdiff.report import commands
from irdiff.words import counted

_MAX_GROUPS = 5
NO_TIMINGS = "no timings: rules that need them could not be decided"


def headline(outcome: Outcome) -> str:
    """Pass or fail, and why, in one line."""
    failing = [rule for rule in outcome.rules if not rule.holds]
    if outcome.passed:
        extra = [f"{n} {word}" for word in ("settled", "warn") if (n := _count(outcome, word))]
        counts = f"{len(outcome.rules)} rules hold" + (f" ({', '.join(extra)})" if extra else "")
        return f"gate passes: {counts}"
    if not failing:
        return "gate fails: the run has no cases"
    names = ", ".join(f"{rule.rule.id} ({_size(rule)})" for rule in failing)
    return f"gate fails: {len(failing)} of {len(outcome.rules)} rules do not hold: {names}"


def _count(outcome: Outcome, word: str) -> int:
    return sum(rule.word == word for rule in outcome.rules)


def _size(outcome: RuleOutcome) -> str:
    blocking = [finding for finding in outcome.findings if finding.blocks]
    unknown = sum(finding.certainty is Certainty.UNKNOWN for finding in blocking)
    return f"{len(blocking)}, {unknown} unknown" if unknown else str(len(blocking))


def summary(outcome: RuleOutcome) -> str:
    """`3 findings in 120 cases, 1 waived`."""
    cases = counted(outcome.examined, "case")
    if not outcome.findings:
        return f"holds for {cases}"
    count = len(outcome.findings)
    settled = sum(finding.settled_by is not None for finding in outcome.findings)
    tail = f", {settled} settled" if settled else ""
    return f"{counted(count, 'finding')} in {cases}{tail}"


def subject(finding: GateFinding) -> str:
    return "the run" if finding.subject is SubjectKind.RUN else finding.name


def groups(outcome: Outcome, finding: GateFinding) -> str:
    """The short ids of the change groups behind a finding, in the order of the report."""
    names = [name for group, name in outcome.group_names.items() if group in finding.groups]
    return " ".join([*names[:_MAX_GROUPS], *(["…"] if len(names) > _MAX_GROUPS else [])])


def with_groups(outcome: Outcome, finding: GateFinding, words: str) -> str:
    """`words [g:b140]`: as a line names the groups that a person can look at, and accept."""
    named = groups(outcome, finding)
    return f"{words} [{named}]" if named else words


def state(finding: GateFinding) -> str:
    """`violated`, `unknown`, `waived by …` or `accepted by …`."""
    match finding.settled_by:
        case None:
            return finding.certainty.value
        case Waiver() as waiver:
            return f"waived by {waiver.owner} until {waiver.expires}: {waiver.reason} ({waiver.issue})"
        case entries:
            return "accepted by " + "; ".join(map(_accepted, entries))


def _accepted(entry: Accepted) -> str:
    return f"{entry.owner} on {entry.on} until {entry.expires}: {entry.reason}"


def detail(finding: GateFinding) -> str:
    """What decided it, and why what was accepted does not settle it."""
    return f"{finding.detail}; {finding.not_accepted}" if finding.not_accepted else finding.detail


def ordered(findings: Sequence[GateFinding]) -> list[GateFinding]:
    """The findings in order: those that block come first, and unknown ones after violated ones."""
    return sorted(findings, key=lambda f: (not f.blocks, f.settled_by is not None, f.certainty, f.name))


@dataclass(frozen=True, kw_only=True)
class FindingLine:
    """What is said of one finding, or of several of which the same is to say."""

    name: str
    """Of the first."""
    more: str
    """` and 3 more`, or nothing."""
    groups: str
    words: str


def together(outcome: Outcome, findings: Sequence[GateFinding]) -> list[FindingLine]:
    """What to say of the findings, in order. Equal words are said once."""
    rows: dict[tuple[str, str], list[GateFinding]] = {}
    for finding in ordered(findings):
        words = f"{state(finding)}: {detail(finding)}"
        rows.setdefault((groups(outcome, finding), words), []).append(finding)
    found = []
    for (named, words), same in rows.items():
        more = f" and {len(same) - 1} more" if len(same) > 1 else ""
        found.append(FindingLine(name=subject(same[0]), more=more, groups=named, words=words))
    return found


def notes(outcome: Outcome) -> list[str]:
    ended = [
        f"the waiver of {waiver.rule} by {waiver.owner} ended on {waiver.expires} ({waiver.issue})"
        for waiver in outcome.expired
    ]
    return [*([] if outcome.timed_on else [NO_TIMINGS]), *outcome.notes, *ended]


@dataclass(frozen=True, kw_only=True)
class Again:
    """The words by which the gate is asked again."""

    call: str
    policy: str
    """Empty: that of the current folder."""
    until: datetime.date | None


UNNAMED = Again(call=commands.UNNAMED, policy="POLICY", until=None)


def next_step(outcome: Outcome, again: Again) -> str | None:
    """What a person can do about edits that only wait to be looked at: a command that lacks a reason."""
    waiting = {
        group
        for rule in outcome.rules
        if rule.rule.can_be_accepted
        for finding in rule.findings
        if finding.blocks and finding.certainty is Certainty.VIOLATED and finding.edits
        for group in finding.groups
    }
    names = [name for group, name in outcome.group_names.items() if group in waiting][:_MAX_GROUPS]
    if not names:
        return None
    words = ["gate", again.call, *(["--policy", again.policy] if again.policy else [])]
    for name in names:
        words += ["--accept", name]
    words += ["--until", str(again.until or "YYYY-MM-DD"), "--owner", "YOU", "--reason", "WHY"]
    return f"after a look at each group: {commands.command(*words)}"
