"""Reads TOML files that users write, and reports a mistake with file, place and a suggestion."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from irdiff.errors import UsageError

MAX_BYTES = 1 << 20
_MAX_MISTAKES = 5
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
Read = TypeVar("Read")


def read(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, object]:
    """Raises UsageError."""
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", hint="name a TOML file that you may read"
        ) from error
    return parse(content, str(path), max_bytes)


def parse(content: bytes, where: str, max_bytes: int = MAX_BYTES) -> dict[str, object]:
    """Raises UsageError."""
    if len(content) > max_bytes:
        raise UsageError(
            f"{where} is larger than {max_bytes:,} bytes, the most that irdiff reads",
            hint="see that it is the file that you mean; remove what irdiff does not read",
        )
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{where} is not valid TOML: {error}", hint='mend that line; strings need quotes: name = "value"'
        ) from error


def checked(schema: TypeAdapter[Read], tables: object, where: str, kind: str, *, hint: str = "") -> Read:
    """Raises UsageError, "`where` is not `kind`", with each mistake."""
    try:
        return schema.validate_python(tables)
    except ValidationError as error:
        problems = _without_consequences(error.errors(include_url=False))
        mistakes = [_mistake(problem, schema) for problem in problems[:_MAX_MISTAKES]]
        raise UsageError(f"{where} is not {kind}:\n  " + "\n  ".join(mistakes), hint=hint) from error


def _without_consequences(problems: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """A list is too short for pydantic without an item that has a mistake of its own."""
    places = [problem["loc"] for problem in problems]
    return [
        problem
        for problem, place in zip(problems, places, strict=True)
        if problem["type"] != "too_short"
        or not any(other != place and other[: len(place)] == place for other in places)
    ]


def _mistake(problem: Mapping[str, Any], schema: TypeAdapter[Any]) -> str:
    place = ".".join(map(_word, problem["loc"]))
    if problem["type"] in _MISSING:
        return f"{place}: is missing"
    if problem["type"] in _UNKNOWN:
        word, keys = _word(problem["loc"][-1]), _keys(schema.json_schema())
        if word in keys:
            return f"{place}: it stands in the wrong table"
        near = difflib.get_close_matches(word, keys, n=1)
        return f"{place}: there is no such key" + (f"; did you mean {near[0]!r}?" if near else "")
    message = str(problem["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _word(step: int | str) -> str:
    """Escapes a key: a revision's own file may have anything for a key."""
    word = str(step)[:80]
    return word if word.isprintable() else ascii(word)


def _keys(schema: Mapping[str, Any]) -> list[str]:
    tables = (schema, *schema.get("$defs", {}).values())
    return sorted({key for table in tables for key in table.get("properties", {})})
