"""Compiled cases of a toolchain: from the cache, or from its worker.

A case that does not compile is a result. A result is kept under what it was made from: the *input digest* of
the launch (the frontend's IR, options, target, content of named files), the digest of the toolchain, the
worker's own code and the environment. A launch without an input digest is compiled each time. A result whose
artifacts are gone or damaged counts as absent. Failures that another time or machine may not have are not
kept: time-outs, exhausted memory, processes that were killed, what the system refused. Nor is a compilation
that imported a module which no digest holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
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
from irdiff.resolve.corpus import Corpus, ExtraPackages
from irdiff.store import Store, key_of
from irdiff.worker_client.worker_requests import Requests, artifacts_of_the_dead, read_result

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
        self._selections: dict[tuple[str, str, str, str], Selection] = {}
        """As a workload of a corpus was captured under an interpreter, for a target: its host is asked for
        the same."""
        self._lock = Lock()
        self._turns: dict[str, Lock] = {}

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        """The launches of a workload that are wanted."""
        selection = self.wanted.selection(workload, target)
        found = self._capturer.catalog(toolchain, corpus, workload, target, selection)
        self._selections[toolchain.python, str(corpus.root), workload, target.name] = found.selection
        return found

    def selection(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Selection:
        """Which launches of a workload a host has to capture, and whether it runs the frontend for that."""
        known = self._selections.get((toolchain.python, str(corpus.root), workload, target.name))
        return known or self.wanted.selection(workload, target)

    # compilation

    def compile(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, *, fresh: bool = False
    ) -> Outcome:
        """One side of a case."""
        key = self.key("compiled/1", toolchain, corpus, launch, target)
        with self._turn(key):
            found = None if fresh else self._stored(key)
            if found is not None:
                self.taken_from_store += 1
                return found
            more = {} if fresh or not self.reuse else self.assembled(toolchain)
            row = self._request(launch, toolchain, corpus, target, **more)
            return self._run(key, row, toolchain, corpus.beside(launch.id, target), replace=fresh)

    def recompile(
        self,
        toolchain: Toolchain,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        attempt: int,
        fresh: bool = False,
    ) -> Outcome:
        """The case again in another process, with addresses and hashes randomized."""
        key = self.key(f"recompiled/1/{attempt}", toolchain, corpus, launch, target)
        found = None if fresh else self._stored(key)
        if found is not None:
            return found
        row = self._request(launch, toolchain, corpus, target)
        beside = corpus.beside(launch.id, target)
        return self._run(key, row, toolchain, beside, randomized=True, replace=fresh)

    def count_lines(
        self,
        counting: Toolchain,
        toolchain: Toolchain,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        profile: Path,
    ) -> None:
        """Has `counting`, a compiler that counts its lines, compile a launch of `toolchain`, and leave its
        counters at `profile`. Where it crashes it leaves none.
        """
        row = self._request(launch, toolchain, corpus, target, profile=str(profile))
        with self.store.scratch() as folder:
            self.requests.ask(counting, corpus.beside(launch.id, target), row, folder)

    def _turn(self, key: str | None) -> AbstractContextManager[object]:
        """Launches of one input digest are one compilation, whatever workload they are of: who comes second
        waits, and finds it in the cache.
        """
        if key is None or not self.reuse:
            return nullcontext()
        with self._lock:
            return self._turns.setdefault(key, Lock())

    def key(
        self, kind: str, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target
    ) -> str | None:
        """Of what is made of a launch; None for one whose results are not kept."""
        if launch.digest is None:
            return None
        beside = corpus.beside(launch.id, target)
        packages = beside.packages.digest if beside and beside.packages else beside is not None
        return key_of(kind, self.requests.environment_digest, launch.digest, toolchain.digest, packages)

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

    def _request(
        self, launch: Launch, toolchain: Toolchain, corpus: Corpus, target: Target, **more: object
    ) -> dict[str, object]:
        """Asks a worker to compile one launch; with `more`."""
        return {
            "op": "compile",
            "launch": launch.id,
            "digest": launch.digest,
            **corpus.place,
            "target": asdict(target),
            "select": asdict(self.selection(toolchain, corpus, launch.workload, target)),
            **more,
        }

    def _run(
        self,
        key: str | None,
        row: Mapping[str, object],
        toolchain: Toolchain,
        beside: ExtraPackages | None,
        *,
        randomized: bool = False,
        replace: bool = False,
    ) -> Outcome:
        with self.store.scratch() as folder:
            ended = self.requests.ask(toolchain, beside, row, folder, randomized=randomized)
            result = read_result(folder)
            names = result["artifacts"] if result else artifacts_of_the_dead(folder)
            artifacts = {name: self._ingest(folder, name, replace=replace) for name in names}
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

    def _ingest(self, folder: Path, name: str, *, replace: bool) -> Artifact:
        content = (folder / name).read_bytes()
        digest = self.store.put(content, replace=replace)
        return Artifact(stage=name, digest=digest, size_bytes=len(content))


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
