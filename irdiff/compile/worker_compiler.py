"""Compiled cases of a toolchain: from the cache, or from its worker.

A case that does not compile is a result. A result is kept under what it was made from: the *input digest* of
the launch (the frontend's IR, options, target, content of named files), the digest of the toolchain, the
worker's own code and the environment, and holds while the files that its stages opened have the same content
(`opened_files`). A launch without an input digest is compiled each time. A result whose
artifacts are gone or damaged counts as absent. Failures that another time or machine may not have are not
kept: time-outs, exhausted memory, processes that were killed, what the system refused. Nor is a compilation
that imported a module which no digest holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import TypeAdapter

from irdiff.capture import opened_files
from irdiff.capture.catalogs import Capturer, Catalog, Selection, Wanted
from irdiff.model import (
    Artifact,
    Assembler,
    Compiled,
    Failed,
    FailureKind,
    Launch,
    Outcome,
    Target,
    Toolchain,
)
from irdiff.resolve.sides import Side
from irdiff.store import Store, key_of
from irdiff.worker_client.worker_requests import Requests, artifacts_of_the_dead, read_result
from irdiff.worker_client.workers import EndedChild

Row = Mapping[str, object]
_outcome, _compilation = TypeAdapter(Outcome), TypeAdapter(Compiled)


class WorkerCompiler:
    """Captures and compiles for one comparison. Thread-safe."""

    def __init__(self, requests: Requests, store: Store, wanted: Wanted, *, reuse: bool) -> None:
        self.requests = requests
        self.store = store
        self.wanted = wanted
        self.reuse = reuse
        """Whether results of earlier runs are taken from the cache."""
        self.taken_from_store = 0
        """How many sides of cases needed no compilation, for progress."""
        self._capturer = Capturer(requests, store, reuse=reuse)
        self._selections: dict[tuple[str, ...], Selection] = {}
        """As a workload of a corpus was captured under an interpreter, for a target: its host is asked for
        the same."""
        self._again: dict[tuple[str, ...], Catalog] = {}
        self._lock = Lock()
        self._turns: dict[str, Lock] = {}

    def catalog(self, side: Side, workload: str, target: Target) -> Catalog:
        """The launches of a workload that are wanted."""
        selection = self.wanted.selection(workload, target)
        found = self._capturer.catalog(side, workload, target, selection)
        self._selections[_place(side, workload, target)] = found.selection
        return found

    def captured_again(self, side: Side, workload: str, target: Target) -> Catalog:
        """The same launches from another process; captured once for all cases of a workload."""
        place = _place(side, workload, target)
        with self._lock:
            turn = self._turns.setdefault(key_of("captured again", place), Lock())
        with turn:
            if place not in self._again:
                selection = self.selection(side, workload, target)
                self._again[place] = self._capturer.again(side, workload, target, selection)
            return self._again[place]

    def selection(self, side: Side, workload: str, target: Target) -> Selection:
        """Which launches of a workload a host has to capture, and whether it runs the frontend for that."""
        known = self._selections.get(_place(side, workload, target))
        return known or self.wanted.selection(workload, target)

    # compilation

    def compile(self, side: Side, launch: Launch, target: Target, *, attempt: int | None = None) -> Outcome:
        """One side of a case; each numbered attempt in another process, with addresses and hashes random."""
        kind = "compiled/2" if attempt is None else f"recompiled/2/{attempt}"
        key = self.key(kind, side, launch, target)
        with self._turn(key):
            found = self._stored(key, side)
            if found is not None:
                self.taken_from_store += attempt is None
                return found
            return self._made(key, side, launch, target, randomized=attempt is not None)

    def count_lines(
        self, counting: Toolchain, side: Side, launch: Launch, target: Target, profile: Path
    ) -> None:
        """Has `counting`, a compiler that counts its lines, compile a launch of a side, and leave its
        counters at `profile`. Where it crashes it leaves none.
        """
        row = {"op": "compile", "digest": launch.digest, "profile": str(profile)}
        with self.store.scratch() as folder:
            self.ask(row, replace(side, toolchain=counting), launch, target, folder)

    def _turn(self, key: str | None) -> AbstractContextManager[object]:
        """Launches with one input digest are compiled once: the second one waits, and finds the result."""
        if key is None or not self.reuse:
            return nullcontext()
        with self._lock:
            return self._turns.setdefault(key, Lock())

    def key(self, kind: str, side: Side, launch: Launch, target: Target) -> str | None:
        """Of what is made of a launch; None for one whose results are not kept."""
        if launch.digest is None:
            return None
        extra = side.corpus.extra_packages(launch.id, target)
        packages = extra.packages.digest if extra and extra.packages else extra is not None
        environment = self.requests.environment_digest
        return key_of(kind, environment, launch.digest, side.toolchain.digest, packages)

    def ask(
        self, row: Row, side: Side, launch: Launch, target: Target, folder: Path, *, randomized: bool = False
    ) -> EndedChild:
        """Has the worker of a side do what `row` says with one launch, and leave the results in `folder`.

        The worker may take what an assembler has made of the same input before.
        """
        selection = asdict(self.selection(side, launch.workload, target))
        request = {
            **row,
            **side.corpus.place,
            "launch": launch.id,
            "target": asdict(target),
            "select": selection,
        }
        if self.reuse and not randomized:
            request |= {"assembled": str(self.store.assembled), "programs": dict(side.toolchain.programs)}
        extra = side.corpus.extra_packages(launch.id, target)
        return self.requests.ask(side.toolchain, extra, request, folder, randomized=randomized)

    def _stored(self, key: str | None, side: Side) -> Outcome | None:
        record = self.store.get_record("compiled", key) if self.reuse and key else None
        if record is None:
            return None
        outcome = _outcome.validate_python(record)
        is_whole = all(self.store.has(artifact.digest) for artifact in outcome.artifacts.values())
        return outcome if is_whole and opened_files.hold(outcome.opened, side.corpus.root) else None

    def _made(
        self, key: str | None, side: Side, launch: Launch, target: Target, *, randomized: bool
    ) -> Outcome:
        row = {"op": "compile", "digest": launch.digest}
        with self.store.scratch() as folder:
            ended = self.ask(row, side, launch, target, folder, randomized=randomized)
            result = read_result(folder)
            names = result["artifacts"] if result else artifacts_of_the_dead(folder)
            artifacts = {name: self._ingest(folder, name) for name in names}
            if result is None or result["outcome"] != "compiled":
                failure = self.requests.failure(ended, result, folder)
                transient = failure.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY)
                outcome: Outcome = Failed(
                    failure=failure,
                    transient=transient or bool(result and result.get("transient")),
                    artifacts=artifacts,
                    stage_times_s=result["stage_times_s"] if result else {},
                )
            else:
                outcome = _compiled(result, artifacts, side.toolchain)
            outcome = replace(outcome, opened=opened_files.of_request(folder, side.corpus.root))
        from_outside = result is not None and result.get("from_outside")
        if key is not None and not from_outside and not _is_own(outcome):
            self.store.put_record("compiled", key, _outcome.dump_python(outcome, mode="json"))
        return outcome

    def _ingest(self, folder: Path, name: str) -> Artifact:
        content = (folder / name).read_bytes()
        return Artifact(stage=name, digest=self.store.put(content), size_bytes=len(content))


def _place(side: Side, workload: str, target: Target) -> tuple[str, ...]:
    return side.toolchain.python, str(side.corpus.root), workload, target.name


def _is_own(outcome: Outcome) -> bool:
    """Whether a failure says something of this machine or this workload, and not of the compiler."""
    return isinstance(outcome, Failed) and (outcome.transient or outcome.failure.stage == "capture")


def _compiled(result: Mapping[str, Any], artifacts: Mapping[str, Artifact], toolchain: Toolchain) -> Compiled:
    program, *flags = result["assembler_flags"] or [None]
    assembler = Assembler(digest=toolchain.programs.get(program), flags=tuple(flags)) if program else None
    return _compilation.validate_python({**result, "artifacts": artifacts, "assembler": assembler})
