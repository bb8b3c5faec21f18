"""Reads the versions that a repository pins, and finds the environment that its users work in.

uv.lock, pylock.toml, poetry.lock, pdm.lock, requirements.txt     versions of a revision
.venv                                                             an interpreter of the working tree
"""

from __future__ import annotations

import contextlib
import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

PROJECT = "pyproject.toml"
FILES = ("uv.lock", "pylock.toml", "poetry.lock", "pdm.lock", "requirements.lock", "requirements.txt")
ENVIRONMENT = ".venv"
_INCLUDED = re.compile(r"(?:-r|-c|--requirement|--constraint)(?:\s+|=)?(\S+)")
_OPTIONS = re.compile(r"(?:^|\s)(?:#|--|;\s*$).*")
"""The end of a line of requirements: a comment, or options that only pip reads."""
_MAX_INCLUDED = 20

Read = Callable[[str], bytes | None]
"""Returns the content of another file of the repository."""


def version(name: str, content: bytes, package: str = "triton", read: Read = lambda _: None) -> str | None:
    """Returns the exact version of a package that a lock or requirements file names for this Python."""
    text, wanted = content.decode(errors="replace"), canonicalize_name(package)
    table: Mapping[str, Any] | None = None
    if name.endswith((".lock", ".toml")):
        with contextlib.suppress(tomllib.TOMLDecodeError):  # requirements.lock
            table = tomllib.loads(text)
    if table is not None and "project" in table:
        text, table = "\n".join(_dependencies(table["project"])), None
    candidates = _required(name, text, wanted, read) if table is None else _locked(table, wanted)
    versions = set(candidates)
    return versions.pop() if len(versions) == 1 else None


def requirements(name: str, content: bytes, read: Read = lambda _: None) -> dict[str, set[str]]:
    """Returns everything that a lock or requirements file says, by package. A line without a package (an
    option, an address) is its own key.
    """
    text = content.decode(errors="replace")
    versions: dict[str, set[str]] = {}
    table: Mapping[str, Any] = {}
    if name.endswith((".lock", ".toml")):
        with contextlib.suppress(tomllib.TOMLDecodeError):
            table = tomllib.loads(text)
    if "project" in table:
        groups = table.get("dependency-groups", {})
        lines = iter([*_dependencies(table["project"]), *map(str, chain.from_iterable(groups.values()))])
    elif table:
        lines = iter(())
    else:
        lines = _lines(name, text, read, {name})
    for package in _packages(table):
        key: str = canonicalize_name(str(package.get("name")))
        versions.setdefault(key, set()).add(json.dumps(package, sort_keys=True, default=str))
    for line in lines:
        try:
            key = canonicalize_name(Requirement(line).name)
        except InvalidRequirement:
            key = line
        versions.setdefault(key, set()).add(line)
    return versions


def _packages(table: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    packages = table.get("package") or table.get("packages")
    return (
        [package for package in packages if isinstance(package, dict)] if isinstance(packages, list) else []
    )


def _lines(name: str, text: str, read: Read, seen: set[str]) -> Iterator[str]:
    """Includes the lines of included files."""
    for raw_line in text.replace("\\\n", " ").splitlines():
        if included := _INCLUDED.match(raw_line.strip()):
            other = posixpath.normpath(posixpath.join(posixpath.dirname(name), included[1]))
            content = read(other) if other not in seen and len(seen) < _MAX_INCLUDED else None
            seen.add(other)
            if content is not None:
                yield from _lines(other, content.decode(errors="replace"), read, seen)
            continue
        line = _OPTIONS.sub("", raw_line.strip()) or raw_line.strip().partition(" #")[0]
        if line and not line.startswith("#"):
            yield line


def _dependencies(project: Mapping[str, Any]) -> Iterator[str]:
    """Includes the extras."""
    for group in (project.get("dependencies", ()), *project.get("optional-dependencies", {}).values()):
        yield from map(str, group)


def _locked(table: Mapping[str, Any], wanted: str) -> Iterator[str]:
    """`[[package]]` of uv, poetry and pdm, `[[packages]]` of pylock.toml (PEP 751)."""
    for package in _packages(table):
        if canonicalize_name(str(package.get("name"))) != wanted:
            continue
        markers = [package.get(key) for key in ("marker", "markers", "resolution-markers")]
        if isinstance(package.get("version"), str) and all(map(_holds, filter(None, markers))):
            yield package["version"]


def _holds(marker: object) -> bool:
    """Takes any marker of uv's list, or of poetry's groups."""
    if isinstance(marker, Mapping):
        return any(map(_holds, marker.values()))
    if isinstance(marker, list):
        return any(map(_holds, marker))
    try:
        return Marker(str(marker)).evaluate()
    except InvalidMarker:
        return True


def _required(name: str, text: str, wanted: str, read: Read) -> Iterator[str]:
    for line in _lines(name, text, read, {name}):
        try:
            requirement = Requirement(line)
        except InvalidRequirement:
            continue
        if canonicalize_name(requirement.name) == wanted and (
            requirement.marker is None or requirement.marker.evaluate()
        ):
            yield from _exact(requirement.specifier)


def _exact(specifiers: Iterable[Any]) -> Iterator[str]:
    all_specifiers = list(specifiers)
    if (
        len(all_specifiers) == 1
        and all_specifiers[0].operator in ("==", "===")
        and "*" not in all_specifiers[0].version
    ):
        yield all_specifiers[0].version


def interpreter(root: Path | None) -> Path | None:
    """Returns the interpreter of the environment in a project's folder."""
    python = root / ENVIRONMENT / "bin" / "python" if root else None
    return python if python and python.is_file() else None


def installed(root: Path, package: str) -> str | None:
    """Returns the version in the environment of the project's folder."""
    spelled = package.replace("-", "_")
    folders = sorted((root / ENVIRONMENT).glob(f"lib/python*/site-packages/{spelled}-*.dist-info"))
    return folders[0].name.removesuffix(".dist-info").rpartition("-")[2] if folders else None
