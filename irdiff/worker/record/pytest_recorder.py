"""Records what each test of a pytest session launches, as a plugin of pytest.

Each test is a line of JSON, written as it ends. A launch with new inputs for the compiler is written once
(`recorded_ir`). The `doubts` of a test say why it is not wholly followed.
"""

from __future__ import annotations

import collections
import contextlib
import errno
import gc
import json
import os
import random
import re
import resource
import select
import signal
import sys
import time

import pytest
from _pytest.runner import runtestprotocol

from .. import storages
from ..capture import describe, intercept, launching, noted, own_folder, recorded_ir, rehearsal, stub_driver
from ..compile import settings
from ..serve.server import die_with_parent
from ..texts import sha256
from . import pytest_assertions

_MOST_REASON = 300
_MOST_CPU_S = 30
"""Without a GPU a test takes tenths of a second. One that calculates for longer is not worth the wait."""
_MOST_IDLE_S = 10
"""A test that idles for so long waits for a kernel or process that was not started."""
_MOST_LATE = 2
"""After so many slow tests of one function its others do not run: they mostly calculate the same."""
_NEEDS_CODE = 71
"""The exit code of a test's process that must run again, with the texts that it did not get."""
CANNOT_WRITE = 74
"""The exit code of a process that could not write its results. Its tests did not fail."""
_STAGES = frozenset({"ttir", "ttgir", "llir", "ptx", "amdgcn"})
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]+")
"""An object's address differs in each process."""


class TestRecorder:
    """Writes the launches of one session below a folder.

    Each test runs in a process of its own, forked once the tests are collected. So no fixture, cache or
    global has seen another test.
    """

    __test__ = False

    def __init__(self, folder, lines, target, names, options):
        self.folder, self.lines, self.target = folder, lines, target
        """`lines`: the file that the tests are written to."""
        self.names, self.options = names, options
        self._compiles = False
        """True if a test also gets those texts of compiled code that only its assertions read."""
        self._test = _Test("")
        self._late: collections.Counter = collections.Counter()
        """{function: its tests that took too long}"""

    @pytest.hookimpl(hookwrapper=True)
    def pytest_generate_tests(self, metafunc):
        """Creates no items for parameters that are not to run, which is most of the time of collecting a
        large file.
        """
        yield
        calls = getattr(metafunc, "_calls", None)
        if calls:
            name = name_of(metafunc.definition)
            calls[:] = [call for call in calls if f"{name}[{call.id}]" in self.names] or calls[:1]

    def pytest_collection_modifyitems(self, config, items):
        items[:] = [item for item in items if name_of(item) in self.names]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        if self._late[_function_of(item)] >= _MOST_LATE:
            self._write_died(item, f"not run: {_MOST_LATE} other tests of its function took too long")
        elif self._ran(item) == _NEEDS_CODE:
            self._ran(item, compiles=True)
        return True

    def pytest_collection_finish(self):
        settings.Settings().changed  # noqa: B018
        pytest_assertions.learn(os.getcwd())
        _seed()
        rehearsal.rehearse(self.target, self.options.configs)
        gc.collect()
        gc.freeze()

    def _ran(self, item, compiles=False):
        """Returns the exit code of the test's process; 0 if that died, which is then written."""
        pid = os.fork()
        if pid == 0:
            self._compiles = compiles
            self._run_in_child(item)
        status, is_idle = _wait_for(pid)
        own_folder.remove(pid)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == CANNOT_WRITE:
            os._exit(CANNOT_WRITE)
        if not status or (os.WIFEXITED(status) and os.WEXITSTATUS(status) == _NEEDS_CODE):
            return os.WEXITSTATUS(status)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        how = signal.Signals(number).name if number else f"exit code {os.WEXITSTATUS(status)}"
        late = is_idle or number in (signal.SIGALRM, signal.SIGXCPU)
        self._late[_function_of(item)] += late
        reason = "took too long" if late else f"its process ended: {how}"
        self._write_died(item, f"it only waited for {_MOST_IDLE_S} seconds" if is_idle else reason)
        return 0

    def _write_died(self, item, reason):
        test = _Test(name_of(item))
        test.outcome, test.reason = "died", reason
        write_line(self.lines, test.as_json())

    def _run_in_child(self, item):
        code = 70
        try:
            die_with_parent()
            own_folder.enter()
            signal.alarm(self.options.timeout)
            resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, resource.RLIM_INFINITY))
            code = 0 if self._record(item) else _NEEDS_CODE
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)

    def _record(self, item):
        """Returns False if the test failed and had not got a text that it read."""
        self._test = test = _Test(name_of(item))
        for _, _, words in noted.caveats(is_compared=False):  # of its module
            test.doubt(words)
        noted.has_launched, noted.listener, noted.compiled_text = False, self._doubt, self.compiled_text
        storages.begin_entry(())
        _seed()
        with intercept.intercepted(self.target, self, self.options.configs, left_out=test.left_out):
            for report in runtestprotocol(item, log=False, nextitem=None):
                test.report(report)
        noted.listener = noted.compiled_text = None
        test.read = noted.end_files()
        if test.outcome == "failed" and not self._compiles and any(not text for _, _, text in test.reads):
            return False
        write_line(self.lines, test.as_json())
        return True

    def _doubt(self, reason):
        """Ends a test that starts a program, because launches there are never seen."""
        self._test.doubt(reason)
        if reason.endswith(noted.NOT_FOLLOWED):
            pytest.fail(reason, pytrace=False)

    def append(self, captured):
        frontend_input = captured.frontend_input
        if not hasattr(frontend_input, "recording"):  # a kernel that is there is launched again
            try:
                frontend_input.recording = self._recorded(captured)
            except recorded_ir.Unrecordable as error:
                frontend_input.recording = ""
                self._test.doubt(str(error))
            frontend_input.module = frontend_input.settings = None  # a megabyte each
        if frontend_input.recording:
            self._test.launched.append((frontend_input.recording, captured))

    def _recorded(self, captured):
        """Returns the name of the recording. Raises recorded_ir.Unrecordable."""
        if captured.target != stub_driver.gpu_of(self.target):
            raise recorded_ir.Unrecordable(f"compiles for another GPU: {captured.target.arch}")
        name = recorded_ir.digest_of(captured)[:32]
        path = os.path.join(self.folder, name)
        if not os.path.exists(path + ".json"):
            texts = recorded_ir.texts_of(captured, describe.of_captured(captured))
            for suffix, text in texts.items():  # the last says to other processes that both are there
                _write_whole(path + suffix, text)
        return name

    def compiled_text(self, reached, stage):
        """Returns None if the launch is not recorded. A text that only assertions read is empty: they decide
        nothing, and all compiled texts are compared anyway.
        """
        name = getattr(reached.frontend_input, "recording", "")
        if name and not self._compiles and stage in _STAGES and pytest_assertions.is_only_asserted():
            self._test.reads.append([name, stage, ""])
            return ""
        path = os.path.join(self.folder, name) + ".json"
        noted.listener = None  # it starts a process of ours
        try:
            text = recorded_ir.artifact_of(path, reached.target, stage) if name else None
        finally:
            noted.listener = self._doubt
        if text is not None:
            seen = _without_places(text) if isinstance(text, str) else text
            self._test.reads.append([name, stage, sha256(seen)[:16]])
        return text

    def failed(self, error, path=""):
        """Notes an error that the frontend raises to the test. `path`: the file of IR that was compiled."""
        text = _without_places(f"{type(error).__name__}: {error}", *path and [os.path.dirname(path)])
        self._test.errors.append(_one_line(_ADDRESS.sub("at 0x", text)))


class _Test:
    def __init__(self, name):
        self.name, self.began = name, time.monotonic()
        self.launched: list = []
        self.errors: list = []
        self.reads: list = []
        """[launch, stage, digest of the text] that the test looks at; no digest where it was given none."""
        self.read: list = []
        self.left_out: dict = {}
        self.doubts: dict = {}
        self.outcome, self.reason = "passed", ""

    def doubt(self, reason):
        self.doubts[reason] = None

    def report(self, report):
        if report.outcome != "passed" and self.outcome != "failed":
            crash = getattr(report.longrepr, "reprcrash", None)
            text = crash.message if crash else str(report.longrepr[-1] if report.skipped else report.longrepr)
            self.outcome, self.reason = report.outcome, _one_line(text)

    def as_json(self):
        if self.left_out:
            self.doubt(f"leaves out {sum(self.left_out.values())} configs of autotuners")
        calls, kernels = launching.Calls(), {}
        texts: dict = {}
        for digest, captured in self.launched:
            kernels[digest] = describe.kernel_name(captured)
            lines = [*captured.tuner, *calls.lines(captured, (digest,))]
            texts.setdefault(digest, []).append(lines)
        return {
            "test": self.name,
            "outcome": self.outcome,
            "reason": self.reason,
            "calls": len(self.launched),
            "launches": [
                [digest, kernels[digest], sha256(launching.text(each))[:16]] for digest, each in texts.items()
            ],
            "errors": self.errors,
            "reads": self.reads,
            "doubts": list(self.doubts),
            "read": self.read,
            "seconds": round(time.monotonic() - self.began, 3),
        }


def name_of(item):
    """Returns `tests/test_norm.py::test_rms[bf16]`, relative to the current folder, as pytest accepts it
    there.
    """
    _, _, inner = item.nodeid.partition("::")
    return f"{os.path.relpath(item.path)}::{inner}"


def _function_of(item):
    return name_of(item).partition("[")[0]


def identity_of(item):
    """Returns a name of a test that is the same on both sides: pytest numbers parameters without a name, so
    values replace `[dtype0]`. A value whose text has an address keeps its number.
    """
    name, call = name_of(item), getattr(item, "callspec", None)
    if call is None or not name.endswith(f"[{call.id}]"):
        return name
    text = call.id
    for argument, value in call.params.items():
        numbered = re.compile(rf"(?<![^-]){re.escape(argument)}\d+(?![^-])")
        shown = repr(value)
        if not _ADDRESS.search(shown):
            text = numbered.sub(shown.replace("\\", r"\\"), text)
    return f"{name[: -len(call.id) - 2]}[{text}]"


def _wait_for(pid):
    """Returns (status of the ended process, whether it was killed because it idled)."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # a kernel without it
        return os.waitpid(pid, 0)[1], False
    is_idle, before = False, None
    while not select.select([descriptor], [], [], _MOST_IDLE_S)[0]:
        before, last = _ticks_of(pid), before
        if before == last:
            os.kill(pid, signal.SIGKILL)
            is_idle = True
            break
    os.close(descriptor)
    return os.waitpid(pid, 0)[1], is_idle


def _ticks_of(pid):
    """Includes the processor time of all programs below the process."""
    ticks = 0
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            ticks += sum(map(int, file.read().rpartition(")")[2].split()[11:15]))
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="utf-8") as file:
                ticks += sum(map(_ticks_of, file.read().split()))
    except OSError:  # it has ended meanwhile
        pass
    return ticks


def write_line(path, record):
    write_lines(path, [record])


def write_lines(path, records):
    """Writes in one piece, because other processes write to the file too."""
    text = "".join(json.dumps(record) + "\n" for record in records).encode()
    with _writing():
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        if os.write(descriptor, text) < len(text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.close(descriptor)


def _write_whole(path, text):
    part = f"{path}.{os.getpid()}"
    with _writing():
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)


@contextlib.contextmanager
def _writing():
    """Ends this process if a write fails. A test would take the error for its own."""
    try:
        yield
    except OSError:
        os._exit(CANNOT_WRITE)


def _seed():
    """Makes a test draw the same numbers whatever ran before it."""
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def _without_places(text, *folders):
    """Removes the paths of the toolchain, the repository and these folders, which differ on each side."""
    text = text.replace(describe.TRITON_ROOT, "<triton>")
    for folder in (os.path.realpath("."), *folders):
        text = text.replace(os.path.join(folder, ""), "")
    return text


def _one_line(text):
    return " ".join(text.split())[:_MOST_REASON]
