"""What a recorded workload imports, and what it has to copy."""

import importlib
import sys

import pytest

from irdiff.worker import importable
from irdiff.worker.importable import Importable, only_defines


@pytest.fixture
def repository(tmp_path, monkeypatch):
    text = "def helper():\n    def inner(): pass\n    return inner\n\n\nother = helper\nhelper_2 = helper()\n"
    for name in ("src/pkg/__init__", "src/pkg/ops", "src/pkg/generated", ".venv/site-packages/theirs"):
        (tmp_path / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(Importable, "_is_ignored", lambda self, inner: "generated" in inner)
    places = [str(tmp_path / "src"), str(tmp_path / ".venv/site-packages")]
    monkeypatch.setattr(sys, "path", [*places, *sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name in ("pkg", "theirs") or name.startswith("pkg.")]:
        del sys.modules[name]


def test_a_function_of_the_repository_is_imported(repository):
    found, ops = Importable(str(repository)), importlib.import_module("pkg.ops")
    assert found.module_of(ops.helper) == found.module_name(ops) == "pkg.ops"
    assert Importable().module_of(ops.helper) is Importable().module_name(ops) is None
    helper, ops.helper = ops.helper, None
    assert "helper means something else in ops.py" in str(found.why_not(helper))


@pytest.mark.parametrize(
    ("module_name", "name", "why"),
    [
        ("pkg.generated", "helper", "git ignores src/pkg/generated.py"),
        ("pkg.ops", "helper_2", "is made inside of another function"),
        ("theirs", "helper", "does not lie in the repository"),
        ("json", "dumps", "does not lie in the repository"),
    ],
)
def test_anything_else_is_copied(repository, module_name, name, why):
    found = Importable(str(repository))
    value = getattr(importlib.import_module(module_name), name)
    assert why in str(found.why_not(value))
    assert found.module_of(value) is None


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
def test_programs_that_run_when_they_are_imported(text, quiet):
    assert only_defines(text) is quiet


@pytest.mark.parametrize(
    ("name", "file", "module"),
    [
        ("__main__", "bench/run.py", "run"),
        ("__main__", "bench/run-all.py", None),
        ("pkg", "src/pkg/__init__.py", "pkg"),
        ("pkg.ops", "pkg/ops.py", "pkg.ops"),
        ("pkg.ops", "elsewhere/ops.py", None),
    ],
)
def test_a_file_is_known_by_the_name_that_leads_to_it(name, file, module):
    assert importable._named(name, file) == module
