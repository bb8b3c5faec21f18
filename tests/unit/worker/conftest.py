"""A worker in this process, on a Triton of one file."""

import importlib
import itertools
import json
import os
import sys
from pathlib import Path

import pytest

from irdiff.worker import corpus_api, run_program, storages
from tests.texts import text_of

HEADER = text_of("worker/header.py")
WORKER = Path(run_program.__file__).parent
TINY = Path(__file__).parents[2] / "data" / "tiny_triton"
TARGET = {"name": "t1", "backend": "tiny", "arch": "t1", "warp_size": 32, "facts": {"multiprocessors": 8}}
numbers = itertools.count()
"""Workloads of one process have names of their own: sources are found again by them."""


def module_of(name):
    """Of the worker, in whichever of its folders it is."""
    (path,) = WORKER.rglob(f"{name}.py")
    return importlib.import_module(
        ".".join(("irdiff_worker", *path.relative_to(WORKER).with_suffix("").parts))
    )


class InProcess:
    """A corpus of one workload, and what operations of a worker leave of it."""

    def __init__(self, folder):
        self.root, self.results = folder / "corpus", folder / "results"
        self.results.mkdir()
        self.write("")

    def module(self, name):
        return module_of(name)

    def write(self, text, launches='"a": launch(scale[(1,)], *ARGUMENTS, BLOCK=32)'):
        self.name = f"f/w{next(numbers)}"
        path = self.root / f"{self.name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{HEADER}{text}\nLAUNCHES = {{{launches}}}\n")

    def stage(self, function):
        """What the second stage of the compiler calls."""
        sys.modules["triton"].CODE["stage"] = function

    def request(self, op, **more):
        folder = self.results / str(len(list(self.results.iterdir())))
        folder.mkdir()
        select = {"tiers": [], "labels": [], "frontend": True, "configs": None, **more.pop("select", {})}
        place = {"root": str(self.root), "workloads": ".", "imports": []}
        named = {"workload": self.name} if op == "catalog" else {}
        request = {"op": op, **place, **named, "target": TARGET, "select": select}
        return {**request, "memory_bytes": 1 << 30, "folder": str(folder), **more}

    def serve(self, op, **more):
        """`result.json`, and the artifacts by name."""
        request = self.request(op, **more)
        is_as_before = self.module("operations").serve(request)
        folder = Path(request["folder"])
        result = json.loads((folder / "result.json").read_text())
        names = result["artifacts"]
        return {
            **result,
            "is_as_before": is_as_before,
            "texts": {name: (folder / name).read_text() for name in names},
        }

    def launches(self, **more):
        """By id, without the workload."""
        result = self.serve("catalog", **more)
        assert result["failures"] == [], result
        return {row["id"].partition(":")[2]: row for row in result["launches"]}

    def compile(self, label="a", **more):
        digest = self.launches()[label]["digest"]
        return self.serve("compile", **{"launch": f"{self.name}:{label}", "digest": digest, **more})


@pytest.fixture
def load(monkeypatch):
    """A module of the worker, with the compiler in its place."""
    before, places, variables = set(sys.modules), sys.path[:], dict(os.environ)
    hooks, folder = sys.path_hooks[:], Path.cwd()
    for name in ("stat", "lstat", "access"):
        monkeypatch.setattr(os, name, getattr(os, name))  # restored if `watch_files` replaces it
    for name in [*sys.modules]:
        if name.partition(".")[0] in ("triton", "irdiff_worker", "irdiff_corpus"):
            monkeypatch.delitem(sys.modules, name)
    sys.path.insert(0, str(TINY))
    for shared in (corpus_api, run_program, storages):  # what tests import is what the worker has
        monkeypatch.setitem(sys.modules, shared.__name__.replace("irdiff.worker", "irdiff_worker"), shared)
    importlib.import_module("irdiff.worker.__main__").load_package()
    importlib.import_module("irdiff_worker.compile.staged_compile").make_ready()
    importlib.import_module("irdiff_worker.compile.llvm_calls").make_ready()
    importlib.import_module("irdiff_worker.compile.outside").begin(sys.modules)
    importlib.import_module("irdiff_worker.compile.settings").begin()
    yield module_of
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.path[:], sys.path_hooks[:] = places, hooks
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def worker(load, tmp_path):
    return InProcess(tmp_path)
