"""The native sources in which two revisions of a checkout differ, and the MLIR passes that each one defines.

A `.td` file defines a pass with `def NAME : Pass<…>`, and the file that implements it names `NAMEBase`.
Only a file's own text counts: which passes call a function of it is not known.
"""

from __future__ import annotations

import re

from irdiff.model import Sides
from irdiff.resolve.toolchains.checkout import Checkout, texts

_PASS = re.compile(r"^\s*def\s+(\w+)\s*:\s*Pass<", re.MULTILINE)
_BASE = re.compile(r"\b(\w+)Base\b")
_SOURCES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".td")


def differing(checkouts: Sides[Checkout]) -> list[str]:
    """Paths of native inputs that are not the same on both sides."""
    rows = checkouts.map(lambda side: {(path, *entry.content) for path, entry in side.native.items()})
    return sorted({path for path, *_ in rows.base ^ rows.head})


def passes_of_edits(checkouts: Sides[Checkout]) -> dict[str, list[str]]:
    """By edited source. Names are those of head, whose sources may define new passes."""
    edited = [path for path in differing(checkouts) if path.endswith(_SOURCES)]
    if not edited:
        return {}
    tables = texts(checkouts.head.files, (path for path in checkouts.head.native if path.endswith(".td")))
    known = {name for text in tables.values() for name in _PASS.findall(text)}
    found = texts(checkouts.head.files, edited)
    return {path: _defined(path, found.get(path, ""), known) for path in edited}


def _defined(path: str, text: str, known: set[str]) -> list[str]:
    names = _PASS.findall(text) if path.endswith(".td") else _BASE.findall(text)
    return sorted(set(names) & known)
