"""Runs the tests of a repository without a GPU, and records what each launches: what `--tests` starts.

The tests are collected once. Each file is then imported in a process of its own, forked from this one, which
has imported Triton and torch, and each of its tests runs in a process forked from that (`pytest_recorder`).
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys

from . import extra_packages, gpu_libraries, noted, settings, staged_compile

_LEAST_PART = 50
"""Tests for which a file is collected once more."""
_QUIET = ["-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]


def main(words):
    """Writes `tests-N.jsonl`, `collected.jsonl` and the launches to the folder `--out`. The exit code."""
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
    collected = os.path.join(out, "collected.jsonl")
    if arguments.select is None:
        # apart: two folders may each have a `test_core.py`
        parts = [[path] for path in arguments.paths] or [[]]
        works = [functools.partial(_collect, part, collected) for part in parts]
        return max([_ended(os.fork() or _in_child(work)) for work in works])
    with open(arguments.select, encoding="utf-8") as file:
        names = file.read().splitlines()
    _run(_by_file(names), out, arguments)
    return 0


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
    parser.add_argument("paths", nargs="*")
    return parser


class _Collector:
    """Writes the tests, and what could not be collected."""

    def __init__(self, path):
        self.path = path

    def pytest_collection_finish(self, session):
        from .pytest_recorder import name_of, write_line

        for item in session.items:
            write_line(self.path, {"test": name_of(item)})

    def pytest_collectreport(self, report):
        from .pytest_recorder import write_line

        if report.failed:
            write_line(self.path, {"file": report.nodeid, "error": str(report.longrepr)[-2000:]})


def _collect(paths, collected):
    import pytest

    pytest.main([*_QUIET, "--collect-only", "-qq", *paths], plugins=[_Collector(collected)])


def _by_file(names):
    found: dict = {}
    for name in names:
        found.setdefault(name.partition("::")[0], []).append(name)
    return found


def _run(files, out, arguments):
    """Several processes at a time; each collects one file, and runs its tests, or a part of them."""
    running: set = set()
    for number, (path, names) in enumerate(_parts(files, arguments.jobs), 1):
        if len(running) >= arguments.jobs:
            running.remove(os.wait()[0])
        lines = os.path.join(out, f"tests-{number}.jsonl")
        work = functools.partial(_run_file, path, set(names), out, lines, arguments)
        running.add(os.fork() or _in_child(work))
    while running:
        running.remove(os.wait()[0])


def _parts(files, jobs):
    """[(path, names)], the largest first: two for each process, or whole files where these are smaller."""
    most = max(_LEAST_PART, -(-sum(map(len, files.values())) // (2 * jobs)))
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
    noted.begin_files(os.getcwd())
    recorder = TestRecorder(out, lines, arguments.target, names, arguments)
    pytest.main([*_QUIET, path], plugins=[recorder])


def _in_child(work):
    """Does it, and ends this process."""
    code = 70
    try:
        work()
        code = 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _ended(pid):
    _, status = os.waitpid(pid, 0)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1
