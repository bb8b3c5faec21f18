"""Computes the digest of the code of a step: a module, and all modules of irdiff that it imports at the left
margin.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(
    r"^(?:from (irdiff[\w.]*) import (\([^)]*\)|[^\n]*)|import (irdiff[\w.]+))", re.MULTILINE
)
_WORD = re.compile(r"(?<!as )\b(?!as\b)\w+")


@functools.cache
def digest_of(module: str) -> str:
    return digest_below(PACKAGE, module)


def digest_below(package: Path, module: str) -> str:
    """Like `digest_of`, for a copy of irdiff."""
    modules: dict[str, str] = {}
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in modules and (source := _source(package, name)):
            modules[name], imports = source
            waiting += imports
    return hashlib.sha256(repr(sorted(modules.items())).encode()).hexdigest()


@functools.cache
def _source(package: Path, name: str) -> tuple[str, tuple[str, ...]] | None:
    """Returns the digest of a module, and its imports; None for a name inside a module."""
    below = package.joinpath(*name.split(".")[1:])
    path = next((path for path in (below.with_suffix(".py"), below / "__init__.py") if path.is_file()), None)
    if path is None:
        return None
    content = path.read_bytes()
    return hashlib.sha256(content).hexdigest(), tuple(imported(content.decode()))


def imported(text: str) -> Iterator[str]:
    """Includes the packages of the modules, except `irdiff`: its `__init__.py` only holds irdiff's
    version.
    """
    for match in _IMPORT.finditer(text):
        parent, words, whole = match.groups()
        names = (
            [f"{parent}.{word}" for word in _WORD.findall(re.sub("#.*", "", words))] if parent else [whole]
        )
        for name in names:
            parts = name.split(".")
            yield from (".".join(parts[:count]) for count in range(2, len(parts) + 1))
