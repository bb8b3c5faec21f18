"""What a recorded workload imports, and what it has to copy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from irdiff.worker import importable
from irdiff.worker.importable import Importable, only_defines


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    ignored = tmp_path / "src" / "pkg" / "generated.py"
    package = ignored.parent
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    text = "def helper():\n    def inner(): pass\n    return inner\n\n\nother = helper\nhelper_2 = helper()\n"
    for name in ("ops", "generated"):
        (package / f"{name}.py").write_text(text)
    (tmp_path / ".venv" / "site-packages").mkdir(parents=True)
    (tmp_path / ".venv" / "site-packages" / "theirs.py").write_text(text)

    def answer(self: Any, inner: str) -> bool:
        return "generated" in inner

    monkeypatch.setattr(Importable, "_is_ignored", answer)
    monkeypatch.setattr(
        sys, "path", [str(tmp_path / "src"), str(tmp_path / ".venv/site-packages"), *sys.path]
    )
    yield tmp_path
    for name in [name for name in sys.modules if name in ("pkg", "theirs") or name.startswith("pkg.")]:
        del sys.modules[name]


def module(name: str) -> ModuleType:
    return importlib.import_module(name)


def test_a_function_of_the_repository_is_imported(repository: Path) -> None:
    found = Importable(str(repository))
    assert found.module_of(module("pkg.ops").helper) == "pkg.ops"
    assert found.folder_of(module("pkg.ops").helper) == "src"
    assert found.module_name(module("pkg.ops")) == "pkg.ops"


@pytest.mark.parametrize(
    ("module_name", "name", "why"),
    [
        ("pkg.generated", "helper", "git ignores src/pkg/generated.py"),
        ("pkg.ops", "helper_2", "is made inside of another function"),
        ("theirs", "helper", "does not lie in the repository"),
        ("json", "dumps", "does not lie in the repository"),
    ],
)
def test_anything_else_is_copied(repository: Path, module_name: str, name: str, why: str) -> None:
    found = Importable(str(repository))
    value = getattr(module(module_name), name)
    assert why in str(found.why_not(value))
    assert found.module_of(value) is None


def test_without_a_repository_everything_is_copied(repository: Path) -> None:
    assert Importable().module_of(module("pkg.ops").helper) is None
    assert Importable().module_name(module("pkg.ops")) is None


def test_a_name_that_means_something_else_by_now(repository: Path) -> None:
    helper = module("pkg.ops").helper
    module("pkg.ops").helper = None  # type: ignore[attr-defined]
    assert "helper means something else in ops.py" in str(Importable(str(repository)).why_not(helper))


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        ('"""A."""\nimport a\nX = f()\ndef g(): pass\nif __name__ == "__main__":\n    g()\n', True),
        ("try:\n    import a\nexcept ImportError:\n    a = None\n", True),
        ("def g(): pass\ng()\n", False),
        ("for x in y:\n    pass\n", False),
        ("if flag:\n    run()\n", False),
    ],
)
def test_programs_that_run_when_they_are_imported(text: str, quiet: bool) -> None:
    assert only_defines(text) is quiet


def test_a_main_program_is_known_by_its_file() -> None:
    assert importable._named("__main__", "bench/run.py") == ("run", "bench")
    assert importable._named("__main__", "bench/run-all.py") == (None, None)
    assert importable._named("pkg", "src/pkg/__init__.py") == ("pkg", "src")
    assert importable._named("pkg.ops", "elsewhere/ops.py") == (None, None)
