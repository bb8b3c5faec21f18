"""LLVM IR as one LLVM reads and prints it, by a child process that may die.

LLVM's assertions abort the process on some broken texts, and no list of them can be complete; so it is kept
out of irdiff's own process. The child is started with the first text, and again after a death.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from importlib import metadata
from pathlib import Path

import irdiff
from irdiff import process
from irdiff.config import Config
from irdiff.ir.canonical import Printed

CHILD = (sys.executable, "-P", "-s", "-m", "irdiff.ir.llir.llvm_reader")
TRANSIENT = frozenset({"died", "timeout", "unavailable"})
"""Reasons that may have nothing to do with the text: such an answer is not kept."""
MAX_LENGTH = 8 << 20
"""The most characters of a text: ten times the longest seen."""
TIMEOUT_S = 30.0
"""The limit for one text; the longest that are allowed take a few seconds."""
_MAX_ANSWER = 16 * MAX_LENGTH
MAX_DEATHS = 100
"""The most deaths of the child in a run. Each costs a fifth of a second, and so many mean a broken LLVM."""


def version() -> str:
    """The versions that a cached answer depends on, besides the two texts."""
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
        self._deaths = 0
        self._lock = threading.Lock()
        # Lives as long as the reader: the kernel ends a child with the thread that started it.
        self._starter = ThreadPoolExecutor(1)

    def reprint(self, text: str) -> Printed:
        """The text as LLVM prints it, without debug information, or why there is none. Never raises."""
        if len(text) > MAX_LENGTH:
            return Printed(text=None, why_not="too-long")
        with self._lock:
            if self._deaths >= MAX_DEATHS or not self._started():
                return Printed(text=None, why_not="unavailable")
            return self._asked(json.dumps(text).encode() + b"\n")

    def _started(self) -> bool:
        """True once a child has said that it is ready."""
        if self._child is not None and self._child.poll() is None:
            return True
        self._end()
        try:
            self._child = self._starter.submit(self._start).result()
        except OSError:
            self._deaths = MAX_DEATHS
            return False
        if self._asked(b"").why_not:
            self._deaths = MAX_DEATHS  # it would not start a second time either
        return self._deaths < MAX_DEATHS

    def _start(self) -> process.Child:
        self._log.parent.mkdir(parents=True, exist_ok=True)
        # this very copy of irdiff, and nothing from the current folder, which may be anybody's checkout
        environment = {"PYTHONPATH": str(Path(irdiff.__file__).parents[1]), "LC_ALL": "C.UTF-8"}
        return process.start_worker(self._command, env=environment, stderr=self._log)

    def _asked(self, message: bytes) -> Printed:
        """A child that takes too long is killed, which ends the wait."""
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        end = time.monotonic() + self._timeout_s
        timer = threading.Timer(self._timeout_s, child.kill)
        timer.start()
        try:
            child.stdin.write(message)
            child.stdin.flush()
            answer = child.stdout.readline(_MAX_ANSWER)
            if answer.endswith(b"\n"):
                return Printed(**json.loads(answer))
        except (OSError, ValueError, TypeError):
            pass  # the pipe broke, or what came is no answer
        finally:
            timer.cancel()
        self._deaths += 1
        self._end()
        return Printed(text=None, why_not="timeout" if time.monotonic() >= end else "died")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            with contextlib.suppress(OSError), child:  # its pipes may hold what was never sent
                child.kill()

    def close(self) -> None:
        with self._lock:
            self._end()
            self._deaths = MAX_DEATHS
        self._starter.shutdown()
