"""Returns compiled cases of a toolchain from the cache, or from its worker.

A case that does not compile is a result. A result is cached under its inputs: the *input digest* of the
launch (the frontend's IR, options, target, content of named files), the digest of the toolchain, the worker's
own code and the environment. It holds while the files that its stages opened have the same content
(`opened_files`). A launch without an input digest is compiled each time. A result whose artifacts are gone or
damaged counts as absent. Failures that may be temporary or due to the machine are not cached: time-outs,
exhausted memory, killed processes, refusals of the system. Nor is a compilation that imported a module which
no digest covers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from pydantic import TypeAdapter

from irdiff.capture import opened_files
from irdiff.compile.launch_requests import LaunchRequests
from irdiff.model import (
    Artifact,
    Assembler,
    Compiled,
    Failed,
    FailureKind,
    Launch,
    Outcome,
    Selection,
    Target,
    Toolchain,
)
from irdiff.store import Store
from irdiff.store.memo import Memo, MemoStep
from irdiff.worker.protocol import CompileWords, Result
from irdiff.worker_client.worker_requests import Requests, artifacts_of_the_dead, read_result

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

STEP: MemoStep[Outcome] = MemoStep("compiled", __name__, Outcome)
_compilation = TypeAdapter(Compiled)


class LaunchCompiler(LaunchRequests):
    def __init__(
        self, requests: Requests, store: Store, wanted: Selection, *, reuse: bool, frontend: bool = True
    ) -> None:
        super().__init__(requests, store, wanted, reuse=reuse, frontend=frontend)
        self.taken_from_store = 0
        """How many sides of cases needed no compilation, for progress."""
        self._lock = Lock()
        self._turns: dict[str, Lock] = {}

    def compile(self, side: Side, launch: Launch, target: Target, *, attempt: int | None = None) -> Outcome:
        """Each numbered attempt runs in another process, with random addresses and hashes."""
        inputs = self.inputs(side, launch, target)
        memo = self.store.memo(STEP, [inputs, attempt]) if inputs else None
        with self._turn(memo):
            stored = self._stored(memo, side)
            if stored is not None:
                self.taken_from_store += attempt is None
                return stored
            outcome, is_final = self._made(side, launch, target, randomized=attempt is not None)
            if memo and is_final:
                memo.keep(outcome)
            return outcome

    def _turn(self, memo: Memo[Outcome] | None) -> AbstractContextManager[object]:
        """Launches with one input digest are compiled once: the second one waits, and takes the result."""
        if memo is None or not self.reuse:
            return nullcontext()
        with self._lock:
            return self._turns.setdefault(memo.key, Lock())

    def _stored(self, memo: Memo[Outcome] | None, side: Side) -> Outcome | None:
        outcome = memo.get() if self.reuse and memo else None
        if outcome is None:
            return None
        is_whole = all(self.store.has(artifact.digest) for artifact in outcome.artifacts.values())
        return outcome if is_whole and opened_files.hold(outcome.opened, side.corpus.root) else None

    def _made(self, side: Side, launch: Launch, target: Target, *, randomized: bool) -> tuple[Outcome, bool]:
        """Returns the outcome, and whether any later run would get the same."""
        words: CompileWords = {
            "op": "compile",
            "digest": launch.digest,
            "shared": self.reuse and not randomized,
        }
        with self.store.scratch() as folder:
            ended = self.ask(words, side, launch, target, folder, randomized=randomized)
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
        return outcome, not from_outside and not _is_own(outcome)

    def _ingest(self, folder: Path, name: str) -> Artifact:
        content = (folder / name).read_bytes()
        return Artifact(stage=name, digest=self.store.put(content), size_bytes=len(content))


def _is_own(outcome: Outcome) -> bool:
    """True if a failure may be due to this machine or to the workload, and not to the compiler."""
    return isinstance(outcome, Failed) and (outcome.transient or outcome.failure.stage == "capture")


def _compiled(result: Result, artifacts: Mapping[str, Artifact], toolchain: Toolchain) -> Compiled:
    program, *flags = result["assembler_flags"] or [""]
    assembler = Assembler(digest=toolchain.programs.get(program), flags=tuple(flags)) if program else None
    return _compilation.validate_python({**result, "artifacts": artifacts, "assembler": assembler})
