"""What a gate found: the values that every output is made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from irdiff.gate.acceptance import Accepted
from irdiff.gate.policy import Action, Rule, Waiver


class Certainty(StrEnum):
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """It cannot be decided from the run: data is missing."""


class SubjectKind(StrEnum):
    CASE = "case"
    TARGET = "target"
    RUN = "run"


@dataclass(frozen=True, kw_only=True)
class GateFinding:
    """One place where a rule does not hold, or may not hold."""

    subject: SubjectKind
    name: str
    """The case id or the target; empty for the run as a whole."""
    certainty: Certainty
    action: Action
    detail: str
    """The figures that decided it."""
    groups: tuple[str, ...]
    """Ids of the change groups behind it; empty where there are none to accept."""
    edits: Mapping[str, str | None]
    """Digests of the concrete edits, by case, that must be accepted to settle it; empty where none can be."""
    not_accepted: str
    """Why no acceptance settles it, in one sentence; empty where nothing like it was ever accepted."""
    settled_by: Waiver | tuple[Accepted, ...] | None

    @property
    def blocks(self) -> bool:
        return self.settled_by is None and self.action is not Action.WARN


@dataclass(frozen=True, kw_only=True)
class RuleOutcome:
    rule: Rule
    examined: int
    """Cases that the rule selected."""
    findings: tuple[GateFinding, ...]

    @property
    def holds(self) -> bool:
        return not any(finding.blocks for finding in self.findings)

    @property
    def word(self) -> str:
        """`pass`, `warn`, `settled`, `review` or `deny`: the worst of its findings."""
        blocking = {finding.action for finding in self.findings if finding.blocks}
        if blocking:
            return (Action.DENY if Action.DENY in blocking else Action.REVIEW).value
        if any(finding.settled_by is None for finding in self.findings):
            return Action.WARN.value
        return "settled" if self.findings else "pass"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The answer of the gate, with all that it rests on."""

    passed: bool
    base: str
    """The side in the words of every report."""
    head: str
    timed_on: tuple[str, ...]
    """The devices that timings came from. Empty where the run was not timed."""
    rules: tuple[RuleOutcome, ...]
    group_names: Mapping[str, str]
    """The short ids of the run's change groups by their ids, in the order of every report."""
    expired: tuple[Waiver, ...]
    """The waivers that would have settled a finding if they had not expired."""
    notes: tuple[str, ...]
    """What the run says was not compared, unused waivers, and what was left unread."""
