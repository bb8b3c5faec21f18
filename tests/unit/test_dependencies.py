"""What irdiff imports and what pyproject.toml declares are the same, so that neither goes stale."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable
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


def imported(nodes: Iterable[ast.AST]) -> set[str]:
    """Distributions of what these nodes import."""
    heads = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            heads |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            heads.add(str(node.module).partition(".")[0])
    others = heads - {"irdiff", "irdiff_worker"} - ELSEWHERE - set(sys.stdlib_module_names)
    return {DISTRIBUTIONS.get(name, name.lower()) for name in others}


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower() for requirement in requirements}


TREES = {
    path.relative_to(PACKAGE).parts: ast.parse(path.read_text(encoding="utf-8"))
    for path in PACKAGE.rglob("*.py")
    if not {"worker", "_shipped"} & set(path.relative_to(PACKAGE).parts)
}
"""All but the worker, which runs in a toolchain, and the copies that a built wheel ships."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
CORE = names(PROJECT["dependencies"])
EXTRAS = {name for rows in PROJECT["optional-dependencies"].values() for name in names(rows)}


def test_what_is_imported_is_declared_once_and_what_is_declared_is_imported() -> None:
    used = set().union(*(imported(ast.walk(tree)) for tree in TREES.values()))
    assert used == CORE | EXTRAS
    assert not CORE & EXTRAS


def test_what_an_extra_brings_is_imported_by_who_asks_for_it() -> None:
    """The program starts without any extra: `timing` and `history` alone import those of their own at the top of a module."""
    assert {parts[0] for parts, tree in TREES.items() if imported(tree.body) & (EXTRAS - CORE)} <= {
        "timing",
        "history",
    }


def test_the_lock_holds_every_dependency() -> None:
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    assert {name.lower() for name in re.findall(r"^([\w.-]+)==", lock, re.MULTILINE)} >= CORE
