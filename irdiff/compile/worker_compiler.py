"""Compiled cases of a toolchain: from the cache, or from its worker.

A case that does not compile is a result. A result is kept under what it was made from: the *input digest* of
the launch (the frontend's IR, options, target, content of named files), the digest of the toolchain, the
worker's own code and the environment. A launch without an input digest is compiled each time. A result whose
artifacts are gone or damaged counts as absent. Failures that another time or machine may not have are not
kept: time-outs, exhausted memory, processes that were killed, what the system refused. Nor is a compilation
that imported a module which no digest holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import TypeAdapter

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

_outcome = TypeAdapter(Outcome)


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
        self._lock = Lock()
        self._turns: dict[str, Lock] = {}

    def catalog(self, side: Side, workload: str, target: Target) -> Catalog:
        """The launches of a workload that are wanted."""
        selection = self.wanted.selection(workload, target)
        found = self._capturer.catalog(side, workload, target, selection)
        self._selections[_place(side, workload, target)] = found.selection
        return found

    def selection(self, side: Side, workload: str, target: Target) -> Selection:
        """Which launches of a workload a host has to capture, and whether it runs the frontend for that."""
        known = self._selections.get(_place(side, workload, target))
        return known or self.wanted.selection(workload, target)

    # compilation

    def compile(self, side: Side, launch: Launch, target: Target, *, attempt: int | None = None) -> Outcome:
        """One side of a case; each numbered attempt in another process, with addresses and hashes random."""
        kind = "compiled/1" if attempt is None else f"recompiled/1/{attempt}"
        key = self.key(kind, side, launch, target)
        with self._turn(key):
            found = self._stored(key)
            if found is not None:
                self.taken_from_store += attempt is None
                return found
            more = self.assembled(side.toolchain) if attempt is None and self.reuse else {}
            row = self._request(side, launch, target, **more)
            extra = side.corpus.extra_packages(launch.id, target)
            ask = partial(self.requests.ask, side.toolchain, extra, row, randomized=attempt is not None)
            return self._run(key, ask, side.toolchain)

    def count_lines(
        self, counting: Toolchain, side: Side, launch: Launch, target: Target, profile: Path
    ) -> None:
        """Has `counting`, a compiler that counts its lines, compile a launch of a side, and leave its
        counters at `profile`. Where it crashes it leaves none.
        """
        row = self._request(side, launch, target, profile=str(profile))
        with self.store.scratch() as folder:
            self.requests.ask(counting, side.corpus.extra_packages(launch.id, target), row, folder)

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

    def assembled(self, toolchain: Toolchain) -> dict[str, object]:
        """Lets a worker take what an assembler has made of the same input before."""
        return {"assembled": str(self.store.assembled), "programs": dict(toolchain.programs)}

    def _stored(self, key: str | None) -> Outcome | None:
        record = self.store.get_record("compiled", key) if self.reuse and key else None
        if record is None:
            return None
        outcome = _outcome.validate_python(record)
        is_whole = all(self.store.has(artifact.digest) for artifact in outcome.artifacts.values())
        return outcome if is_whole else None

    def _request(self, side: Side, launch: Launch, target: Target, **more: object) -> dict[str, object]:
        """Asks a worker to compile one launch; with `more`."""
        return {
            "op": "compile",
            "launch": launch.id,
            "digest": launch.digest,
            **side.corpus.place,
            "target": asdict(target),
            "select": asdict(self.selection(side, launch.workload, target)),
            **more,
        }

    def _run(self, key: str | None, ask: Callable[[Path], EndedChild], toolchain: Toolchain) -> Outcome:
        with self.store.scratch() as folder:
            ended = ask(folder)
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
                    stage_times_s=result["times_s"] if result else {},
                )
            else:
                outcome = _compiled(result, artifacts, toolchain)
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
    return Compiled(
        artifacts=artifacts,
        metadata=result["metadata"],
        handed=result["handed"],
        stage_times_s=result["times_s"],
        stage_cpu_s=result["cpu_s"],
        assembler=assembler,
        assembler_log=result["assembler_log"],
        notes=tuple(result["notes"]),
    )
