"""The acceptance file: edits that a person has looked at and takes, until a day, kept under version control.

A change group is for reading: it holds edits that differ in constants, types and positions. What is accepted
are the concrete edits of the cases that the group had in one run, between that run's two toolchains. Another
edit of the same case, another case of the same group, another toolchain: each has to be looked at again.
"""

from __future__ import annotations

import dataclasses as plain
import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.dataclasses import dataclass

from irdiff.errors import UsageError
from irdiff.model import ChangeGroup, Run
from irdiff.report import group_names
from irdiff.resolve import toml_file

SCHEMA = "irdiff-accepted/2"
MAX_BYTES = 16 << 20
"""A hundred times the edits of a release, each in one line."""
_STRICT = ConfigDict(extra="forbid")
_HEADING = f"""\
# Edits that were reviewed and accepted; `irdiff gate --accept GROUP` and `--renew` add to it.
# An entry holds for the very edits of its cases, between its two toolchains, until the end of its last day.
schema = "{SCHEMA}"
"""

Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Accepted:
    group: Annotated[str, Field(min_length=1, max_length=200)]
    """The change group that it was read in."""
    title: str
    owner: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    on: datetime.date
    expires: datetime.date
    """The last day on which the acceptance holds."""
    base: str
    base_toolchain: Digest
    head: str
    head_toolchain: Digest
    normalizer: str
    """The version of the normalizers that read the edits. Another one may give an edit another digest."""
    edits: Annotated[Mapping[str, Digest], Field(min_length=1)]
    """Case id → digest of its concrete edit."""

    def is_of_toolchains(self, run: Run) -> bool:
        return (self.base_toolchain, self.head_toolchain) == (run.base.digest, run.head.digest)


@plain.dataclass(frozen=True, kw_only=True)
class Acceptance:
    """Who takes an edit, why, and until when."""

    owner: str
    reason: str
    on: datetime.date
    expires: datetime.date


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class _AcceptanceFile:
    schema: Literal["irdiff-accepted/2"]
    accepted: tuple[Accepted, ...] = ()


_file = TypeAdapter(_AcceptanceFile)


def load(path: Path) -> tuple[Accepted, ...]:
    """Raises UsageError."""
    return parse(toml_file.read(path, MAX_BYTES), str(path))


def parse(rows: Mapping[str, object], where: str) -> tuple[Accepted, ...]:
    """Raises UsageError with the place of the mistake."""
    return toml_file.checked(_file, rows, where, "an acceptance file").accepted


def accept(run: Run, names: tuple[str, ...], decision: Acceptance) -> tuple[Accepted, ...]:
    """An entry for each name: of a change group, for all its cases in this run, or of one case.

    A group is named by its number in the run or by its id, which may be cut (`g:b140`). Raises UsageError for
    what the run does not have: only what was seen can be accepted.
    """
    edits = {case.id: case.edit for case in run.cases}
    entries = []
    for name in names:
        group, members = _find(run, name)
        found = {member: digest for member in members if (digest := edits[member]) is not None}
        if len(found) < len(members):
            raise UsageError(f"a case of group {group.id[:12]!a} has no edit: it cannot be accepted")
        entries.append(
            Accepted(group=group.id, title=group.title[:200], edits=found, **_terms(run, decision))
        )
    return tuple(entries)


def _terms(run: Run, decision: Acceptance) -> dict[str, Any]:
    return {
        **plain.asdict(decision),
        "base": run.base.spec,
        "base_toolchain": run.base.digest,
        "head": run.head.spec,
        "head_toolchain": run.head.digest,
        "normalizer": run.normalizer_version,
    }


def renew(run: Run, known: tuple[Accepted, ...], decision: Acceptance) -> tuple[Accepted, ...]:
    """The entries again, for this run's toolchains and another last day: of those edits that are the same.

    Nothing new is accepted so: each edit, constants and positions included, was looked at before, and the
    reason for it stays where none is given. Edits that are settled until that day already are left out.
    """
    edits = {case.id: case.edit for case in run.cases}
    settled = {
        row
        for entry in known
        if entry.is_of_toolchains(run) and entry.expires >= decision.expires
        for row in entry.edits.items()
    }
    entries = []
    for entry in reversed(known):  # of one edit the last entry counts
        same = {row for row in entry.edits.items() if row in edits.items()}
        again = dict(sorted(same - settled))
        settled |= same
        if again:
            terms = _terms(run, plain.replace(decision, reason=decision.reason or entry.reason))
            entries.append(plain.replace(entry, edits=again, **terms))
    return tuple(reversed(entries))


def _find(run: Run, name: str) -> tuple[ChangeGroup, tuple[str, ...]]:
    """Finds a group, and those of its cases that are meant."""
    of_case = {member: group for group in run.groups for member in group.members}
    if name in of_case:
        return of_case[name], (name,)
    found = group_names.find(run, name)
    if found is None:
        raise group_names.unknown(run, name)
    return found, found.members


def append(path: Path, entries: tuple[Accepted, ...], known: tuple[Accepted, ...]) -> None:
    """Adds entries to the end of the file, and makes it where it is not there. Raises UsageError."""
    text = "".join(_as_toml(entry) for entry in entries if entry not in known)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _HEADING + text
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _as_toml(entry: Accepted) -> str:
    rows = plain.asdict(entry)
    edits = rows.pop("edits")
    lines = [f"{name} = {_value(value)}" for name, value in rows.items()]
    edit_lines = [f"{_string(case_id)} = {_string(digest)}" for case_id, digest in sorted(edits.items())]
    parts = ["\n[[accepted]]", *lines, "[accepted.edits]", *edit_lines]
    return "\n".join(parts) + "\n"


def _value(value: str | datetime.date) -> str:
    return value.isoformat() if isinstance(value, datetime.date) else _string(value)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, apart from DEL, which TOML wants escaped and JSON leaves alone.
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
