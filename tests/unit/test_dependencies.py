"""What irdiff imports and what pyproject.toml declares are the same, so that neither goes stale."""

from __future__ import annotations

import ast
import functools
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "irdiff"
DISTRIBUTIONS = {
    "cuda": "cuda-bindings",
    "git": "gitpython",
    "github": "pygithub",
    "pydantic_core": "pydantic",
}
"""Import name → distribution, where the two differ."""
ELSEWHERE = {"hip"}
"""Of ROCm: hip-python is matched to its release, and comes from AMD's own index."""


def modules() -> Iterator[Path]:
    """All but the worker, which runs in a toolchain, and the copies that a built wheel ships."""
    for path in PACKAGE.rglob("*.py"):
        if not {"worker", "_shipped"} & set(path.relative_to(PACKAGE).parts):
            yield path


def imported(tree: ast.AST) -> set[str]:
    """Distributions of what is imported, at any depth."""
    heads = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            heads |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            heads.add(str(node.module).partition(".")[0])
    others = heads - {"irdiff", "irdiff_worker"} - ELSEWHERE - set(sys.stdlib_module_names)
    return {DISTRIBUTIONS.get(name, name.lower()) for name in others}


def imported_at_once(tree: ast.Module) -> set[str]:
    """Distributions of what is imported when the module is."""
    return imported(
        ast.Module(
            body=[node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)],
            type_ignores=[],
        )
    )


@functools.cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in modules()}


@functools.cache
def used() -> set[str]:
    return set().union(*map(imported, trees().values()))


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower() for requirement in requirements}


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = names(PROJECT["dependencies"])
EXTRAS = {name for rows in PROJECT["optional-dependencies"].values() for name in names(rows)}


def test_what_is_imported_is_declared() -> None:
    assert not used() - CORE - EXTRAS


def test_what_is_declared_is_imported() -> None:
    assert not (CORE | EXTRAS) - used()


def test_what_an_extra_brings_is_imported_by_who_asks_for_it() -> None:
    """The program starts without any extra: `timing` and `history` alone import those of their own at the top of a module."""
    at_once = {
        (path.relative_to(PACKAGE).parts[0], name)
        for path, tree in trees().items()
        for name in imported_at_once(tree) & (EXTRAS - CORE)
    }
    assert {part for part, _ in at_once} <= {"timing", "history"}


def test_nothing_is_both_core_and_extra() -> None:
    assert not CORE & EXTRAS


def test_the_lock_holds_every_dependency() -> None:
    locked = re.findall(
        r"^([\w.-]+)==", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert {name.lower() for name in locked} >= CORE
