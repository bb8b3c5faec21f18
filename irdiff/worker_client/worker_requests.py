"""Sends requests to workers, a bounded number at a time, and reads their results, or how a child died."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from irdiff.config import Config
from irdiff.model import Failure, FailureKind, Toolchain
from irdiff.process import FROM_OUTSIDE
from irdiff.resolve.toolchains.identity import worker_code
from irdiff.stages import Stage
from irdiff.store import disk_space, key_of
from irdiff.worker import protocol
from irdiff.worker.protocol import Request, Result
from irdiff.worker_client import diagnosis
from irdiff.worker_client.workers import EndedChild, Workers

if TYPE_CHECKING:
    from irdiff.resolve.corpus import ExtraPackages

_UNKNOWN_ARCHITECTURE = (
    "is not defined for option 'gpu-name'",  # ptxas
    "computeCapability not supported",  # MLIR passes of 3.2
    "is not a recognized processor",  # LLVM
    "unknown target",
)
_PLACES = ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
"""Variables that say where things lie; their content is in digests by other means."""


class Requests:
    """Thread-safe. At most `config.jobs` requests are under way at once."""

    def __init__(self, config: Config, workers: Workers) -> None:
        self.config = config
        self.workers = workers
        self._cores = threading.BoundedSemaphore(config.jobs)
        self._alone = threading.Lock()
        decisive = {name: value for name, value in config.compiler_environment.items() if name not in _PLACES}
        self.environment_digest = key_of(worker_code(), decisive)
        """Covers the worker's own code and the environment that it runs in; a part of every key."""

    def ask(
        self,
        toolchain: Toolchain,
        extra: ExtraPackages | None,
        words: Request,
        folder: Path,
        *,
        randomized: bool = False,
    ) -> EndedChild:
        """Serves one request, which leaves its results in `folder`; `words` may have their own time limit.
        Raises StoreError if the disk has no space for the results.
        """
        limits = self.config.limits
        request = {
            "timeout_s": limits.timeout_s,
            **words,
            "folder": str(folder),
            "memory_bytes": limits.memory_bytes,
        }

        def ask() -> EndedChild:
            return self.workers.get(toolchain, extra, randomized=randomized).request(request)

        with self._cores:
            ended = ask()
            if ended.worker_died:  # another case may have killed it: again, while no other is asked again
                with self._alone:
                    ended = ask()
            if not (folder / protocol.RESULT).exists() or disk_space.is_nearly_used_up(folder):
                # what could not be written says nothing of the kernel
                disk_space.check(folder, self.config.temporary_folder)
            return ended

    def failure(self, ended: EndedChild, result: Result | None, folder: Path) -> Failure:
        """Returns why a request gave no result, or what its result says went wrong. Raises StoreError if the
        disk is full.
        """
        failure = _failure_of(ended, result, folder, self.config)
        text = f"{failure.message}\n{failure.stderr}"
        disk_space.raise_if_named(text, folder, self.config.temporary_folder)
        return failure


def read_result(folder: Path) -> Result | None:
    """Returns None if the child died before it was written."""
    try:
        result: Result = json.loads((folder / protocol.RESULT).read_text())
    except FileNotFoundError:
        return None
    return result


def artifacts_of_the_dead(folder: Path) -> Sequence[str]:
    """Lists stages that ended before the process died, for `irdiff diff` of a broken case."""
    return [stage for stage in _begun(folder) if (folder / stage).exists()]


def _begun(folder: Path) -> Sequence[str]:
    try:
        return (folder / protocol.STAGES).read_text().split()
    except FileNotFoundError:
        return ()


def _failure_of(ended: EndedChild, result: Result | None, folder: Path, config: Config) -> Failure:
    printed = diagnosis.of_file(folder / protocol.ERRORS)
    stderr = printed.excerpt
    stage = result["stage"] if result else next(reversed(_begun(folder)), str(Stage.TTIR))
    if ended.timed_out:
        kind, message = FailureKind.TIMEOUT, f"no result after {config.limits.timeout_s:g} s"
    elif result is not None:
        kind, message = FailureKind(result["outcome"]), printed.explained(result["message"])
        if result.get("unsupported") or any(text in message + stderr for text in _UNKNOWN_ARCHITECTURE):
            kind = FailureKind.UNSUPPORTED
        elif "bad_alloc" in message or "Cannot allocate memory" in message:
            kind = FailureKind.MEMORY
    elif ended.worker_died or ended.signal in FROM_OUTSIDE:
        # of the compiler that says nothing: it is not kept
        kind, message = FailureKind.MEMORY, "the worker process died (killed by the system, out of memory?)"
    else:
        kind, message = FailureKind.CRASH, printed.explained(_ending(ended))
        if any(text in stderr for text in _UNKNOWN_ARCHITECTURE):
            kind = FailureKind.UNSUPPORTED
        elif any(text in stderr for text in ("bad_alloc", "out of memory", "Cannot allocate memory")):
            kind = FailureKind.MEMORY
            message = f"out of memory at {config.limits.memory_bytes >> 20} MiB"
    name = signal.Signals(ended.signal).name if ended.signal and not ended.timed_out else None
    return Failure(kind=kind, stage=stage, message=message, signal=name, stderr=stderr)


def _ending(ended: EndedChild) -> str:
    name = signal.Signals(ended.signal).name if ended.signal else "an exit without a result"
    return f"the compiler died of {name}"
