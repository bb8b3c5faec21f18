"""Computes the digest of the code of a step: a module, and all modules of irdiff that it imports at the left
margin.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PACKAGE = Path(__file__).parents[1]
_IMPORT = re.compile(
    r"^(?:from (irdiff[\w.]*) import (\([^)]*\)|[^\n]*)|import (irdiff[\w.]+))", re.MULTILINE
)
_WORD = re.compile(r"(?<!as )\b(?!as\b)\w+")


def _stamps(paths: Iterable[Path]) -> Mapping[Path, tuple[int, int, int]]:
    return {path: (stat.st_mtime_ns, stat.st_size, stat.st_ino) for path in paths for stat in [path.stat()]}


_AT_START = _stamps(PACKAGE.rglob("*.py"))


def is_as_loaded() -> bool:
    """False once a file of irdiff changed since this process began, as in an update. What it computes from
    then on may be the work of old code, of new code or of both.
    """
    try:
        return _stamps(_AT_START) == _AT_START
    except OSError:
        return False


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
