"""The worker of each toolchain: it captures workloads and compiles their launches."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from irdiff.capture.catalog import Catalog
from irdiff.capture.catalogs import Capturer
from irdiff.compile.launch_compiler import LaunchCompiler
from irdiff.compile.launch_requests import place
from irdiff.model import Launch, Selection, Target, Toolchain
from irdiff.store import Store
from irdiff.worker.protocol import CompileWords
from irdiff.worker_client.worker_requests import Requests

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side


class WorkerCompiler(LaunchCompiler):
    def __init__(
        self, requests: Requests, store: Store, wanted: Selection, *, reuse: bool, frontend: bool = True
    ) -> None:
        super().__init__(requests, store, wanted, reuse=reuse, frontend=frontend)
        self._capturer = Capturer(requests, store, reuse=reuse)
        self._again: dict[tuple[str, ...], Catalog] = {}
        self._captures: dict[tuple[str, ...], Lock] = {}

    def catalog(self, side: Side, workload: str, target: Target) -> Catalog:
        catalog = self._capturer.catalog(side, workload, target, self.chosen(workload, target))
        self.select(side, workload, target, catalog.selection)
        return catalog

    def captured_again(self, side: Side, workload: str, target: Target) -> Catalog:
        """Captures the same launches in another process, once for all cases of a workload."""
        where = place(side, workload, target)
        with self._lock:
            turn = self._captures.setdefault(where, Lock())
        with turn:
            if where not in self._again:
                selection = self.selection(side, workload, target)
                self._again[where] = self._capturer.again(side, workload, target, selection)
            return self._again[where]

    def count_lines(
        self, counting: Toolchain, side: Side, launch: Launch, target: Target, profile: Path
    ) -> None:
        """Has `counting`, a compiler that counts its lines, compile a launch of a side, and leave its
        counters at `profile`. If it crashes it leaves none.
        """
        words: CompileWords = {"op": "compile", "digest": launch.digest, "profile": str(profile)}
        with self.store.scratch() as folder:
            self.ask(words, replace(side, toolchain=counting), launch, target, folder)
