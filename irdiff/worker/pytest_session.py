"""Runs the tests of a repository without a GPU, and records what each launches: what `--tests` starts.

The tests are collected once. Each file then runs in a process of its own, forked from this one, which has
imported Triton and torch. Where a test ends its process, another goes on with the next test.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys

from . import extra_packages, noted, settings, staged_compile

_QUIET = ["-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist", "-W", "ignore"]


def main(words):
    """Writes `tests-N.jsonl`, `collected.jsonl` and the launches to the folder `--out`. The exit code."""
    arguments = _parser().parse_args(words)
    out = os.path.abspath(arguments.out)
    os.makedirs(out, exist_ok=True)
    noted.watch_files()
    staged_compile.make_ready()
    settings.begin()
    if arguments.packages:
        extra_packages.add(**arguments.packages)
    extra_packages.answer_as(arguments.target)
    os.chdir(arguments.root)
    sys.path[:0] = [os.path.abspath(folder) for folder in arguments.imports]
    collected = os.path.join(out, "collected.jsonl")
    if arguments.select is None:
        return _ended(os.fork() or _in_child(lambda: _collect(arguments.paths, collected)))
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


def _run(waiting, out, arguments):
    """Runs the tests of each file, a few files at a time, the one with most tests first."""
    rows = sorted(waiting.items(), key=lambda row: -len(row[1]))
    running: dict = {}
    number = 0
    while rows or running:
        while rows and len(running) < arguments.jobs:
            path, names = rows.pop(0)
            number += 1
            lines = os.path.join(out, f"tests-{number}.jsonl")
            work = functools.partial(_run_file, path, names, out, lines, arguments)
            pid = os.fork() or _in_child(work)
            running[pid] = path, names, lines
        pid, status = os.wait()
        path, names, lines = running.pop(pid)
        left = _left(names, lines)
        if left:
            ended = _note_end(left, status, lines)
            if rest := [name for name in left if name != ended]:
                rows.insert(0, (path, rest))


def _run_file(path, names, out, lines, arguments):
    import pytest

    from . import pytest_assertions
    from .pytest_recorder import TestRecorder, write_line

    pytest_assertions.turn_off()
    noted.begin_files(os.getcwd())
    recorder = TestRecorder(out, lines, arguments.target, set(names), arguments.configs, arguments.timeout)
    pytest.main([*_QUIET, path], plugins=[recorder])
    write_line(lines, {"file": path, "read": noted.end_files()})


def _left(names, lines):
    """The tests that did not run."""
    done = set()
    if os.path.exists(lines):
        with open(lines, encoding="utf-8") as file:
            done = {json.loads(line).get("test") for line in file}
    return [name for name in names if name not in done]


def _note_end(left, status, lines):
    """The test that ended its process."""
    from .pytest_recorder import BEGUN, write_line

    begun = ""
    if os.path.exists(lines + BEGUN):
        with open(lines + BEGUN, encoding="utf-8") as file:
            begun = file.read()
    name = begun if begun in left else left[0]  # else no test began: pytest itself ended
    how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
    nothing: dict = {"calls": 0, "launches": [], "errors": [], "reads": [], "doubts": [], "seconds": 0.0}
    write_line(lines, {"test": name, "outcome": "died", "reason": f"its process ended: {how}", **nothing})
    return name


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
