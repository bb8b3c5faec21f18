"""The acceptance file: findings that a person accepts until a day, kept under version control.

An entry holds for the concrete changes of some cases between two toolchains. Or it holds, with an issue, for
one rule on some cases, targets, files or notes, however they change. Another change of the same case,
another case of the group and another toolchain must be reviewed again.
"""

from __future__ import annotations

import dataclasses as plain
import datetime
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from irdiff.adapters import adapter
from irdiff.errors import UsageError
from irdiff.gate.policy import Patterns
from irdiff.model import Run
from irdiff.resolve import toml_file

SCHEMA = "irdiff-accepted/4"
_EARLIER = ("irdiff-accepted/2", "irdiff-accepted/3")
MAX_BYTES = 16 << 20
"""A hundred times the changed cases of a release, each in one line."""
_STRICT = ConfigDict(extra="forbid")
_HEADING = f"""\
# What was looked at and accepted: `irdiff gate RUN --accept NAME` adds entries.
# An entry holds until the end of its last day: for its changes between its two toolchains, or for one rule.
schema = "{SCHEMA}"
"""
_OF_CHANGES = ("group", "base", "base_toolchain", "head", "head_toolchain", "normalizer")
_URL = r"https://.{5}.*"

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
OptionalDigest = Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")]


def is_url(text: str) -> bool:
    return re.fullmatch(_URL, text) is not None


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Accepted:
    owner: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    on: datetime.date
    expires: datetime.date
    """The last day on which the acceptance holds."""
    rule: Annotated[str, Field(max_length=200)] = ""
    """The one rule whose findings it settles. If empty, every rule with action `review`."""
    issue: Annotated[str, Field(pattern=rf"^({_URL})?$")] = ""
    """Tracks the fix; required with `rule`."""
    cases: Patterns = ()
    targets: Patterns = ()
    """Narrow `cases`; alone, settle findings of a target as a whole."""
    files: Patterns = ()
    notes: Patterns = ()
    """Clauses that say what was not compared, as the gate prints them."""
    group: Annotated[str, Field(max_length=200)] = ""
    """The change group in which the changes were reviewed, or the rule that reported them."""
    title: str = ""
    base: str = ""
    base_toolchain: OptionalDigest = ""
    head: str = ""
    head_toolchain: OptionalDigest = ""
    normalizer: str = ""
    """The version of the normalizers; another one may give a change another digest."""
    changes: Mapping[str, Digest] = plain.field(default_factory=dict)
    """Case id → `Case.edit`."""
    measured: Patterns = ()
    """`RULE CASE`: what a GPU had measured of these changes when they were accepted. A later measurement is a
    new finding.
    """

    def has_seen(self, rule: str, case: str) -> bool:
        return f"{rule} {case}" in self.measured

    @model_validator(mode="after")
    def _is_of_changes_or_of_a_rule(self) -> Accepted:
        if self.changes and self.subjects:
            raise ValueError(
                "it names both changes and cases, targets, files or notes: make two entries of it"
            )
        if self.changes and (missing := [name for name in _OF_CHANGES if not getattr(self, name)]):
            raise ValueError(f"{missing[0]} is missing, which changes need")
        if not self.changes and not self.rule:
            raise ValueError("it names neither changes nor a rule")
        if not self.changes and not self.subjects:
            raise ValueError("it names no changes, cases, targets, files or notes")
        if self.rule and not self.issue:
            raise ValueError("issue is missing, which an acceptance of a rule needs")
        return self

    @property
    def subjects(self) -> tuple[str, ...]:
        return (*self.cases, *self.targets, *self.files, *self.notes)

    def is_of_toolchains(self, run: Run) -> bool:
        return (self.base_toolchain, self.head_toolchain) == (run.base.digest, run.head.digest)

    @property
    def words(self) -> str:
        """`jane on 2026-01-02 until 2026-03-31: WHY (ISSUE)`."""
        issue = f" ({self.issue})" if self.issue else ""
        return f"{self.owner} on {self.on} until {self.expires}: {self.reason}{issue}"

    @property
    def decision(self) -> dict[str, Any]:
        names = ("owner", "reason", "on", "expires", "rule", "issue", "group")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class _AcceptanceFile:
    schema: Literal["irdiff-accepted/4"]
    accepted: tuple[Accepted, ...] = ()


def load(path: Path) -> tuple[Accepted, ...]:
    """Raises UsageError."""
    return parse(toml_file.read(path, MAX_BYTES), str(path))


def parse(tables: Mapping[str, object], where: str) -> tuple[Accepted, ...]:
    """Raises UsageError with the place of the mistake."""
    is_earlier = tables.get("schema") in _EARLIER
    new = f'schema = "{SCHEMA}", and [accepted.changes] in place of [accepted.edits]'
    hint = f"its entries still hold: write {new}" if is_earlier else ""
    return toml_file.checked(
        adapter(_AcceptanceFile), tables, where, "an acceptance file", hint=hint
    ).accepted


def append(path: Path, entries: tuple[Accepted, ...], present: tuple[Accepted, ...]) -> None:
    """Raises UsageError."""
    text = "".join(_as_toml(entry) for entry in entries if entry not in present)
    try:
        if path.exists():
            _check_that_tables_may_follow(path, text)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _HEADING + text
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror}", hint="name another file: --accepted FILE"
        ) from error


def _check_that_tables_may_follow(path: Path, text: str) -> None:
    """TOML forbids `[[accepted]]` behind `accepted = [...]`. Raises UsageError."""
    try:
        tomllib.loads(path.read_text(encoding="utf-8") + text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(
            f"{path} was not changed: with the new entries it would not be valid TOML: {error}",
            hint="write each entry of `accepted = [...]` as a table [[accepted]], and remove that line",
        ) from error


def _as_toml(entry: Accepted) -> str:
    values = {name: value for name, value in plain.asdict(entry).items() if value}
    changes = values.pop("changes", {})
    lines = ["\n[[accepted]]", *(f"{name} = {_value(value)}" for name, value in values.items())]
    if changes:
        lines.append("[accepted.changes]")
        lines += [f"{_string(case_id)} = {_string(digest)}" for case_id, digest in sorted(changes.items())]
    return "\n".join(lines) + "\n"


def _value(value: str | datetime.date | tuple[str, ...]) -> str:
    match value:
        case datetime.date():
            return value.isoformat()
        case str():
            return _string(value)
        case names:
            return f"[{', '.join(map(_string, names))}]"


def _string(text: str) -> str:
    # JSON's escapes are TOML's, apart from DEL, which TOML wants escaped and JSON leaves alone.
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
