"""`run.json` row by row, so that nobody holds all of a large run as text or as JSON.

irdiff writes each entry of the run on a line of its own, and of the three long ones (parts, launches and
cases, in this order, after all others) each row. A row is a whole JSON value, and no JSON string holds a
line feed: so what the rows say is what the document says. One that was written otherwise is read as a whole,
and its rows are made of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

LONG = ("parts", "launches", "cases")
"""Entries of the run that are read by row, in the order in which they are written."""
_BRACKETS = {"parts": ("[", "]"), "launches": ("{", "}"), "cases": ("[", "]")}
_ENTRY = re.compile(rb' "(\w+)": (.*)')


class OtherLayoutError(Exception):
    """The document is not written as irdiff writes it; it may be a run all the same."""


@dataclass(frozen=True, slots=True)
class Row:
    entry: str
    """Of the run: `schema`, `cases`."""
    text: bytes
    """Its JSON. A row of launches is an object with one entry."""
    is_part: bool
    """Whether it is one row of a long entry, not the whole entry."""


def written(
    entries: Iterable[tuple[str, object]], long: Iterable[tuple[str, Iterator[str]]]
) -> Iterator[bytes]:
    """The document, of its short entries and of the rows of its long ones, which are JSON."""
    yield b"{"
    separator = ""
    for name, value in entries:
        yield f'{separator}\n "{name}": {json.dumps(value)}'.encode()
        separator = ","
    for name, rows in long:
        opening, closing = _BRACKETS[name]
        yield f'{separator}\n "{name}": {opening}'.encode()
        for number, row in enumerate(rows):
            yield f"{',' if number else ''}\n  {row}".encode()
        yield f"\n {closing}".encode()
        separator = ","
    yield b"\n}\n"


def of_file(file: BinaryIO) -> Iterator[Row]:
    """The rows of a file, as they are asked for. Raises OtherLayoutError."""
    lines = (line.rstrip(b"\n") for line in file)
    if next(lines, b"") != b"{":
        raise OtherLayoutError
    seen: set[str] = set()
    more, ended = True, False
    for line in lines:
        if ended := line == b"}":
            break
        found = _ENTRY.fullmatch(line)
        name = found[1].decode() if found else ""
        order = [entry for entry in LONG if entry in {*seen, name}]
        is_expected = name not in seen and (name not in LONG or order[-1] == name)
        if not found or not more or not is_expected or not (seen or name == "schema"):
            raise OtherLayoutError
        seen.add(name)
        value = found[2].removesuffix(b",")
        opening, closing = _BRACKETS.get(name, ("", ""))
        if value == found[2] == opening.encode():
            yield Row(name, f"{opening}{closing}".encode(), is_part=False)
            more = yield from _rows(lines, name, closing.encode())
        else:
            more = value != found[2]
            yield Row(name, value, is_part=False)
    if more or not ended or any(line.strip() for line in lines):
        raise OtherLayoutError


def _rows(lines: Iterator[bytes], name: str, closing: bytes) -> Generator[Row, None, bool]:
    """Up to the line that ends them; returns whether another entry follows."""
    more, first = True, True
    for line in lines:
        text = line.removesuffix(b",")
        if text == b" " + closing and (first or not more):
            return text != line
        if not more:
            break
        more, first = text != line, False
        yield Row(name, b"{%b}" % text if closing == b"}" else text, is_part=True)
    raise OtherLayoutError


def of_content(content: bytes) -> Iterator[Row]:
    """The rows of a document of any layout. Raises ValueError or RecursionError for what is no object."""
    document: Any = json.loads(content.decode())
    if not isinstance(document, dict):
        raise ValueError("it is not a JSON object")
    yield Row("schema", json.dumps(document.pop("schema", None)).encode(), is_part=False)
    long = {name: document.pop(name) for name in LONG if _is_long(document.get(name), name)}
    for name, value in document.items():
        yield Row(name, json.dumps(value).encode(), is_part=False)
    for name, value in long.items():
        yield Row(name, "".join(_BRACKETS[name]).encode(), is_part=False)
        rows = ({key: row} for key, row in value.items()) if isinstance(value, dict) else value
        for row in rows:
            yield Row(name, json.dumps(row).encode(), is_part=True)


def _is_long(value: object, name: str) -> bool:
    return isinstance(value, dict if name == "launches" else list)
