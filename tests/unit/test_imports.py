"""One folder a step: each imports those before it, what they all stand on, and nothing after it."""

import ast
import functools
import sys
from collections import defaultdict
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "irdiff"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if "_shipped" not in path.parts)
NAMES = {
    ".".join(("irdiff", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in MODULES
}
GROUND = {
    "errors", "model", "stages", "case_ids", "config", "process", "parallel", "store", "findings", "words", "ir",
    "backends", "execution", "texts", "counted_work", "adapters",
}  # fmt: skip
"""What every step stands on."""
STEPS = [
    "resolve", "worker_client", "capture", "compile", "coverage", "codegen", "compare", "work", "cost",
    "attribute", "bisect", "effects", "group", "determinism", "run", "explain", "timing", "diffs", "report", "gate",
    "github",
]  # fmt: skip
PROTOCOL = "irdiff.worker.protocol"
STDLIB_ONLY = {"model", "errors", "case_ids", "counted_work"}
PURE = {"ir", "texts", "backends", "execution", "effects", "group", "work", "cost"}
NOT_PURE = {
    "ir/llir/llvm_process.py", "ir/llir/llvm_reader.py", "group/describer.py",
    "backends/nvidia/disassembler.py", "backends/nvidia/execution/warps.py", "backends/machine_code_text.py",
    "backends/machines.py", "cost/changed_cases.py",
}  # fmt: skip
"""LLVM may die of a text, so it is asked in another process; nvdisasm is another program; descriptions are
kept in the store."""


@functools.cache
def statements(path):
    """Of all functions and classes; expressions hold none."""
    found, waiting = [], [ast.parse(path.read_text(encoding="utf-8"))]
    while waiting:
        node = waiting.pop()
        found.append(node)
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            waiting += getattr(node, name, ())
    return tuple(found)


@functools.cache
def imported(path):
    """Absolute names of the modules that a module imports, at any depth."""
    names = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            both = {f"{node.module}.{alias.name}": node.module for alias in node.names}
            names |= {name if name in NAMES else module for name, module in both.items()}
    return names


def step(name):
    """`compare` of `irdiff.compare.verdicts`; the empty name of `irdiff` itself."""
    return name.split(".")[1] if "." in name else ""


def in_worker(path):
    return (PACKAGE / "worker") in path.parents


def broken_rules(path):
    names = imported(path)
    heads = {name.split(".")[0] for name in names}
    own = path.relative_to(PACKAGE)
    part = own.parts[0].removesuffix(".py")
    if in_worker(path):
        if "irdiff" in heads:
            yield "the worker never imports irdiff"
        if path.name == "protocol.py" and heads - set(sys.stdlib_module_names):
            yield "both sides import it"
        return
    if part != "timing" and heads & {"triton", "torch"}:
        yield "irdiff's own process never imports triton or torch"
    shared = {name for name in names if name == PROTOCOL or name.startswith(f"{PROTOCOL}.")}
    if any(
        name.startswith("irdiff.worker") and not name.startswith("irdiff.worker_client")
        for name in names - shared
    ):
        yield "irdiff imports nothing of the worker but what both say to each other"
    if part in STDLIB_ONLY and heads - {"irdiff"} - set(sys.stdlib_module_names):
        yield "everything stands on it, so it stands on the standard library alone"
    if part != "cli" and path.name != "__main__.py" and "click" in heads:
        yield "only the command line parses"
    touches_files = heads & {"os", "subprocess", "pathlib", "tempfile", "shutil"} or "irdiff.store" in names
    if part in PURE and str(own) not in NOT_PURE and touches_files:
        yield "pure steps touch no files"
    if path.name != "process.py" and heads & {"subprocess", "multiprocessing", "pty"}:
        yield "processes start in process.py"
    if path.name != "config.py" and "os.environ" in path.read_text(encoding="utf-8"):
        yield "the environment is read in one place"
    if path.name != "repository.py" and "git" in heads:
        yield "GitPython starts processes of its own"


def test_import_rules():
    found = {str(path.relative_to(PACKAGE)): [*broken_rules(path)] for path in MODULES}
    assert {name: rules for name, rules in found.items() if rules} == {}


def imports_later_ones(name):
    here = step(name)
    used = {step(other) for other in imported(NAMES[name]) - {PROTOCOL} if other in NAMES} - {"", here}
    if here in GROUND:
        return not used <= GROUND
    if here in STEPS:
        return not used <= {*GROUND, *STEPS[: STEPS.index(here)]}
    callers = {"api", "cluster", "cli"}
    later = {
        "comparison": {"pipeline", "history", *callers},
        "pipeline": {"history", *callers},
        "history": callers,
        **dict.fromkeys(["", "__main__", *callers], ()),
    }
    return not used.isdisjoint(later[here])


def test_a_step_imports_only_earlier_ones():
    assert [name for name in NAMES if step(name) != "worker" and imports_later_ones(name)] == []


def test_no_module_imports_itself_by_way_of_others():
    """But for `irdiff/__init__.py`, whose functions import what they call."""
    graph = {name: (imported(path) & NAMES.keys()) - {name, "irdiff"} for name, path in NAMES.items()}
    while leaves := {name for name, used in graph.items() if not used & graph.keys()}:
        for name in leaves:
            del graph[name]
    assert not graph


def test_a_class_name_means_one_thing():
    """An underscore makes no other word. The worker is a program of its own: its private classes are left out."""
    defined = defaultdict(set)
    for path in MODULES:
        for node in statements(path):
            if isinstance(node, ast.ClassDef) and not (node.name.startswith("_") and in_worker(path)):
                defined[node.name.lstrip("_")].add(str(path.relative_to(PACKAGE)))
    assert {name: sorted(paths) for name, paths in defined.items() if len(paths) > 1} == {}
