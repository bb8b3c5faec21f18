"""The rules that a release must hold, from a TOML file.

A misspelt key or an unknown kind is an error, so that no rule is ever skipped by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic.dataclasses import dataclass

from irdiff import case_ids
from irdiff.errors import UsageError
from irdiff.gate import earlier_policy
from irdiff.model import Case, Meaning, Verdict
from irdiff.resolve import toml_file

SCHEMA = "irdiff-policy/2"


class Action(StrEnum):
    """The consequence if a rule does not hold."""

    DENY = "deny"
    """The gate fails until a person accepts the findings of this very rule."""
    REVIEW = "review"
    """The gate fails until a person accepts the change groups behind it."""
    WARN = "warn"
    """The gate says so, and passes."""


class Requires(StrEnum):
    COMPARED = "compared"
    """Each required target was compared over enough cases, and not too many could not be compared."""
    LAUNCHED = "launched"
    """In a repository of kernels each new kernel, and each changed function of a file that launches read or
    that holds kernels, ran in a launch; unknown of C++ and CUDA where launches read no file that changed."""
    TIMED = "timed"
    """Every changed case was timed, and none faulted."""


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
    """The consequence if the rule cannot be decided; None: the same as if it does not hold."""
    may_be_empty: bool | Literal["whole"] = False
    """Whether the rule holds where it selects no case of the run at all; `whole`: where nothing of the corpus
    was left out by --case, --tier or --shard, so that there is no such case."""

    def selects(self, case: Case, patterns: Sequence[str]) -> bool:
        """patterns: those of `cases`, literal where a case of the run is named so."""
        chosen = ((self.tiers, case.tier), (self.targets, case.target))
        return case_ids.selects(patterns, case.id) and all(
            not allowed or matches(allowed, name) for allowed, name in chosen
        )

    @property
    def unknown_action(self) -> Action:
        return self.if_unknown or self.action


class VerdictRule(_Rule):
    """No case has one of these verdicts, or on no target more cases than both bounds allow."""

    kind: Literal["verdict"]
    verdicts: Annotated[tuple[Verdict, ...], Field(min_length=1)]
    more_than_percent: Annotated[float, Field(ge=0, le=100)] = 0.0
    """Of the compared cases of a target."""
    more_than_cases: Annotated[int, Field(ge=0)] = 0
    """This many are allowed, whatever their share: two of six cases are a third, but no large share."""

    @property
    def is_share(self) -> bool:
        return bool(self.more_than_percent or self.more_than_cases)


class MeaningRule(_Rule):
    """No changed case has such a meaning, and no GPU saw other outputs than the launch's tolerance allows.

    Unknown for a case whose meaning was not read; of hazards and rounding for one that is not shown to
    compute the same; of `wrong outputs` for one that no GPU ran.
    """

    kind: Literal["meaning"]
    meanings: Annotated[tuple[Meaning | Literal["wrong outputs"], ...], Field(min_length=1)]
    equal_outputs_settle: bool = False
    """Bitwise equal outputs on every GPU that ran both sides settle a finding. One run rules out no race."""


class CostRule(_Rule):
    """No changed case takes longer by more, at the lower end of the interval that was measured.

    Of a case that was not timed the rule holds if `no change expected` is said, does not if head is `likely
    slower`, and is unknown otherwise.
    """

    kind: Literal["cost"]
    percent: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    measured_only: bool = False
    """Every case that was not timed is unknown, whatever is expected of it."""

    @model_validator(mode="after")
    def _expectations_are_that_fine(self) -> CostRule:
        if self.percent < 1 and not self.measured_only:
            raise ValueError(
                "percent below 1 needs measured_only = true: `no change expected` means within 1 %"
            )
        return self


class FactRule(_Rule):
    """In no changed case one of these figures rises; occupancy, blocks, `fits`, `deterministic` do not fall.

    Unknown where no side has any of them.
    """

    kind: Literal["fact"]
    facts: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of statistics (`spills`, `occupancy`), of single facts of a binary, or of `MORE_FACTS`."""
    more_than: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """By how much it may move, in its own unit."""
    more_than_percent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The same in percent of base; a move beyond both is denied."""

    @model_validator(mode="after")
    def _compile_time_is_alone(self) -> FactRule:
        if COMPILE_S in self.facts and len(self.facts) > 1:
            raise ValueError(f"{COMPILE_S!r} is a figure of a target: give it a rule of its own")
        return self


FITS = "fits"
"""The target launches head's code: at least one block fits on a multiprocessor."""
DETERMINISTIC = "deterministic"
"""Head's compiler gave the same code when the case was compiled again."""
COMPILE_S = "compile_s"
"""Seconds of all cases of a target that both sides compiled."""
MORE_FACTS = (FITS, DETERMINISTIC, COMPILE_S)
"""Facts that are not read from a binary."""


class CoverageRule(_Rule):
    """Enough was looked at: see `Requires`. The fields below `requires` are for `compared` alone."""

    kind: Literal["coverage"]
    requires: Requires = Requires.COMPARED
    required_targets: tuple[Name, ...] = ()
    min_compared: Annotated[int, Field(ge=1)] = 1
    or_whole: bool = False
    """A corpus with fewer cases for the target is enough too, if nothing of it was left out and every
    workload said what it launches."""
    max_uncompared_percent: Annotated[float, Field(ge=0, le=100)] = 100.0
    """Failing and unsupported cases, and those whose code was not compared, of all cases of a target."""

    @model_validator(mode="after")
    def _fields_are_of_what_is_required(self) -> CoverageRule:
        own = {"required_targets", "min_compared", "or_whole", "max_uncompared_percent"}
        if self.requires is Requires.COMPARED:
            if not {"required_targets", "min_compared"} <= self.model_fields_set:
                raise ValueError("it needs required_targets and min_compared, or another `requires`")
        elif fields := sorted(own & self.model_fields_set):
            raise ValueError(f"{fields[0]} is of no use where {self.requires.value!r} is required")
        return self


Rule = VerdictRule | MeaningRule | CostRule | FactRule | CoverageRule


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Policy:
    schema: Literal["irdiff-policy/2"]
    rule: Annotated[tuple[Annotated[Rule, Field(discriminator="kind")], ...], Field(min_length=1)]


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
        if isinstance(rule, CoverageRule) and rule.requires is Requires.COMPARED
        else rule
        for rule in policy.rule
    )
    return replace(policy, rule=tuple(rules))


def required(by_rule: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Those of a rule that the repository compares, or else all that it compares."""
    return tuple(target for target in by_rule if target in targets) or tuple(targets)


def parse(tables: Mapping[str, object], where: str) -> Policy:
    """Raises UsageError, for a file of an earlier irdiff with the new spelling of each rule."""
    earlier_policy.refuse(tables, where)
    policy = toml_file.checked(_policy, tables, where, "a policy")
    ids = [rule.id for rule in policy.rule]
    for rule_id in ids:
        if ids.count(rule_id) > 1:
            raise UsageError(f"{where} has two rules with the id {rule_id!r}")
    return policy
