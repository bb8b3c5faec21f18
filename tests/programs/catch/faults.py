"""Faults, where they are kept, and where each one is in a tree."""

from __future__ import annotations

import ast
import csv
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parents[2] / "data" / "catch"
MUTANTS = DATA / "mutants.tsv"
_WORD = re.compile(r"[A-Za-z_]\w*")
DEFECTS = DATA / "defects.toml"
_TELLING = 20
"""Characters of a text that is known by itself, whatever function holds it."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One small edit that makes the program wrong."""

    name: str
    area: str
    kind: str
    path: str
    """The file that held it when it was chosen: `irdiff/gate/rules.py`."""
    function: str
    """The qualified name of the function that holds it; empty for text outside of functions."""
    before: str
    after: str
    nth: int
    """Which of the equal texts within the function, from 0."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A fault in one tree: the file's text with it, and the lines that it changes."""

    path: str
    text: str
    lines: range


def read() -> list[Fault]:
    return [*mutants(), *defects()]


def mutants() -> list[Fault]:
    with MUTANTS.open(newline="") as opened:
        rows = list(csv.DictReader(opened, dialect="excel-tab"))
    return [Fault(**{**row, "nth": int(row["nth"])}) for row in rows]


def defects() -> list[Fault]:
    """Defects name the commit that fixed them."""
    found = tomllib.loads(DEFECTS.read_text())["defect"]
    return [
        Fault(
            name=f"{entry['commit']} {entry['wrong']}",
            area="history",
            kind="defect",
            path=entry["path"],
            function="",
            before=entry["right"],
            after=entry["defect"],
            nth=0,
        )
        for entry in found
    ]


def locate(fault: Fault, tree: Path) -> Place | None:
    """Where a fault is: in its function, else in the one place of irdiff that has its text now."""
    find = _text_places if fault.kind == "defect" else _node_places
    path = tree / fault.path
    if path.is_file() and (found := find(fault, fault.path, path.read_text(), fault.function)):
        return found[min(fault.nth, len(found) - 1)]
    found = [
        place
        for path in sorted((tree / "irdiff").rglob("*.py"))
        for place in find(fault, str(path.relative_to(tree)), path.read_text(), "")
    ]
    return found[0] if len(found) == 1 and len(fault.before) > _TELLING else None


def _text_places(fault: Fault, path: str, text: str, _: str) -> list[Place]:
    if text.count(fault.before) != 1:
        return []
    first = text.count("\n", 0, text.index(fault.before)) + 1
    return [
        Place(
            path=path,
            text=text.replace(fault.before, fault.after),
            lines=range(first, first + fault.before.rstrip("\n").count("\n") + 1),
        )
    ]


def _node_places(fault: Fault, path: str, text: str, within: str) -> list[Place]:
    """Each place of the text, in the function of that name or in any."""
    if not all(word in text for word in _WORD.findall(f"{within} {fault.before}")):
        return []
    wanted = ast.stmt if fault.kind.endswith("statement") else ast.expr
    return [
        splice(path, text, node, fault.after)
        for name, function in functions(ast.parse(text))
        if within in ("", name)
        for node in ast.walk(function)
        if isinstance(node, wanted) and ast.unparse(node) == fault.before
    ]


def splice(path: str, text: str, node: ast.expr | ast.stmt, after: str) -> Place:
    """The text with the source of one node replaced. Columns of `ast` count bytes of UTF-8."""
    rows = text.encode().splitlines(keepends=True)
    last = (node.end_lineno or node.lineno) - 1
    first = node.lineno - 1
    ending = rows[last][node.end_col_offset :]
    rows[first : last + 1] = [rows[first][: node.col_offset] + after.encode() + ending]
    return Place(path=path, text=b"".join(rows).decode(), lines=range(node.lineno, last + 2))


def functions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, ast.FunctionDef]]:
    """Each function and method with its qualified name; nested functions belong to the outer one."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield f"{within}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{within}{node.name}.")
        elif not isinstance(node, ast.expr):
            yield from functions(node, within)
