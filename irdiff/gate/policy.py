"""Reads the rules of a release from a TOML file. A misspelt key or an unknown kind is an error, so that no
rule is skipped by accident.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from irdiff import case_ids
from irdiff.adapters import adapter
from irdiff.errors import UsageError
from irdiff.gate import earlier_policy
from irdiff.model import Case, Meaning, Verdict
from irdiff.resolve import toml_file

SCHEMA = "irdiff-policy/2"


class Action(StrEnum):
    DENY = "deny"
    """The gate fails until a person accepts the findings of this very rule."""
    REVIEW = "review"
    """The gate fails until a person accepts the change groups behind it."""
    WARN = "warn"
    """The gate prints it, and passes."""


class Requires(StrEnum):
    COMPARED = "compared"
    """Each required target was compared over enough cases, and few enough could not be compared."""
    LAUNCHED = "launched"
    """In a repository of kernels each new kernel, and each changed function of a file that launches read or
    that holds kernels, ran in a launch. Unknown for C++ and CUDA if launches read no changed file.
    """
    TIMED = "timed"
    """Every changed case was timed in all processes of the protocol, and none faulted."""


Name = Annotated[str, Field(min_length=1, max_length=200)]
Patterns = tuple[Annotated[str, Field(pattern=r"\S")], ...]
"""An empty one would select nothing."""


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Rule(_Table):
    id: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")]
    action: Action
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    """Printed with each finding."""
    tiers: Patterns = ()
    targets: Patterns = ()
    cases: Patterns = ()
    """As for `--case`; none means all."""
    if_unknown: Action | None = None
    """The consequence if the rule cannot be decided; None: as if it does not hold."""
    may_be_empty: bool | Literal["whole"] = False
    """True if the rule holds when it selects no case of the run. `whole`: then it holds only if --case,
    --tier and --shard left nothing out.
    """

    def selects(self, case: Case, patterns: Sequence[str]) -> bool:
        """patterns: those of `cases`, literal if a case of the run has that name."""
        chosen = ((self.tiers, case.tier), (self.targets, case.target))
        return case_ids.selects(patterns, case.id) and all(
            not allowed or matches(allowed, name) for allowed, name in chosen
        )

    @property
    def unknown_action(self) -> Action:
        return self.if_unknown or self.action


class VerdictRule(_Rule):
    """Holds if no case has one of these verdicts, or on each target the cases stay within one of the
    bounds.
    """

    kind: Literal["verdict"]
    verdicts: Annotated[tuple[Verdict, ...], Field(min_length=1)]
    more_than_percent: Annotated[float, Field(ge=0, le=100)] = 0.0
    """The share of the compared cases of a target."""
    more_than_cases: Annotated[int, Field(ge=0)] = 0
    """So many are allowed, whatever their share: two of six cases are a third, but no large share."""

    @property
    def is_share(self) -> bool:
        return bool(self.more_than_percent or self.more_than_cases)


class MeaningRule(_Rule):
    """Holds if no changed case has such a meaning, and no GPU wrote outputs beyond the launch's tolerance,
    whether the case changed or not.

    Unknown for a case whose meaning was not read; for hazards and rounding if a case is not shown to compute
    the same; for `wrong outputs` if no GPU ran the case.
    """

    kind: Literal["meaning"]
    meanings: Annotated[tuple[Meaning | Literal["wrong outputs"], ...], Field(min_length=1)]
    equal_outputs_settle: bool = False
    """Bitwise equal outputs on every GPU that ran both sides settle a finding. One run rules out no race."""


class CostRule(_Rule):
    """Holds if no case takes longer by more than `percent`, at the lower end of the measured interval.
    Without timings of a changed case it holds for `no change expected`, does not for `likely slower`, and is
    unknown otherwise.
    """

    kind: Literal["cost"]
    percent: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    measured_only: bool = False
    """Every case without timings is unknown, whatever is predicted."""

    @model_validator(mode="after")
    def _expectations_are_that_fine(self) -> CostRule:
        if self.percent < 1 and not self.measured_only:
            raise ValueError(
                "percent below 1 needs measured_only = true: `no change expected` means within 1 %"
            )
        return self


class FactRule(_Rule):
    """Holds if in no changed case one of these figures rises; occupancy, blocks, `fits` and `deterministic`
    must not fall. Unknown if no side has any of them.
    """

    kind: Literal["fact"]
    facts: Annotated[tuple[Name, ...], Field(min_length=1)]
    """Names of statistics (`spills`, `occupancy`), of single facts of a binary, or of `MORE_FACTS`."""
    more_than: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The allowed move, in the fact's unit."""
    more_than_percent: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """The same in percent of base; only a move beyond both is denied."""

    @model_validator(mode="after")
    def _compile_time_is_alone(self) -> FactRule:
        if COMPILE_S in self.facts and len(self.facts) > 1:
            raise ValueError(f"{COMPILE_S!r} is a figure of a target: give it a rule of its own")
        return self


FITS = "fits"
"""At least one block of head's code fits on a multiprocessor of the target."""
DETERMINISTIC = "deterministic"
"""Head's compiler gave the same code when the case was compiled again."""
COMPILE_S = "compile_s"
"""Seconds of all cases of a target that both sides compiled."""
MORE_FACTS = (FITS, DETERMINISTIC, COMPILE_S)
"""Facts that are not read from a binary."""


class CoverageRule(_Rule):
    """The fields below `requires` are for `compared` alone."""

    kind: Literal["coverage"]
    requires: Requires = Requires.COMPARED
    required_targets: tuple[Name, ...] = ()
    min_compared: Annotated[int, Field(ge=1)] = 1
    or_whole: bool = False
    """A corpus with fewer cases for the target suffices too, if nothing of it was left out and every workload
    could be captured.
    """
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


def matches(patterns: tuple[str, ...], name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def load(path: Path) -> Policy:
    """Raises UsageError with the place of the mistake."""
    return parse(toml_file.read(path), str(path))


def for_targets(policy: Policy, targets: Sequence[str]) -> Policy:
    """Adapts the rules to a repository that compares only these targets."""
    rules = (
        rule.model_copy(update={"required_targets": required(rule.required_targets, targets)})
        if isinstance(rule, CoverageRule) and rule.requires is Requires.COMPARED
        else rule
        for rule in policy.rule
    )
    return replace(policy, rule=tuple(rules))


def required(by_rule: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    """Returns those of a rule that the repository compares, or else all that it compares."""
    return tuple(target for target in by_rule if target in targets) or tuple(targets)


def parse(tables: Mapping[str, object], where: str) -> Policy:
    """Raises UsageError. For a file of an earlier irdiff it has the new spelling of each rule."""
    earlier_policy.refuse(tables, where)
    policy = toml_file.checked(adapter(Policy), tables, where, "a policy")
    ids = [rule.id for rule in policy.rule]
    for rule_id in ids:
        if ids.count(rule_id) > 1:
            raise UsageError(
                f"{where} has two rules with the id {rule_id!r}", hint="give one of them another id"
            )
    return policy
