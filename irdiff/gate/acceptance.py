"""The acceptance file: change groups that a person has looked at and takes, kept under version control.

A group's id is the digest of its canonical edit, so another edit to the same kernels is another id, and
nobody accepts it by having accepted this one.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from irdiff.errors import UsageError
from irdiff.model import ChangeGroup, Run

SCHEMA = "irdiff-accepted/1"
_STRICT = ConfigDict(extra="forbid")
_HEADING = f"""\
# Change groups that were reviewed and accepted; `irdiff gate --accept GROUP` adds to it.
# A group is the digest of its canonical edit: another edit needs another entry.
schema = "{SCHEMA}"
"""


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class Accepted:
    group: Annotated[str, Field(min_length=1, max_length=200)]
    title: str
    owner: Annotated[str, Field(min_length=1, max_length=200)]
    reason: Annotated[str, Field(min_length=10, max_length=1000)]
    base: str
    head: str
    """Of the run in which it was looked at."""
    on: datetime.date


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class _File:
    schema: Literal["irdiff-accepted/1"]
    accepted: tuple[Accepted, ...] = ()


_file = TypeAdapter(_File)


def parse(rows: Mapping[str, object], where: str) -> tuple[Accepted, ...]:
    """Raises UsageError with the place of the mistake."""
    try:
        return _file.validate_python(rows).accepted
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{where} is not an acceptance file: {place}: {first['msg']}") from error


def accept(
    run: Run, group_ids: tuple[str, ...], *, owner: str, reason: str, on: datetime.date
) -> tuple[Accepted, ...]:
    """Entries for groups of this run. An id may be cut to 8 or more characters, as git's may.

    Raises UsageError for a group that the run does not have: only what was seen can be accepted.
    """
    return tuple(
        Accepted(
            group=(group := _find(run, wanted)).id,
            title=group.title[:200],
            owner=owner,
            reason=reason,
            base=run.base.spec,
            head=run.head.spec,
            on=on,
        )
        for wanted in group_ids
    )


def _find(run: Run, wanted: str) -> ChangeGroup:
    found = [group for group in run.groups if group.id == wanted]
    if not found and len(wanted) >= 8:
        found = [group for group in run.groups if group.id.startswith(wanted)]
    if len(found) != 1:
        what = "no change group" if not found else f"{len(found)} change groups"
        raise UsageError(
            f"the run has {what} {wanted[:80]!a}", hint="`irdiff report RUN` shows the groups with their ids"
        )
    return found[0]


def append(path: Path, entries: tuple[Accepted, ...], known: tuple[Accepted, ...]) -> None:
    """Adds entries to the end of the file, and makes it where it is not there. Raises UsageError."""
    ids = {entry.group for entry in known}
    text = "".join(_as_toml(entry) for entry in entries if entry.group not in ids)
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = _HEADING + text
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _as_toml(entry: Accepted) -> str:
    rows = [
        ("group", _string(entry.group)),
        ("title", _string(entry.title)),
        ("owner", _string(entry.owner)),
        ("reason", _string(entry.reason)),
        ("base", _string(entry.base)),
        ("head", _string(entry.head)),
        ("on", entry.on.isoformat()),
    ]
    return "\n[[accepted]]\n" + "".join(f"{name} = {value}\n" for name, value in rows)


def _string(text: str) -> str:
    # JSON's escapes are TOML's, apart from DEL, which TOML wants escaped and JSON leaves alone.
    return json.dumps(text, ensure_ascii=True).replace("\x7f", "\\u007f")
