"""What is kept is kept under the code that makes it: a step's own module and all that it imports."""

import ast
import shutil

import pytest

from irdiff.attribute import attributor, replayer
from irdiff.capture import catalogs
from irdiff.codegen import generator
from irdiff.compare import comparer
from irdiff.compile import launch_compiler
from irdiff.cost import changed_cases
from irdiff.determinism import determinism_check
from irdiff.group import describer
from irdiff.store import Store, code
from irdiff.store.memo import MemoStep
from tests.unit.test_imports import NAMES, in_worker

STEPS = {
    module.STEP.name: module.STEP
    for module in (
        catalogs,
        launch_compiler,
        generator,
        comparer,
        replayer,
        attributor,
        describer,
        determinism_check,
        changed_cases,
    )
}
USE_REPLAYS = {"replayed", "attributed", "determinism"}
EDITS = {
    "capture/catalogs.py": {"catalog"},
    "compile/launch_compiler.py": {"compiled"},
    "compile/launch_requests.py": {"compiled", *USE_REPLAYS},
    "codegen/generator.py": {"tool", *USE_REPLAYS},
    "ir/ptx/rules.py": STEPS.keys() - {"catalog", "compiled"},
    "compare/comparer.py": {"compared"},
    "compare/edit_digest.py": {"compared"},
    "attribute/replayer.py": USE_REPLAYS,
    "attribute/attributor.py": {"attributed"},
    "group/describer.py": {"judged"},
    "group/report_classes.py": {"judged"},
    "effects/lanes.py": {"judged"},
    "determinism/determinism_check.py": {"determinism"},
    "work/counting.py": {"work"},
    "backends/nvidia/execution/pipes.py": {"work"},
    "pipeline.py": set(),
    "report/html.py": set(),
    "cli/options.py": set(),
    "model.py": STEPS.keys(),
}
"""Files, and the steps whose results another line of them makes anew."""


def digests(package):
    code._source.cache_clear()
    return {name: code.digest_below(package, step.module) for name, step in STEPS.items()}


@pytest.mark.parametrize("path", EDITS)
def test_another_line_makes_the_results_of_the_steps_that_use_it_anew_and_no_others(tmp_path, path):
    package = tmp_path / "irdiff"
    shutil.copytree(
        code.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__", "_shipped", "templates")
    )
    before = digests(package)
    assert before == {name: step.code for name, step in STEPS.items()}
    with (package / path).open("a") as file:
        file.write("# another line\n")
    after = digests(package)
    assert {name for name in STEPS if before[name] != after[name]} == EDITS[path]


def imports(tree):
    for node in tree:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_imports_are_read_as_python_reads_them():
    for path in NAMES.values():
        text = path.read_text()
        names = {name for name in imports(ast.parse(text).body) if name.startswith("irdiff.")}
        assert names <= set(code.imported(text)), path


def test_no_step_imports_inside_of_a_function():
    waiting, reached = [step.module for step in STEPS.values()], set()
    while waiting:
        name = waiting.pop()
        if name in NAMES and name not in reached and not in_worker(NAMES[name]):
            reached.add(name)
            text = NAMES[name].read_text()
            waiting += code.imported(text)
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.FunctionDef):
                    assert not [n for n in imports(ast.walk(node)) if n.startswith("irdiff")], (
                        name,
                        node.name,
                    )
    assert len(reached) > 100


def test_a_result_is_found_under_its_inputs_and_its_code_alone(tmp_path, monkeypatch):
    store, step = Store(tmp_path), MemoStep("square", "irdiff.store.memo", dict[str, int])
    store.memo(step, [3]).keep({"square": 9})
    assert store.memo(step, [3]).get() == {"square": 9}
    assert store.memo(step, [4]).get() is None
    assert store.memo(MemoStep("cube", "irdiff.store.memo", dict[str, int]), [3]).get() is None
    monkeypatch.setattr(code, "digest_of", lambda _: "of other code")
    assert store.memo(step, [3]).get() is None
