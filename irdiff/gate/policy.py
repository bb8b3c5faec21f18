"""What a release must hold: rules, and waivers with an owner and an end, from a TOML file.

A misspelt key or an unknown kind is an error, so that no rule is ever skipped by accident.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from irdiff import case_ids
from irdiff.errors import UsageError
from irdiff.model import Case, Meaning, Verdict
from irdiff.resolve import toml_file

SCHEMA = "irdiff-policy/1"


class Action(StrEnum):
    """What follows where a rule does not hold."""

    DENY = "deny"
    """The gate fails; only a waiver settles it."""
    REVIEW = "review"
    """The gate fails until a person accepts the edits behind it."""
    WARN = "warn"
    """The gate says so, and passes."""


Name = Annotated[str, Field(min_length=1, max_length=200)]
Patterns = tuple[Annotated[str, Field(pattern=r"\S")], ...]
"""An empty one would select nothing."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Rule(_Table):
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]
    action: Action
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    """Why a release manager wants it: printed with each finding."""
    tiers: Patterns = ()
    targets: Patterns = ()
    cases: Patterns = ()
    """As `--case` takes them; none means all."""
    if_unknown: Action | None = None
    """What follows where it cannot be decided; None means the same as where it does not hold."""
    may_be_empty: bool | Literal["whole"] = False
    """Whether the rule holds where it selects no case of the run at all; `whole`: where nothing of the corpus
    was left out by --case, --tier or --shard, so that there is no such case."""
    acceptable: bool | None = None
    """Whether accepting the edits settles it; None means for `review` only."""

    def selects(self, case: Case, patterns: Sequence[str]) -> bool:
        """patterns: those of `cases`, literal where a case of the run is named so."""
        chosen = ((self.tiers, case.tier), (self.targets, case.target))
        return case_ids.selects(patterns, case.id) and all(
            not allowed or matches(allowed, name) for allowed, name in chosen
        )

    @property
    def unknown_action(self) -> Action:
        return self.if_unknown or self.action

    @property
    def can_be_accepted(self) -> bool:
        return self.action is Action.REVIEW if self.acceptable is None else self.acceptable


class VerdictRule(_Rule):
    """No case has one of these verdicts."""

    kind: Literal["verdict"]
    verdicts: Annotated[tuple[Verdict, ...], Field(min_length=1)]


class FactRule(_Rule):
    """In no changed case one of these rises (occupancy and blocks: falls); unknown where no side has any."""

    kind: Literal["fact"]
    facts: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of statistics (`spills`, `occupancy`), or of single facts."""
    more_than: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """By how much it may move, in its own unit."""
    more_than_percent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The same in percent of base; what is denied is beyond both."""


class FitsRule(_Rule):
    """Of no changed or new case does the target refuse to launch head's code, unless it refused base's."""

    kind: Literal["fits"]


class SlowerRule(_Rule):
    """No changed case is slower by more at the lower end of its interval; unknown if it was not timed."""

    kind: Literal["slower"]
    percent: Annotated[float, Field(ge=0, allow_inf_nan=False)]


class CostRule(_Rule):
    """No changed case takes longer by more: as `slower` where it was timed. Where it was not, it holds if no
    change is expected, not if head is likely slower, and is unknown else.
    """

    kind: Literal["cost"]
    percent: Annotated[float, Field(ge=1, allow_inf_nan=False)]
    """At least 1: `no change expected` means within 1 %."""


class TimedRule(_Rule):
    """Every changed case was timed, and none faulted."""

    kind: Literal["timed"]


class WrongResultRule(_Rule):
    """Both sides of a changed case compute the same within the launch's tolerance; unknown if not run."""

    kind: Literal["wrong-result"]


class NondeterministicRule(_Rule):
    """No side of a changed case disagrees with itself when compiled again."""

    kind: Literal["nondeterministic"]


class MeaningRule(_Rule):
    """No changed case has such a meaning; unknown for one of which nothing is said."""

    kind: Literal["meaning"]
    meanings: Annotated[tuple[Meaning, ...], Field(min_length=1)]


class RadiusRule(_Rule):
    """On no target do more of the compared cases change, by both bounds."""

    kind: Literal["radius"]
    percent: Annotated[float, Field(ge=0, le=100)]
    more_than_cases: Annotated[int, Field(ge=0)] = 0
    """This many may change, whatever their share: two of six are a third, but no large radius."""


class CompileTimeRule(_Rule):
    """On no target does compiling the cases take longer by both bounds, over cases compiled on both sides."""

    kind: Literal["compile-time"]
    percent: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    more_than_s: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0


class CoverageRule(_Rule):
    """Each required target was compared over enough cases, and not too many could not be compared."""

    kind: Literal["coverage"]
    required_targets: tuple[Name, ...]
    min_compared: Annotated[int, Field(ge=1)]
    or_whole: bool = False
    """Whether a corpus with fewer cases for the target may be compared too, where nothing of it was left out
    and every workload said what it launches."""
    max_uncompared_percent: Annotated[float, Field(ge=0, le=100)] = 100.0
    """Failing and unsupported cases, and those whose code was not compared, of all cases of a target."""


class ReachRule(_Rule):
    """In a repository of kernels each new kernel, and each changed function of a file that launches read or
    that holds kernels, ran in a launch; unknown of C++ and CUDA where launches read no file that changed.
    """

    kind: Literal["reach"]


Rule = (
    VerdictRule
    | FactRule
    | FitsRule
    | SlowerRule
    | CostRule
    | TimedRule
    | WrongResultRule
    | NondeterministicRule
    | MeaningRule
    | RadiusRule
    | CompileTimeRule
    | CoverageRule
    | ReachRule
)


class Waiver(_Table):
    """Findings of one rule that somebody answers for, until a day.

    A waiver covers a rule for some cases, however they change: it is for a known problem that somebody mends
    under its issue. With `edits` it covers those concrete edits only.
    """

    rule: Name
    cases: Patterns = ()
    edits: tuple[Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")], ...] = ()
    targets: Patterns = ()
    """The targets, for findings that concern a target as a whole."""
    files: Patterns = ()
    """The files, for findings that concern a file of the repository."""
    owner: Name
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    issue: Annotated[str, Field(pattern=r"^https://.{5}")]
    expires: datetime.date
    """The last day on which the acceptance holds."""


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Policy:
    schema: Literal["irdiff-policy/1"]
    rule: Annotated[tuple[Annotated[Rule, Field(discriminator="kind")], ...], Field(min_length=1)]
    waiver: tuple[Waiver, ...] = ()


_policy = TypeAdapter(Policy)


def matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def load(path: Path) -> Policy:
    """Raises UsageError with the place of the mistake."""
    return parse(toml_file.read(path), str(path))


def for_targets(policy: Policy, targets: Sequence[str]) -> Policy:
    """The same rules for a repository that compares these targets: it need not have compared any other."""
    rules = (
        rule.model_copy(update={"required_targets": required(rule.required_targets, targets)})
        if isinstance(rule, CoverageRule)
        else rule
        for rule in policy.rule
    )
    return replace(policy, rule=tuple(rules))


def required(by_rule: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Those of a rule that the repository compares, or else all that it compares."""
    return tuple(target for target in by_rule if target in targets) or tuple(targets)


def parse(rows: Mapping[str, object], where: str) -> Policy:
    policy = toml_file.checked(_policy, rows, where, "a policy")
    ids = [rule.id for rule in policy.rule]
    for rule_id in ids:
        if ids.count(rule_id) > 1:
            raise UsageError(f"{where} has two rules with the id {rule_id!r}")
    for waiver in policy.waiver:
        if waiver.rule not in ids:
            raise UsageError(f"{where} waives the rule {waiver.rule!r}, which it does not have")
        if not (waiver.cases or waiver.edits or waiver.targets or waiver.files):
            named = f"{where}: the waiver of {waiver.rule!r} by {waiver.owner!r}"
            raise UsageError(f"{named} names no case, edit, target or file")
    return policy
