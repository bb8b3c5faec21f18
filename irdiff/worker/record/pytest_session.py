"""Runs the tests of a repository without a GPU, and records what each launches, for `--tests`.

Each file of tests is imported in a process forked from this one, which has imported Triton and torch: once to
collect its tests, and again to run them (`pytest_recorder`).
"""

from __future__ import annotations

import argparse
import functools
import gc
import importlib
import json
import os
import sys

from ..capture import gpu_libraries, noted, own_folder
from ..compile import settings, staged_compile
from ..serve import extra_packages
from ..serve.server import die_with_parent

_LEAST_PART = 50
"""The fewest tests for which a file is collected once more."""
_QUIET = ["-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]

_COLLECT = [*_QUIET, "--collect-only", "-qq"]


def main(words):
    """Writes `tests-N.jsonl`, `collected.jsonl` and the launches to the folder `--out`. Returns the exit
    code.
    """
    arguments = _parser().parse_args(words)
    out = os.path.abspath(arguments.out)
    os.makedirs(out, exist_ok=True)
    noted.watch_files()
    staged_compile.make_ready()
    gpu_libraries.silence()
    settings.begin()
    if arguments.packages:
        extra_packages.add(**arguments.packages)
    extra_packages.answer_as(arguments.target)
    os.chdir(arguments.root)
    sys.path[:0] = [os.path.abspath(folder) for folder in arguments.imports]
    _load_pytest()
    collected = os.path.join(out, "collected.jsonl")
    if arguments.select is None:
        return _collect_all(arguments.paths, collected, arguments.jobs)
    with open(arguments.select, encoding="utf-8") as file:
        names = file.read().splitlines()
    return _run(_by_file(names), out, arguments)


def _load_pytest():
    """Each forked process would otherwise read pytest's 60 modules, and scan torch's objects whenever it
    collects garbage.
    """
    config = importlib.import_module("_pytest.config")
    for name in getattr(config, "default_plugins", ()):
        importlib.import_module(f"_pytest.{name}")
    importlib.import_module("irdiff_worker.record.pytest_recorder")
    gc.freeze()


def _parser():
    parser = argparse.ArgumentParser(prog="irdiff tests", description=__doc__)
    parser.add_argument("--out", required=True, help="the folder to write")
    parser.add_argument("--root", required=True, help="the repository: the current folder of the tests")
    parser.add_argument("--target", type=json.loads, required=True, help="JSON")
    parser.add_argument("--packages", type=json.loads, help="JSON of `extra_packages.add`")
    parser.add_argument(
        "--import", dest="imports", action="append", default=[], help="a folder, first on the path"
    )
    parser.add_argument("--select", help="a file of tests to run, one a line; without it they are collected")
    parser.add_argument("--configs", type=int, help="the most configs of an autotuner that count")
    parser.add_argument("--timeout", type=int, default=120, help="seconds that one test may take")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--changed", help="the folder of `CatalogRequest.changed`")
    parser.add_argument("paths", nargs="*")
    return parser


def _collect_all(paths, collected, jobs):
    """Collects each file apart: two folders may each have a `test_core.py`. Returns the exit code."""
    parts: dict = {}
    for path in paths or [""]:  # where pytest's own settings say that tests are
        listed = f"{collected}.files"
        code = _in_parallel([functools.partial(_list, path, collected, listed)], 1)
        with open(listed, encoding="utf-8") as file:
            files = file.read().splitlines()
        if code:
            return code
        parts.update(dict.fromkeys(files or [path]))
    parts = dict.fromkeys(sorted(parts, key=_size, reverse=True))
    return _in_parallel([functools.partial(_collect, part, collected) for part in parts], jobs)


def _size(path):
    return os.path.getsize(path) if os.path.isfile(path) else 0


def _list(path, collected, listed):
    """Writes the files in which pytest looks for tests; none if `path` names a test."""
    import pytest

    with open(listed, "w", encoding="utf-8") as file:
        if "::" not in path:
            pytest.main([*_COLLECT, *filter(None, [path])], plugins=[_Lister(collected, file)])


class _Failures:
    """Writes what could not be collected."""

    def __init__(self, collected):
        self.collected = collected

    def pytest_collectreport(self, report):
        from .pytest_recorder import write_line

        if report.failed:
            write_line(self.collected, {"file": report.nodeid, "error": str(report.longrepr)[-2000:]})


class _Lister(_Failures):
    """Writes the names of test files, without importing them."""

    def __init__(self, collected, file):
        super().__init__(collected)
        self.file = file

    def pytest_pycollect_makemodule(self, module_path, parent):
        import pytest

        lister = self

        class Unread(pytest.Module):
            def collect(self):  # of a folder's files, those that are meant
                lister.file.write(f"{os.path.relpath(module_path)}\n")
                return []

        return Unread.from_parent(parent, path=module_path)


class _Collector(_Failures):
    def pytest_collection_finish(self, session):
        from .pytest_recorder import identity_of, name_of, write_lines

        write_lines(
            self.collected,
            [{"test": name_of(item), "identity": identity_of(item)} for item in session.items],
        )


def _collect(path, collected):
    import pytest

    pytest.main([*_COLLECT, *filter(None, [path])], plugins=[_Collector(collected)])


def _by_file(names):
    names_by_file: dict = {}
    for name in names:
        names_by_file.setdefault(name.partition("::")[0], []).append(name)
    return names_by_file


def _run(files, out, arguments):
    """Runs each file, or a part of its tests, in a process. Returns the exit code. A process that its own
    tests crash leaves them out, and is no failure.
    """
    from .pytest_recorder import CANNOT_WRITE

    works = []
    for number, (path, names) in enumerate(_parts(files, arguments.jobs), 1):
        lines = os.path.join(out, f"tests-{number}.jsonl")
        works.append(functools.partial(_run_file, path, set(names), out, lines, arguments))
    return CANNOT_WRITE if _in_parallel(works, arguments.jobs) == CANNOT_WRITE else 0


def _in_parallel(works, jobs):
    """Returns the greatest exit code."""
    running, worst = 0, 0
    for work in works:
        if running >= jobs:
            running, worst = running - 1, max(worst, _ended())
        running += bool(os.fork() or _in_child(work))
    for _ in range(running):
        worst = max(worst, _ended())
    return worst


def _parts(files, jobs):
    """Returns [(path, names)], the largest first: about four parts for each process, or whole files if these
    are smaller.
    """
    most = max(_LEAST_PART, -(-sum(map(len, files.values())) // (4 * jobs)))
    parts = [
        (path, names[start : start + most])
        for path, names in files.items()
        for start in range(0, len(names), most)
    ]
    return sorted(parts, key=lambda part: -len(part[1]))


def _run_file(path, names, out, lines, arguments):
    import pytest

    from . import pytest_assertions
    from .pytest_recorder import TestRecorder

    pytest_assertions.turn_off()
    noted.begin_files(os.getcwd(), arguments.changed)
    recorder = TestRecorder(out, lines, arguments.target, names, arguments)
    pytest.main([*_QUIET, path], plugins=[recorder])


def _in_child(work):
    code = 70
    try:
        die_with_parent()
        own_folder.enter()
        work()
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended():
    _, status = os.wait()
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
