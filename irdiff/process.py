"""The only place that starts processes: one door for commands, one for workers.

Every process is given its whole environment, dies with irdiff (PR_SET_PDEATHSIG), and reports a failure
with its command, exit code and output.
"""

from __future__ import annotations

import contextlib
import ctypes
import inspect
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1
_ADDR_NO_RANDOMIZE = 0x0040000
_ASK = 0xFFFFFFFF
"""As an argument of `personality`, it changes nothing."""
_libc = ctypes.CDLL(None)
FROM_OUTSIDE = frozenset({signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
"""No program ends of these by a fault of its own."""


def _die_with_parent() -> None:
    # The kernel watches the thread that started the process: start long-lived ones from the main thread.
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _members(session: int) -> Iterator[int]:
    """The processes of a session but for its leader."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            session_of = int(stat.read_text(errors="replace").rpartition(")")[2].split()[3])
            if session_of == session != int(stat.parent.name):
                yield int(stat.parent.name)


def _halt(session: int, number: int) -> None:
    """Sends SIGSTOP or SIGKILL. Who has one pending starts no process; those found anew get it, too."""
    signaled: set[int] = set()
    while members := set(_members(session)) - signaled:
        for pid in members:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        signaled |= members


# Between irdiff and a command that starts many others (a build): when irdiff dies, however it dies, the
# kernel signals this process, and it ends the whole session (ninja gives every job a group of its own). A
# build that went on alone would write into the folder that the next irdiff builds in.
_SESSION_LEADER = f"""
from __future__ import annotations
import contextlib, ctypes, os, signal, sys
from pathlib import Path

{inspect.getsource(_members)}
{inspect.getsource(_halt)}
def end(*_):
    _halt(os.getpid(), signal.SIGKILL)
    os._exit(143)

signal.signal(signal.SIGTERM, end)
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    end()
code = os.spawnvp(os.P_WAIT, sys.argv[2], sys.argv[2:])
os._exit(code if code >= 0 else 128 - code)
"""


TimeoutExpired = subprocess.TimeoutExpired
Child = subprocess.Popen[bytes]


class CommandFailed(Exception):  # noqa: N818 - reads better where it is caught
    """A command ended with another code than zero."""

    def __init__(self, command: Sequence[str], code: int, stdout: str, stderr: str) -> None:
        super().__init__(command, code)
        self.command, self.code, self.stdout, self.stderr = tuple(command), code, stdout, stderr

    def __str__(self) -> str:
        return f"{' '.join(self.command)} ended with {self.code}:\n{self.tail()}"

    def tail(self, lines: int = 12) -> str:
        """Its last lines, those of standard error where there are any."""
        return "\n".join((self.stderr.strip() or self.stdout.strip()).splitlines()[-lines:])


def run(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
) -> str:
    """Standard output of a command. Raises CommandFailed, subprocess.TimeoutExpired, OSError."""
    return run_bytes(command, env=env, cwd=cwd, timeout_s=timeout_s).decode(errors="replace")


def run_bytes(
    command: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout_s: float | None = None,
    stdin: bytes = b"",
) -> bytes:
    """As `run`, for a command whose output is no text."""
    words = tuple(str(word) for word in command)
    done = subprocess.run(
        words, env=env, cwd=cwd, timeout=timeout_s, input=stdin, capture_output=True, check=False
    )
    if done.returncode:
        output = (part.decode(errors="replace") for part in (done.stdout, done.stderr))
        raise CommandFailed(words, done.returncode, *output)
    return done.stdout


@dataclass(frozen=True, kw_only=True)
class EndedCommand:
    """How a bounded command ended."""

    code: int
    """Its exit code, or the number of the signal that ended it, negative."""
    stdout: bytes
    stderr: bytes
    timed_out: bool


def run_bounded(
    command: Sequence[str | Path],
    *,
    executable: Path | None,
    env: Mapping[str, str],
    cwd: Path,
    timeout_s: float,
    memory_bytes: int,
    randomized: bool = False,
) -> EndedCommand:
    """A compiler on one text, whatever comes of it: it may crash, hang, or ask for all memory.

    Its addresses are not randomized unless that is asked for, so that its result depends on its input alone.
    """
    words = [str(word) for word in command]
    with (
        _addresses(fixed=not randomized),
        subprocess.Popen(
            words,
            executable=executable,
            env=dict(env),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as child,
    ):
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(child.pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))
            resource.prlimit(child.pid, resource.RLIMIT_CORE, (0, 0))
        try:
            out, err = child.communicate(timeout=timeout_s)
            timed_out = False
        except TimeoutExpired:
            child.kill()
            out, err = child.communicate()
            timed_out = True
        except BaseException:
            child.kill()
            raise
        return EndedCommand(code=child.returncode, stdout=out, stderr=err, timed_out=timed_out)


@contextlib.contextmanager
def _addresses(*, fixed: bool) -> Iterator[None]:
    """With `fixed`, a program that this thread starts meanwhile has the same addresses in every process.

    The kernel keeps this for each thread. Where a container refuses it, addresses stay randomized.
    """
    before = _libc.personality(_ASK)
    if fixed and before >= 0:
        _libc.personality(before | _ADDR_NO_RANDOMIZE)
    try:
        yield
    finally:
        if fixed and before >= 0:
            _libc.personality(before)


def run_logged(
    command: Sequence[str | Path],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    on_line: Callable[[str], None] = lambda _: None,
) -> int:
    """Exit code of a long command whose output, both streams, goes to `log` and line by line to `on_line`.

    A signal that ends or suspends irdiff
    ends or suspends all that the command started: SIGTERM and SIGHUP are raised as KeyboardInterrupt.
    """
    words = [str(word) for word in command]
    with log.open("a", encoding="utf-8") as file:
        file.write("$ " + " ".join(words) + "\n")
        file.flush()
        with subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", _SESSION_LEADER, str(os.getpid()), *words],
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        ) as child:
            assert child.stdout is not None
            try:
                with _signals_reach(child):
                    for line in child.stdout:
                        file.write(line)
                        file.flush()
                        on_line(line.rstrip())
            except BaseException:
                child.terminate()  # the leader ends what it started; leaving the block waits for it
                raise
        return child.returncode


@contextlib.contextmanager
def _signals_reach(child: subprocess.Popen[str]) -> Iterator[None]:
    """The command has a session of its own: what a terminal signals reaches irdiff, which hands it on."""
    if threading.current_thread() != threading.main_thread():
        yield
        return

    def interrupt(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(signal.Signals(number).name)

    def suspend(_number: int, _frame: FrameType | None) -> None:
        _halt(child.pid, signal.SIGSTOP)  # not its leader, which has to end it where irdiff is killed
        os.kill(os.getpid(), signal.SIGSTOP)
        for pid in _members(child.pid):  # here irdiff goes on: somebody continued it
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGCONT)

    handlers = {signal.SIGTERM: interrupt, signal.SIGHUP: interrupt, signal.SIGTSTP: suspend}
    # what the caller ignores (nohup) stays ignored
    before = {n: signal.getsignal(n) for n in handlers if signal.getsignal(n) is not signal.SIG_IGN}
    for number in before:
        signal.signal(number, handlers[number])
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def pool(count: int) -> ProcessPoolExecutor:
    """Processes that call functions, each with an interpreter of its own. Submit from a thread that outlives
    them.
    """
    fresh = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, mp_context=fresh, initializer=_die_with_parent)


def start_worker(command: Sequence[str | Path], *, env: Mapping[str, str], stderr: Path) -> Child:
    """A long-lived worker with pipes for requests and replies. Ctrl-C does not reach it: irdiff ends it."""
    with stderr.open("ab") as log:
        return subprocess.Popen(
            [str(word) for word in command],
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_parent,  # noqa: PLW1509 - one system call, no lock taken
        )
