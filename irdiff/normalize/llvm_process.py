"""LLVM IR as one LLVM reads and prints it, by a child process that may die.

LLVM's assertions abort the process on some broken texts, and no list of them can be complete; so it is kept
out of irdiff's own process. The child is started with the first text, and again after a death.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import metadata
from pathlib import Path

import irdiff
from irdiff import process
from irdiff.config import Config
from irdiff.normalize import Printed
from irdiff.normalize.llvm_child import UNREADABLE

CHILD = (sys.executable, "-P", "-s", "-m", "irdiff.normalize.llvm_child")
TRANSIENT = frozenset({"died", "timeout", "unavailable"})
"""Reasons that may have nothing to do with the text: such an answer is not kept."""
MAX_LENGTH = 8 << 20
"""The most characters of a text: ten times the longest seen."""
TIMEOUT_S = 30.0
"""The limit for one text; the longest that are allowed take a few seconds."""
_MAX_ANSWER = 16 * MAX_LENGTH
MAX_DEATHS = 100
"""The most deaths of the child in a run. Each costs a fifth of a second, and so many mean a broken LLVM."""


@functools.cache
def version() -> str:
    """What a kept answer depends on besides the two texts."""
    return metadata.version("llvmlite")


def opened(config: Config) -> closing[LlvmReader]:
    """A reader that is closed in the end, with its log in the cache."""
    return closing(LlvmReader(config.cache / "llvm-reader.log"))


class LlvmReader:
    """`reprint`, from any thread. Closing it ends the child."""

    def __init__(self, log: Path, command: Sequence[str] = CHILD, timeout_s: float = TIMEOUT_S) -> None:
        self._log = log
        self._command = command
        self._timeout_s = timeout_s
        self._child: process.Child | None = None
        self._form = ""
        self._deaths = 0
        self._lock = threading.Lock()
        # Lives as long as the reader: the kernel ends a child with the thread that started it.
        self._starter = ThreadPoolExecutor(1)

    def reprint(self, text: str) -> Printed:
        """The text as LLVM prints it, without debug information, or why there is none. Never raises."""
        if len(text) > MAX_LENGTH:
            return self._without("too-long")
        try:
            content = text.encode()
        except UnicodeEncodeError:  # bytes that are no text, which a caller has let through
            return self._without("unreadable")
        with self._lock:
            if self._deaths >= MAX_DEATHS or not self._started():
                return self._without("unavailable")
            answer, why_not = self._exchange(len(content).to_bytes(8) + content)
            if answer is None:
                return self._without(why_not)
            opaque, _, printed = answer.decode().partition("\n")
            return Printed(text=printed, form=self._form, opaque=tuple(opaque.split()), why_not="")

    def _started(self) -> bool:
        """Whether there is a child that has said hello."""
        if self._child is not None and self._child.poll() is None:
            return True
        self._end()
        try:
            self._child = self._starter.submit(self._start).result()
        except OSError:
            self._deaths = MAX_DEATHS
            return False
        hello, _ = self._exchange(b"")
        if not hello:
            self._deaths = MAX_DEATHS  # it would not start a second time either
            return False
        self._form = hello.decode()
        return True

    def _start(self) -> process.Child:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        # this very copy of irdiff, and nothing from the current folder, which may be anybody's checkout
        environment = {"PYTHONPATH": str(Path(irdiff.__file__).parents[1]), "LC_ALL": "C.UTF-8"}
        return process.start_worker(self._command, env=environment, stderr=self._log)

    def _exchange(self, message: bytes) -> tuple[bytes | None, str]:
        """The answer, or why there is none. A child that takes too long is killed, which ends the wait."""
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        late = threading.Event()

        def kill() -> None:
            late.set()
            child.kill()

        timer = threading.Timer(self._timeout_s, kill)
        timer.start()
        try:
            child.stdin.write(message)
            child.stdin.flush()
            head = child.stdout.read(8)
            size = int.from_bytes(head)
            if len(head) == 8 and size == UNREADABLE:
                return None, "unreadable"
            if len(head) == 8 and size <= _MAX_ANSWER:
                answer = child.stdout.read(size)
                if len(answer) == size:
                    return answer, ""
        except OSError:
            pass  # the pipe broke: it died
        finally:
            timer.cancel()
        self._deaths += 1
        self._end()
        return None, "timeout" if late.is_set() else "died"

    def _without(self, why_not: str) -> Printed:
        return Printed(text=None, form=self._form, opaque=(), why_not=why_not)

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(OSError):  # what was not sent yet cannot be sent any more
                if pipe:
                    pipe.close()

    def close(self) -> None:
        with self._lock:
            self._end()
            self._deaths = MAX_DEATHS
        self._starter.shutdown()
