"""TOML files that users write, read by a schema: a mistake is said with file, place and what was meant."""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from irdiff.errors import UsageError

MAX_BYTES = 1 << 20
_MAX_SAID = 5
_MISSING = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
_UNKNOWN = frozenset({"extra_forbidden", "unexpected_keyword_argument"})
Read = TypeVar("Read")
_Schema = Mapping[str, Any]


def read(path: Path, max_bytes: int = MAX_BYTES) -> dict[str, object]:
    """The tables of a file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            content = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    return parse(content, str(path), max_bytes)


def parse(content: bytes, where: str, max_bytes: int = MAX_BYTES) -> dict[str, object]:
    """The tables of a text. Raises UsageError."""
    if len(content) > max_bytes:
        raise UsageError(f"{where} is larger than {max_bytes} bytes")
    try:
        return tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{where} is not TOML: {error}") from error


def checked(schema: TypeAdapter[Read], rows: object, where: str, what: str, *, hint: str = "") -> Read:
    """What the rows say by their schema. Raises UsageError, "`where` is not `what`", with each mistake."""
    try:
        return schema.validate_python(rows)
    except ValidationError as error:
        said = [_mistake(row, schema) for row in error.errors(include_url=False)[:_MAX_SAID]]
        raise UsageError(f"{where} is not {what}:\n  " + "\n  ".join(said), hint=hint) from error


def _mistake(row: Mapping[str, Any], schema: TypeAdapter[Any]) -> str:
    place = ".".join(map(_word, row["loc"]))
    if row["type"] in _MISSING:
        return f"{place}: is missing"
    if row["type"] in _UNKNOWN:
        *outer, key = row["loc"]
        return f"{place}: {_instead(_word(key), _keys(schema.json_schema(), outer))}"
    message = str(row["msg"]).removeprefix("Value error, ")
    return f"{place}: {message}" if place else message


def _word(step: int | str) -> str:
    """A revision's own file may have anything for a key."""
    word = str(step)[:80]
    return word if word.isprintable() else ascii(word)


def _instead(key: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(key, known, n=1)
    if near:
        return f"there is no such key; did you mean {near[0]!r}?"
    return "there is no such key; known here: " + ", ".join(known)


def _keys(schema: _Schema, place: Sequence[int | str]) -> list[str]:
    """The keys that a JSON schema has for the table at a place of the data."""
    found: list[_Schema] = [schema]
    for step in place:
        found = [inner for outer in found for inner in _inside(outer, step, schema)]
    tables = [table for one in found for table in _plain(one, schema)]
    return sorted({key for table in tables for key in table.get("properties", {})})


def _inside(outer: _Schema, step: int | str, schema: _Schema) -> Iterator[_Schema]:
    mapping = outer.get("discriminator", {}).get("mapping", {})
    if step in mapping:  # pydantic names the chosen kind of a union as a step of its own
        yield {"$ref": mapping[step]}
        return
    for table in _plain(outer, schema):
        if isinstance(step, int):
            yield table.get("items", {})
        else:
            yield table.get("properties", {}).get(step, {})


def _plain(one: _Schema, schema: _Schema) -> Iterator[_Schema]:
    """Itself, or each of what it refers to."""
    if "$ref" in one:
        yield from _plain(schema["$defs"][one["$ref"].rpartition("/")[2]], schema)
    elif choices := one.get("anyOf") or one.get("oneOf"):
        for choice in choices:
            yield from _plain(choice, schema)
    else:
        yield one
