"""Dependencies point one way: cli → pipeline → steps → model, errors."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from irdiff.worker_requests import NOT_COMPILING

PACKAGE = Path(__file__).parent.parent.parent / "irdiff"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts)
STDLIB_ONLY = {"model.py", "errors.py"}
PURE = {"compare", "normalize"}


def imported(path: Path) -> set[str]:
    """Absolute names of everything a module imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def in_worker(path: Path) -> bool:
    return (PACKAGE / "worker") in path.parents


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_import_rules(path: Path) -> None:
    names = imported(path)
    heads = {name.split(".")[0] for name in names}
    part = path.relative_to(PACKAGE).parts[0]
    if in_worker(path):
        assert "irdiff" not in heads, "the worker never imports irdiff"
        return
    if part != "timing":
        assert not heads & {"triton", "torch"}, "irdiff's own process never imports triton or torch"
    assert not any(name == "irdiff.worker" or name.startswith("irdiff.worker.") for name in names)
    if path.name in STDLIB_ONLY and len(path.relative_to(PACKAGE).parts) == 1:
        assert heads <= {"__future__", "collections", "dataclasses", "enum", "hashlib", "json", "typing"}
    if part != "cli" and path.name != "__main__.py":
        assert not any(name.startswith("irdiff.cli") for name in names), "only the command line parses"
        assert "click" not in heads
    if part in PURE:
        allowed = ("irdiff.model", "irdiff.errors", f"irdiff.{part}", "irdiff.normalize", "irdiff")
        assert all(name.startswith(allowed) for name in names if name.startswith("irdiff"))
        assert not heads & {"os", "subprocess", "pathlib", "tempfile", "shutil"}, "pure steps touch no files"
    if path.name != "process.py":
        assert "subprocess" not in heads, "processes start in process.py"


def worker_imports(path: Path) -> set[str]:
    """File names of the worker's modules that one of them imports, at any depth."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.level or node.module == "irdiff_worker"):
            own = node.module if node.level else None
            names |= {own} if own else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[2] for alias in node.names if "irdiff_worker" in alias.name}
    return {f"{name}.py" for name in names}


def test_what_takes_no_part_in_compiling_is_not_imported_by_what_does() -> None:
    """The store's keys hold the digest of the modules that compile, and of no others."""
    folder = PACKAGE / "worker"
    reached, pending = {"__init__.py"}, {"__main__.py"}
    while pending:
        reached |= pending
        pending = {name for path in pending for name in worker_imports(folder / path)} - reached
    assert reached == {path.name for path in folder.glob("*.py")} - NOT_COMPILING


def test_environment_is_read_in_one_place() -> None:
    readers = {
        path.name
        for path in MODULES
        if not in_worker(path) and "os.environ" in path.read_text(encoding="utf-8")
    }
    assert readers <= {"config.py"}
