"""The client of a worker: sends requests and reads replies, with one process per toolchain and generation."""

from __future__ import annotations

import contextlib
import itertools
import json
import shutil
import threading
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.resolve import worker_surroundings
from irdiff.resolve.toolchains import identity
from irdiff.worker.protocol import Reply

if TYPE_CHECKING:
    from irdiff.resolve.corpus import ExtraPackages

_CLOSE_S = 30
"""A worker takes two seconds to end its hosts, and some more to reap them. If it is killed, their processor
time is lost.
"""


@dataclass(frozen=True, kw_only=True)
class EndedChild:
    """How a child of a worker ended."""

    signal: int
    timed_out: bool
    worker_died: bool


class Worker:
    """One long-lived process of a toolchain. Thread-safe; every request is served by a forked child.

    Start it from a thread that outlives it: the kernel ends it when that thread ends.
    """

    def __init__(
        self,
        toolchain: Toolchain,
        extra: ExtraPackages | None,
        config: Config,
        log: Path,
        *,
        randomized: bool = False,
    ) -> None:
        self._folder = worker_surroundings.new_folder(config)
        environment = worker_surroundings.environment(toolchain, self._folder, config)
        if randomized:
            environment["IRDIFF_KEEP_ASLR"] = "1"
            environment["PYTHONHASHSEED"] = "1"
        self._process = process.start_worker(
            [*identity.worker_command(toolchain.python, "serve"), *_words(extra)],
            env=environment,
            stderr=log,
        )
        self._pending: dict[int, Future[EndedChild]] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        assert self._process.stdout is not None
        hello = self._process.stdout.readline()
        if not hello:
            self._process.wait()
            self._remove_folder()
            text = "\n".join(log.read_text(errors="replace").strip().splitlines()[-4:])
            raise ToolchainError(
                f"{toolchain.spec}: irdiff's worker did not start in this toolchain:\n{text}",
                hint=f"see if it imports: {toolchain.python} -c 'import triton'",
                log_path=str(log),
            )
        greeting = json.loads(hello)
        if identity.own_variables(greeting["environment"], environment) != toolchain.variables:
            self._process.kill()
            self._remove_folder()
            raise ToolchainError(
                f"{toolchain.spec}: {toolchain.python} sets other variables each time it is started",
                hint="name the interpreter itself, not a script that starts it",
            )
        self.addresses_fixed: bool = greeting["addresses_fixed"]
        threading.Thread(target=self._read_replies, daemon=True).start()

    def request(self, request_words: Mapping[str, Any]) -> EndedChild:
        """Sends one request and waits until its child has ended."""
        future: Future[EndedChild] = Future()
        with self._lock:
            number = next(self._numbers)
            self._pending[number] = future
            assert self._process.stdin is not None
            try:
                self._process.stdin.write(json.dumps({**request_words, "id": number}).encode() + b"\n")
                self._process.stdin.flush()
            except (BrokenPipeError, ValueError):
                self._pending.pop(number, None)
                return EndedChild(signal=0, timed_out=False, worker_died=True)
        return future.result()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def _read_replies(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply: Reply = json.loads(line)
            ended = EndedChild(signal=reply["signal"], timed_out=reply["timed_out"], worker_died=False)
            if future := self._pending.pop(reply["id"], None):
                future.set_result(ended)
        with self._lock:
            waiting, self._pending = list(self._pending.values()), {}
        for future in waiting:
            future.set_result(EndedChild(signal=0, timed_out=False, worker_died=True))
        self._remove_folder()

    def close(self) -> None:
        """Ends the worker and, through it, its children."""
        with contextlib.suppress(OSError, ValueError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(timeout=_CLOSE_S)
        except process.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._remove_folder()

    def _remove_folder(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


def _words(extra: ExtraPackages | None) -> list[str]:
    """Returns nothing if torch is not needed, else the packages, of which there may be none."""
    if extra is None:
        return []
    packages = extra.packages
    described = packages and {
        "site": str(packages.site),
        "imports": packages.imports,
        "kernels": packages.kernels,
        "torch_compile": packages.torch_compile,
        "target": asdict(extra.target),
    }
    return [json.dumps(described)]


class Workers:
    """The worker processes of one comparison, started when they are first needed."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._workers: dict[tuple[str, str, str, bool], Future[Worker]] = {}
        self._lock = threading.Lock()
        # Lives as long as the workers: the kernel ends a worker with the thread that started it.
        self._starters = ThreadPoolExecutor(4)  # base and head, each with and without randomization

    def get(
        self, toolchain: Toolchain, extra: ExtraPackages | None = None, *, randomized: bool = False
    ) -> Worker:
        """Returns the worker of a toolchain, with the packages that workloads need. A dead one is
        replaced.
        """
        place = ("torch", "") if extra else ("", "")
        if extra and extra.packages:
            place = (str(extra.packages.site), extra.target.name)
        key = (toolchain.digest + toolchain.python, *place, randomized)
        with self._lock:
            starting = self._workers.get(key)
            if starting is None or (starting.done() and not _is_alive(starting)):
                log = self._config.cache / "worker.log"
                log.parent.mkdir(parents=True, exist_ok=True)
                starting = self._starters.submit(
                    Worker, toolchain, extra, self._config, log, randomized=randomized
                )
                self._workers[key] = starting
        return starting.result()

    def addresses_fixed(self) -> bool:
        """True if address randomization is off in every deterministic worker."""
        return all(
            starting.result().addresses_fixed
            for (*_, randomized), starting in self._workers.items()
            if not randomized
        )

    @property
    def started(self) -> bool:
        return bool(self._workers)

    def close(self) -> None:
        with self._lock:
            for starting in self._workers.values():
                if starting.exception() is None:
                    starting.result().close()
            self._workers.clear()
        self._starters.shutdown()


def _is_alive(started: Future[Worker]) -> bool:
    return started.exception() is None and started.result().alive
