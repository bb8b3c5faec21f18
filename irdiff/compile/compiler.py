"""Compiled cases of a toolchain: from the store, or from its worker.

A case that does not compile is a result. A result is kept under what it was made from: the *input digest* of
the launch (the frontend's IR, options, target, content of named files), the digest of the toolchain below the
frontend, the worker's own code and the environment. A launch without an input digest is compiled each time. A
result whose artifacts are gone or damaged counts as absent. Failures that another time or machine may not
have are not kept: time-outs, exhausted memory, processes that were killed, what the system refused.

That the toolchain below the frontend is all that the stages depend on is not taken on trust: each compilation
notes the Python files of Triton whose functions its stages called. One that entered a frontend file is kept
under the digest of the whole toolchain, and the run says so.

Nor is it that a binary is the last thing made: forks of Triton write files after it. A compilation that may
stop at its assembler goes on with an empty binary instead, nothing of which is kept, and says whether
anything came after it. Where something did, the launch is compiled whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any
from weakref import WeakValueDictionary

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
from irdiff.resolve.corpus import Beside, Corpus
from irdiff.resolve.toolchains import layers
from irdiff.stages import Stage
from irdiff.store import Store, key_of
from irdiff.store.interning import interned
from irdiff.worker_client.worker_requests import Requests, artifacts_of_the_dead, read_result

_outcome = TypeAdapter(Outcome)


@dataclass(frozen=True, kw_only=True)
class _Keys:
    """Where a result may lie."""

    below_frontend: str
    whole: str
    """For a compilation of which it is not known that its stages kept below the frontend."""


class _Turn:
    """A lock that goes with its last user."""

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


class WorkerCompiler:
    """Captures and compiles for one comparison. Thread-safe."""

    def __init__(self, requests: Requests, store: Store, wanted: Wanted, *, reuse: bool) -> None:
        self.requests = requests
        self.store = store
        self.wanted = wanted
        self.reuse = reuse
        """Whether results of earlier runs are taken from the store."""
        self.taken_from_store = 0
        """How many sides of cases needed no compilation, for progress."""
        self._capturer = Capturer(requests, store, reuse=reuse)
        self._selections: dict[tuple[str, str, str, str], Selection] = {}
        """As a workload of a corpus was captured under an interpreter, for a target: its host is asked for
        the same."""
        self._lock = Lock()
        self._turns: WeakValueDictionary[str, _Turn] = WeakValueDictionary()
        self._entered: dict[str, list[str] | None] = {}
        """By toolchain below the frontend and target: files of the frontend that stages entered; None
        where no compilation has told yet."""
        self._going_on: set[tuple[str, str]] = set()
        """Toolchains and targets of which a compilation made more after its binary: they are not asked to
        stop before it again. It only saves time, since each compilation that stops says whether it may."""

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
        self,
        toolchain: Toolchain,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        assemble: bool,
        fresh: bool = False,
    ) -> Outcome:
        """One side of a case. Without `assemble` it stops at PTX, with the flags of ptxas known."""
        keys = self._keys("compile/2", toolchain, launch, target)
        with self._turn(keys):
            found = None if fresh else self._stored(keys, assemble=assemble)
            if found is not None:
                self.taken_from_store += 1
                return found
            wanted = assemble or (toolchain.digest, target.name) in self._going_on
            row = self._request("compile", launch, toolchain, corpus, target, assemble=wanted)
            outcome = self._run(toolchain, corpus.beside(launch.id, target), target, row, replace=fresh)
            self._keep(keys, outcome)
            return outcome

    def _turn(self, keys: _Keys | None) -> AbstractContextManager[object]:
        """Launches of one input digest are one compilation, whatever workload they are of: who comes second
        waits, and finds it in the store.
        """
        if keys is None or not self.reuse:
            return nullcontext()
        with self._lock:
            return self._turns.setdefault(keys.whole, _Turn())

    def assemble(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, compiled: Compiled
    ) -> Outcome:
        """The same case with its binary: PTX of this toolchain through its own ptxas."""
        if Stage.CUBIN in compiled.artifacts or Stage.PTX not in compiled.artifacts:
            return compiled
        ptx = self.store.get(compiled.artifacts[Stage.PTX].digest)
        if ptx is None:
            return self.compile(toolchain, corpus, launch, target, assemble=True, fresh=True)
        with self.store.scratch() as inputs:
            path = inputs / "kernel.ptx"
            path.write_bytes(ptx)
            more = {"stage": Stage.CUBIN, "input": str(path), "metadata": compiled.metadata}
            row = self._request("assemble", launch, toolchain, corpus, target, **more)
            made = self._run(toolchain, corpus.beside(launch.id, target), target, row)
        if isinstance(made, Failed):
            outcome: Outcome = Failed(
                entered=made.entered,
                failure=made.failure,
                curable=made.curable,
                artifacts=compiled.artifacts,
                stage_times_s=compiled.stage_times_s,
            )
        else:
            outcome = Compiled(
                entered=(*(compiled.entered or ()), *(made.entered or ())),
                artifacts={**compiled.artifacts, **made.artifacts},
                metadata={**compiled.metadata, **made.metadata},
                stage_times_s={**compiled.stage_times_s, **made.stage_times_s},
                stage_cpu_s={**compiled.stage_cpu_s, **made.stage_cpu_s},
                assembler=made.assembler,
                assembler_log=made.assembler_log,
                notes=compiled.notes,
            )
        self._keep(self._keys("compile/2", toolchain, launch, target), outcome)
        return outcome

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
        keys = self._keys(f"recompile/2/{attempt}", toolchain, launch, target)
        found = None if fresh else self._stored(keys, assemble=True)
        if found is not None:
            return found
        row = self._request("compile", launch, toolchain, corpus, target, assemble=True)
        beside = corpus.beside(launch.id, target)
        outcome = self._run(toolchain, beside, target, row, randomized=True, replace=fresh)
        self._keep(keys, outcome)
        return outcome

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
        more = {"assemble": False, "profile": str(profile)}
        row = self._request("compile", launch, toolchain, corpus, target, **more)
        with self.store.scratch() as folder:
            self.requests.ask(counting, corpus.beside(launch.id, target), row, folder)

    def _keys(self, kind: str, toolchain: Toolchain, launch: Launch, target: Target) -> _Keys | None:
        if launch.digest is None:
            return None
        below, whole = self._key_by_layer(kind, toolchain, launch, target)
        return _Keys(below_frontend=below, whole=whole)

    def _key_by_layer(self, kind: str, toolchain: Toolchain, launch: Launch, target: Target) -> Iterator[str]:
        """By the toolchain below the frontend, then by all of it."""
        made_from = (kind, self.requests.conditions, launch.digest, target.backend)
        yield key_of(*made_from, below_frontend(toolchain, target))
        yield key_of(*made_from, "whole", toolchain.digest)

    def keeps_below_frontend(self, toolchain: Toolchain, launch: Launch, target: Target) -> bool:
        """Whether a compilation of this very launch has shown that its stages call no function of the
        frontend: those of another may take another way.
        """
        keys = self._keys("compile/2", toolchain, launch, target)
        return keys is not None and self.store.checksum("compile", keys.below_frontend) is not None

    def entered_frontend(self, toolchain: Toolchain, target: Target) -> list[str]:
        """Files of the frontend that stages for a target were seen to call."""
        return self._entered_frontend(toolchain, target) or []

    def _entered_frontend(self, toolchain: Toolchain, target: Target) -> list[str] | None:
        key = self._layer_key(toolchain, target)
        if self._entered.get(key) is None:
            self._entered[key] = self.store.get_record("layers", key)
        return self._entered[key]

    def _note_entered(self, toolchain: Toolchain, target: Target, files: list[str]) -> None:
        known = self._entered_frontend(toolchain, target)
        if known is None or not set(files) <= set(known):
            key = self._layer_key(toolchain, target)
            self._entered[key] = sorted({*(known or ()), *files})
            self.store.put_record("layers", key, self._entered[key])

    def _layer_key(self, toolchain: Toolchain, target: Target) -> str:
        gpu = (target.backend, target.arch)
        return key_of("layers/1", self.requests.conditions, below_frontend(toolchain, target), gpu)

    def _stored(self, keys: _Keys | None, *, assemble: bool) -> Outcome | None:
        if not self.reuse or keys is None:
            return None
        for key in (keys.below_frontend, keys.whole):
            record = self.store.get_record("compile", key)
            if record is not None:
                outcome = _sharing(_outcome.validate_python(record))
                return outcome if self._is_whole(outcome, assemble=assemble) else None
        return None

    def kept_as(self, toolchain: Toolchain, launch: Launch, target: Target) -> str | None:
        """The checksum of the record that `compile` would take the result from; None where there is none."""
        if not self.reuse or launch.digest is None:
            return None
        keys = self._key_by_layer("compile/2", toolchain, launch, target)
        return next(filter(None, (self.store.checksum("compile", key) for key in keys)), None)

    def kept_artifacts(self, toolchain: Toolchain, launch: Launch, target: Target) -> Mapping[str, str]:
        """The digests of that record's artifacts, by stage."""
        found = self._stored(self._keys("compile/2", toolchain, launch, target), assemble=False)
        return {stage: row.digest for stage, row in found.artifacts.items()} if found else {}

    def _is_whole(self, outcome: Outcome, *, assemble: bool) -> bool:
        if not all(self.store.has(artifact.digest) for artifact in outcome.artifacts.values()):
            return False
        wants_binary = isinstance(outcome, Compiled) and assemble and Stage.PTX in outcome.artifacts
        return not wants_binary or Stage.CUBIN in outcome.artifacts

    def _keep(self, keys: _Keys | None, outcome: Outcome) -> None:
        """Results that are this launch's alone, or that another machine may better, are not kept."""
        if keys is None:
            return
        if isinstance(outcome, Failed) and (outcome.curable or outcome.failure.stage == "capture"):
            return
        kept_below = outcome.entered is not None and not layers.not_below(outcome.entered)
        key = keys.below_frontend if kept_below else keys.whole
        self.store.put_record("compile", key, _outcome.dump_python(outcome, mode="json"))

    def _request(
        self,
        operation: str,
        launch: Launch,
        toolchain: Toolchain,
        corpus: Corpus,
        target: Target,
        **more: object,
    ) -> dict[str, object]:
        """What every operation on one launch is told, and `more`."""
        return {
            "op": operation,
            "launch": launch.id,
            "digest": launch.digest,
            "root": str(corpus.root),
            "target": asdict(target),
            "select": asdict(self.selection(toolchain, corpus, launch.workload, target)),
            **more,
        }

    def _run(
        self,
        toolchain: Toolchain,
        beside: Beside | None,
        target: Target,
        row: Mapping[str, Any],
        *,
        randomized: bool = False,
        replace: bool = False,
    ) -> Outcome:
        with self.store.scratch() as folder:
            ended = self.requests.ask(toolchain, beside, row, folder, randomized=randomized)
            result = read_result(folder)
            if result and result["outcome"] == "compiled" and result["goes_on"]:
                self._going_on.add((toolchain.digest, target.name))
                whole = {**row, "assemble": True}
                return self._run(toolchain, beside, target, whole, randomized=randomized, replace=replace)
            names = result["artifacts"] if result else artifacts_of_the_dead(folder)
            artifacts = {name: self._ingest(folder, name, replace=replace) for name in names}
            times = result["times_s"] if result else {}
            entered = tuple(result["entered"]) if result else None
            if entered:
                self._note_entered(toolchain, target, layers.not_below(entered))
            if result is None or result["outcome"] != "compiled":
                failure = self.requests.failure(ended, result, folder)
                return Failed(
                    entered=entered,
                    failure=failure,
                    curable=bool(result and result.get("curable"))
                    or failure.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY),
                    artifacts=artifacts,
                    stage_times_s=times,
                )
            words = result["assembler_flags"]
            return Compiled(
                entered=entered,
                artifacts=artifacts,
                metadata=result["metadata"],
                stage_times_s=times,
                stage_cpu_s=result["cpu_s"],
                assembler=_assembler(words, toolchain) if words else None,
                assembler_log=result["assembler_log"],
                notes=tuple(result["notes"]),
            )

    def _ingest(self, folder: Path, name: str, *, replace: bool) -> Artifact:
        content = (folder / name).read_bytes()
        digest = self.store.put(content, replace=replace)
        return Artifact(stage=name, digest=digest, size_bytes=len(content))


def _sharing(outcome: Outcome) -> Outcome:
    """The same, which holds only once what metadata says of many kernels: all but a kernel's name."""
    if isinstance(outcome, Failed):
        return outcome
    name = {key: value for key, value in outcome.metadata.items() if key == "name"}
    common = {key: value for key, value in outcome.metadata.items() if key != "name"}
    return replace(outcome, metadata={**interned(common), **name})


def _assembler(words: Sequence[str], toolchain: Toolchain) -> Assembler:
    return Assembler(digest=toolchain.programs.get(words[0]), flags=tuple(words[1:]))


def below_frontend(toolchain: Toolchain, target: Target) -> str:
    """Digest of all that turns the frontend's IR into machine code for a target."""
    return toolchain.below_frontend.get(target.backend, toolchain.digest)
