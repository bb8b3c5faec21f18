"""Controls a GPU process from outside, with time limits."""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.errors import IrdiffError
from irdiff.timing.results import OutputStatus

_START_LIMIT_S = 180.0
_numbers = itertools.count(1)


class GpuProcessError(IrdiffError):
    """A GPU process failed at what every one must do (start, open its GPU)."""


class GpuProcessGone(Exception):  # noqa: N818 - reads better where it is caught
    """A kernel faulted, the driver crashed, or the process was killed at its limit."""

    def __init__(self, status: OutputStatus, side: str | None, message: str) -> None:
        super().__init__(message)
        self.status, self.side, self.message = status, side, message


class GpuProcess:
    """One process; its first request opens a GPU, or lists them."""

    def __init__(self, folder: Path, environment: Mapping[str, str], log: Path) -> None:
        # a log of its own: the last line of it is the word of this process on how it ended
        self.log = log.with_name(f"{log.name}-{next(_numbers)}")
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        command = [sys.executable, "-m", "irdiff.timing.gpu_process", str(folder)]
        try:
            self._child = process.start_worker(command, env=environment, stderr=self.log)
        except OSError as error:
            raise GpuProcessError(f"a GPU process cannot be started: {error.strerror}") from error
        threading.Thread(target=self._listen, daemon=True).start()
        self._side: str | None = None

    def _listen(self) -> None:
        assert self._child.stdout
        with contextlib.suppress(OSError, ValueError):  # closed from this side; nobody waits for more
            for line in self._child.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def ask_first(self, request: Mapping[str, Any], timeout_s: float, failed: str) -> dict[str, Any]:
        """Allows for imports. Raises GpuProcessError, whose message begins with `failed`, if there is no
        reply.
        """
        try:
            message = self._next(time.monotonic() + _START_LIMIT_S)
            if message["kind"] != "ready":
                raise self._gone(OutputStatus.FAULT, f"it began with {message['kind']!r}")
        except GpuProcessGone as ended:
            raise GpuProcessError(
                f"the GPU process did not start: {ended.message}",
                hint="`pip install irdiff[timing]`, in an environment whose torch sees the GPU",
            ) from ended
        try:
            reply = self.ask(request, timeout_s)
        except GpuProcessGone as ended:
            raise GpuProcessError(f"{failed}: {ended.message}") from ended
        if reply["kind"] == "refused":
            raise GpuProcessError(f"{failed}: {reply['message']}")
        return reply

    def ask(self, request: Mapping[str, Any], timeout_s: float) -> dict[str, Any]:
        """Raises GpuProcessGone if the process died or exceeded its limit."""
        assert self._child.stdin
        self._side = None
        with contextlib.suppress(OSError):  # it is gone; reading says how
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        deadline = time.monotonic() + timeout_s
        while (message := self._next(deadline))["kind"] == "progress":
            self._side = message["side"]
        if message["kind"] == "fault":
            raise self._gone(OutputStatus.FAULT, message["message"])
        return message

    def _next(self, deadline: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise self._gone(OutputStatus.HANG, "did not end within its limit") from None
        if line is None:
            code = self._child.wait()
            raise self._gone(OutputStatus.FAULT, f"the GPU process ended with {code}: {self._tail()}")
        with contextlib.suppress(ValueError):  # it died, or something wrote, in the middle of a line
            message = json.loads(line)
            if isinstance(message, dict) and isinstance(message.get("kind"), str):
                return message
        raise self._gone(OutputStatus.FAULT, f"the GPU process answered {line[:100]!r}")

    def _gone(self, status: OutputStatus, message: str) -> GpuProcessGone:
        self.close()
        return GpuProcessGone(status, self._side, message)

    def _tail(self) -> str:
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1][:300] if lines else ""

    def close(self) -> None:
        """Ends the process; the driver ends its kernels."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe:
                with contextlib.suppress(OSError):  # it died with a request half written
                    pipe.close()
