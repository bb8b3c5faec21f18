"""Plants one fault at a time and runs the tests that execute its lines, until the first of them fails."""

from __future__ import annotations

import compileall
import importlib
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import coverage
import pytest

from tests.programs.catch.faults import Fault, Place, locate

OWN_TESTS = {
    "compare": "tests/unit/compare",
    "gate": "tests/unit/gate",
    "group": "tests/unit/group",
    "store": "tests/unit/test_store",
}
_LIMIT_S = 60  # of processor time for the tests of one fault, and a second for each
_SUITE_LIMIT_S = 3600
_QUIET = ("-q", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:xdist")
"""Bounds of time, which are slow, are broken by coverage and by neighbours."""
_HEAVY = (
    "click", "git", "jinja2", "llvmlite.binding", "msgpack", "numpy", "pydantic",
    "requests", "rich.console", "scipy.stats", "yaml", "zstandard",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of one fault."""

    fault: Fault
    outcome: str
    """`caught`, `not caught`, `not run` (no test executes it), or `gone`."""
    test: str


class LinesOfTests:
    """Which tests execute which lines, by one run of the suite under coverage."""

    def __init__(self, tree: Path, record: Path, suite: Sequence[str]) -> None:
        self._tree = tree
        self._record = record
        self._suite = suite
        self._known: dict[str, dict[int, list[str]]] = {}

    def measure(self) -> None:
        """Runs the suite once, in a child so that this process imports nothing of irdiff."""
        _in_child(lambda: _compile(self._tree, self._suite), _SUITE_LIMIT_S)
        if not self._record.exists() and (answer := _in_child(self._run, _SUITE_LIMIT_S)) != "measured":
            self._record.unlink(missing_ok=True)
            raise SystemExit(f"the suite {answer}")

    def _run(self) -> str:
        measured = coverage.Coverage(
            data_file=str(self._record), source=[str(self._tree / "irdiff")], config_file=False
        )

        failed = []

        class Contexts:
            def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
                if report.failed:
                    failed.append(report.nodeid)

            @pytest.hookimpl(wrapper=True)
            def pytest_runtest_protocol(self, item: pytest.Item):
                measured.switch_context(item.nodeid)
                return (yield)

        _enter(self._tree)
        measured.start()
        pytest.main([*_QUIET, *self._suite], plugins=[Contexts()])
        measured.stop()
        if failed:
            return f"fails without any fault: {', '.join(failed)}"
        measured.save()
        return "measured"

    def tests(self, place: Place) -> list[str]:
        """Those that execute a line of the place; of lines that run at import, those that execute the file."""
        if place.path not in self._known:
            data = coverage.CoverageData(basename=str(self._record))
            data.read()
            measured = [path for path in data.measured_files() if path.endswith("/" + place.path)]
            self._known[place.path] = data.contexts_by_lineno(measured[0]) if measured else {}
        known = self._known[place.path]
        found = {test for line in place.lines for test in known.get(line, ())}
        if found == {""}:
            found = {test for tests in known.values() for test in tests}
        return sorted(found - {""})


def plant(fault: Fault, tree: Path, lines: LinesOfTests) -> Outcome:
    place = locate(fault, tree)
    if place is None:
        return Outcome(fault=fault, outcome="gone", test="")
    tests = lines.tests(place)
    own = OWN_TESTS.get(Path(place.path).parent.name, f"tests/unit/{Path(place.path).parent.name}")
    tests.sort(key=lambda test: not test.startswith(own))
    if not tests:
        return Outcome(fault=fault, outcome="not run", test="")
    edited = tree / place.path
    right = edited.read_text()
    edited.write_text(place.text)
    # no compiled file of another text with the same size and second may stand in for this one
    os.utime(edited, (time.time() + 1000 + hash(fault.name) % 100_000,) * 2)
    try:
        failed = _in_child(lambda: _failing(tree, tests), _LIMIT_S + len(tests))
        # what a cache within a process holds is not executed again: whole files of the own step show it
        files = list(dict.fromkeys(test.partition("::")[0] for test in tests if test.startswith(own)))
        if not failed and files:
            failed = _in_child(lambda: _failing(tree, files), _LIMIT_S + len(tests))
    finally:
        edited.write_text(right)
    return Outcome(fault=fault, outcome="caught" if failed else "not caught", test=failed or "")


def preload() -> None:
    """What every child would import again. Nothing of irdiff or of its tests."""
    for name in _HEAVY:
        importlib.import_module(name)


def _compile(tree: Path, suite: Sequence[str]) -> str:
    """Leaves the bytecode of irdiff and its tests, which no child of a fault writes."""
    _enter(tree)
    sys.dont_write_bytecode = False
    compileall.compile_dir(tree / "irdiff", quiet=2)
    pytest.main(["--collect-only", "-p", "no:cacheprovider", *suite])
    return "compiled"


def _failing(tree: Path, tests: Iterable[str]) -> str:
    """The first test that fails, or an empty text."""
    failed: list[str] = []

    class Failures:
        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.failed:
                failed.append(report.nodeid)

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                failed.append(f"{report.nodeid} (import)")

    _enter(tree)
    code = pytest.main([*_QUIET, "-x", *tests], plugins=[Failures()])
    return failed[0] if failed else ("" if code == 0 else f"pytest ended with {code}")


def _enter(tree: Path) -> None:
    os.chdir(tree)
    for name in [name for name in sys.modules if name.split(".")[0] in ("irdiff", "tests")]:
        del sys.modules[name]
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)
    sys.dont_write_bytecode = True


def _in_child(work: Callable[[], str], limit_s: int) -> str:
    """What a forked child answers. One that dies, or runs past its limit, says so instead."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (limit_s, limit_s))
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        status = 1
        try:
            os.write(writing, work().encode())
            status = 0
        except BaseException:
            os.write(writing, traceback.format_exc().encode())
        finally:
            os._exit(status)
    os.close(writing)
    ends_at = time.monotonic() + 10 * limit_s
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > ends_at:
            os.killpg(child, signal.SIGKILL)
        time.sleep(0.02)
    with os.fdopen(reading) as answer:
        return answer.read() if ended[1] == 0 else f"ended with {ended[1]} {answer.read()}".strip()
