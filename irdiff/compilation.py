"""Launches of a corpus and compiled cases of a toolchain: from the store, or from its worker.

A case that does not compile is a result. Results are kept under a key of everything that they depend
on: the worker's own code, the toolchain's digest, the launch's digest (source, signature, constexprs,
attributes, options), the target, the environment. A result whose artifacts are gone or damaged counts
as absent. Time-outs and exhausted memory are not kept: another machine may do better.
"""

from __future__ import annotations

import hashlib
import json
import signal
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from irdiff.config import Config
from irdiff.corpus import Beside, Corpus
from irdiff.model import (
    Artifact,
    CaptureFailure,
    Compiled,
    Failed,
    Failure,
    FailureKind,
    Launch,
    Outcome,
    Target,
    Toolchain,
)
from irdiff.store import Store, key_of
from irdiff.toolchains.answers import WORKER
from irdiff.workers import Ended, Workers

NOT_COMPILING = frozenset(
    {"captured_folder.py", "fills.py", "inductor_on_gpu.py", "program.py", "record.py", "sources.py"}
    | {"tritonparse_trace.py", "verify.py", "workload_files.py"}
)
"""Files of the worker that only record programs or verify kernels: no request of ours imports them."""

_TAIL_CHARACTERS = 6000
_UNKNOWN_ARCHITECTURE = (
    "is not defined for option 'gpu-name'",  # ptxas
    "computeCapability not supported",  # MLIR passes of 3.2
    "is not a recognized processor",  # LLVM
    "unknown target",
)
_launch_list = TypeAdapter(list[Launch])
_outcome = TypeAdapter(Outcome)


@dataclass(frozen=True, kw_only=True)
class Catalog:
    """The launches of one workload for one target on one side."""

    launches: tuple[Launch, ...]
    failures: tuple[CaptureFailure, ...]
    supported: bool


class Compiler:
    """Captures and compiles for one comparison. Thread-safe."""

    def __init__(self, config: Config, store: Store, workers: Workers, *, reuse: bool) -> None:
        self.config = config
        self.store = store
        self.workers = workers
        self.reuse = reuse
        """Whether results of earlier runs are taken from the store."""
        self.taken_from_store = 0
        """How many sides of cases needed no compilation, for progress."""
        self._worker_digest = _digest_of_folder(WORKER.parent)
        self._cores = threading.BoundedSemaphore(config.jobs)

    # launches

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        key = key_of(
            "catalog/1", self._worker_digest, toolchain.digest, corpus.digest, workload, asdict(target)
        )
        record = self.store.get_record("catalog", key) if self.reuse else None
        if record is None:
            record = self._capture(toolchain, corpus, workload, target)
            if not record.get("transient"):
                self.store.put_record("catalog", key, record)
        failures = tuple(
            CaptureFailure(
                id=row["id"], expected=row["expected"], failure=_failure.validate_python(row["failure"])
            )
            for row in record["failures"]
        )
        return Catalog(
            launches=tuple(_launch_list.validate_python(record["launches"])),
            failures=failures,
            supported=record["supported"],
        )

    def _capture(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> dict[str, Any]:
        row = {"op": "catalog", "workload": workload, "root": str(corpus.root), "target": asdict(target)}
        with self.store.scratch() as folder:
            ended = self._ask(toolchain, corpus.beside(workload, target), row, folder)
            result = _read_result(folder)
            if result and result["outcome"] == "captured":
                failures = [
                    {
                        "id": entry["id"],
                        "expected": entry["expected"],
                        "failure": asdict(
                            Failure(
                                kind=FailureKind.ERROR,
                                stage="capture",
                                message=entry["message"],
                                signal=None,
                                stderr=_tail(folder),
                            )
                        ),
                    }
                    for entry in result["failures"]
                ]
                return {"launches": result["launches"], "failures": failures, "supported": True}
            if result and result["outcome"] == "unsupported":
                return {"launches": [], "failures": [], "supported": False}
            failure = _failure_of(ended, result, folder, self.config)
            entry = {"id": f"{workload}:*", "expected": True, "failure": asdict(failure)}
            transient = failure.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY)
            return {"launches": [], "failures": [entry], "supported": True, "transient": transient}

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
        key = self._key("compile/1", toolchain, launch, target)
        found = None if fresh else self._stored(key, assemble=assemble)
        if found is not None:
            self.taken_from_store += 1
            return found
        row = _request("compile", launch, corpus, target, stop_before=[] if assemble else ["cubin"])
        outcome = self._run(toolchain, corpus.beside(launch.id, target), launch, row, replace=fresh)
        self._keep(key, outcome)
        return outcome

    def assemble(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, compiled: Compiled
    ) -> Outcome:
        """The same case with its binary: PTX of this toolchain through its own ptxas."""
        if "cubin" in compiled.artifacts or "ptx" not in compiled.artifacts:
            return compiled
        ptx = self.store.get(compiled.artifacts["ptx"].digest)
        if ptx is None:
            return self.compile(toolchain, corpus, launch, target, assemble=True, fresh=True)
        with self.store.scratch() as inputs:
            path = inputs / "kernel.ptx"
            path.write_bytes(ptx)
            more = {"stage": "cubin", "input": str(path), "metadata": compiled.metadata}
            row = _request("assemble", launch, corpus, target, **more)
            made = self._run(toolchain, corpus.beside(launch.id, target), launch, row)
        if isinstance(made, Failed):
            outcome: Outcome = Failed(
                launch_digest=launch.digest,
                failure=made.failure,
                artifacts=compiled.artifacts,
                stage_times_s=compiled.stage_times_s,
            )
        else:
            outcome = Compiled(
                launch_digest=launch.digest,
                artifacts={**compiled.artifacts, **made.artifacts},
                metadata={**compiled.metadata, **made.metadata},
                stage_times_s={**compiled.stage_times_s, **made.stage_times_s},
                assembler_flags=made.assembler_flags,
                assembler_log=made.assembler_log,
                notes=compiled.notes,
            )
        self._keep(self._key("compile/1", toolchain, launch, target), outcome)
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
        key = self._key(f"recompile/1/{attempt}", toolchain, launch, target)
        found = None if fresh else self._stored(key, assemble=True)
        if found is not None:
            return found
        row = _request("compile", launch, corpus, target, stop_before=[])
        beside = corpus.beside(launch.id, target)
        outcome = self._run(toolchain, beside, launch, row, randomized=True, replace=fresh)
        self._keep(key, outcome)
        return outcome

    def _key(self, kind: str, toolchain: Toolchain, launch: Launch, target: Target) -> str:
        environment = {
            name: value
            for name, value in self.config.compiler_environment.items()
            if name not in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH")
        }
        gpu = (target.backend, target.arch, target.warp_size)
        return key_of(kind, self._worker_digest, toolchain.digest, launch.digest, gpu, environment)

    def _stored(self, key: str, *, assemble: bool) -> Outcome | None:
        if not self.reuse:
            return None
        record = self.store.get_record("compile", key)
        if record is None:
            return None
        outcome: Outcome = _outcome.validate_python(record)
        if not all(self.store.has(artifact.digest) for artifact in outcome.artifacts.values()):
            return None
        if isinstance(outcome, Compiled) and assemble and "ptx" in outcome.artifacts:
            return outcome if "cubin" in outcome.artifacts else None
        return outcome

    def _keep(self, key: str, outcome: Outcome) -> None:
        if isinstance(outcome, Failed) and outcome.failure.kind in (FailureKind.TIMEOUT, FailureKind.MEMORY):
            return
        self.store.put_record("compile", key, _outcome.dump_python(outcome, mode="json"))

    def _run(
        self,
        toolchain: Toolchain,
        beside: Beside | None,
        launch: Launch,
        row: Mapping[str, Any],
        *,
        randomized: bool = False,
        replace: bool = False,
    ) -> Outcome:
        with self.store.scratch() as folder:
            ended = self._ask(toolchain, beside, row, folder, randomized=randomized)
            result = _read_result(folder)
            names = result["artifacts"] if result else _artifacts_of_the_dead(folder)
            artifacts = {name: self._ingest(folder, name, replace=replace) for name in names}
            times = result["times_s"] if result else {}
            if result is None or result["outcome"] != "compiled":
                return Failed(
                    launch_digest=launch.digest,
                    failure=_failure_of(ended, result, folder, self.config),
                    artifacts=artifacts,
                    stage_times_s=times,
                )
            flags = result["assembler_flags"]
            return Compiled(
                launch_digest=launch.digest,
                artifacts=artifacts,
                metadata=result["metadata"],
                stage_times_s=times,
                assembler_flags=tuple(flags) if flags else None,
                assembler_log=result["assembler_log"],
                notes=tuple(result["notes"]),
            )

    def _ingest(self, folder: Path, name: str, *, replace: bool) -> Artifact:
        content = (folder / name).read_bytes()
        digest = self.store.put(content, replace=replace)
        return Artifact(stage=name, digest=digest, size_bytes=len(content))

    def _ask(
        self,
        toolchain: Toolchain,
        beside: Beside | None,
        row: Mapping[str, Any],
        folder: Path,
        *,
        randomized: bool = False,
    ) -> Ended:
        limits = self.config.limits
        request = {
            **row,
            "folder": str(folder),
            "timeout_s": limits.timeout_s,
            "memory_bytes": limits.memory_bytes,
        }
        with self._cores:
            return self.workers.get(toolchain, beside, randomized=randomized).request(request)


_failure = TypeAdapter(Failure)


def _request(
    operation: str, launch: Launch, corpus: Corpus, target: Target, **more: object
) -> dict[str, object]:
    """What every operation on one launch is told, and `more`."""
    return {
        "op": operation,
        "launch": launch.id,
        "digest": launch.digest,
        "root": str(corpus.root),
        "target": asdict(target),
        **more,
    }


def _read_result(folder: Path) -> dict[str, Any] | None:
    try:
        result: dict[str, Any] = json.loads((folder / "result.json").read_text())
    except FileNotFoundError:
        return None
    return result


def _artifacts_of_the_dead(folder: Path) -> Iterable[str]:
    """Stages that were finished before the process died, for `irdiff diff` of a broken case."""
    known = {"source", "ttir", "ttgir", "llir", "ptx", "amdgcn"}
    return sorted(path.name for path in folder.iterdir() if path.name in known)


def _failure_of(ended: Ended, result: dict[str, Any] | None, folder: Path, config: Config) -> Failure:
    stderr = _tail(folder)
    stage = result["stage"] if result else _stage_of_the_dead(folder)
    if ended.timed_out:
        kind, message = FailureKind.TIMEOUT, f"no result after {config.limits.timeout_s:g} s"
    elif result is not None:
        kind, message = FailureKind(result["outcome"]), result["message"]
        if result.get("unsupported") or any(text in message + stderr for text in _UNKNOWN_ARCHITECTURE):
            kind = FailureKind.UNSUPPORTED
        elif "bad_alloc" in message or "Cannot allocate memory" in message:
            kind = FailureKind.MEMORY
    elif ended.worker_died:
        kind, message = FailureKind.CRASH, "the worker process died (killed by the system, out of memory?)"
    else:
        kind, message = FailureKind.CRASH, _crash_message(ended, stderr)
        if any(text in stderr for text in _UNKNOWN_ARCHITECTURE):
            kind = FailureKind.UNSUPPORTED
        elif any(text in stderr for text in ("bad_alloc", "out of memory", "Cannot allocate memory")):
            kind = FailureKind.MEMORY
            message = f"out of memory at {config.limits.memory_bytes >> 20} MiB"
    name = signal.Signals(ended.signal).name if ended.signal and not ended.timed_out else None
    return Failure(kind=kind, stage=stage, message=message, signal=name, stderr=stderr)


def _crash_message(ended: Ended, stderr: str) -> str:
    name = signal.Signals(ended.signal).name if ended.signal else "an exit without a result"
    telling = [line for line in stderr.splitlines() if "LLVM ERROR" in line or "Assertion" in line]
    return f"the compiler died of {name}" + (f": {telling[-1].strip()}" if telling else "")


def _stage_of_the_dead(folder: Path) -> str:
    """The stage after the last one that left its artifact."""
    order = ["source", "ttir", "ttgir", "llir", "ptx", "amdgcn"]
    made = [stage for stage in order if (folder / stage).exists()]
    if not made:
        return "ttir"
    following = {"source": "ttir", "ttir": "ttgir", "ttgir": "llir", "llir": "codegen"}
    return following.get(made[-1], "binary")


def _tail(folder: Path) -> str:
    try:
        text = (folder / "stderr").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    return text[-_TAIL_CHARACTERS:].strip()


def _digest_of_folder(folder: Path) -> str:
    rows = [
        (path.name, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.glob("*.py"))
        if path.name not in NOT_COMPILING
    ]
    return key_of(rows)
