"""The texts that tools are given: of a release, whose stages make them, or of a run, which has them.

Both give what is known of a case above the tool: the artifacts down to the text that the tool starts at, the
metadata, and the flags that ptxas was, or would be, called with.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irdiff.capture.catalogs import Catalog, Selection
from irdiff.codegen.calls import ptxas_flags
from irdiff.compile.compiler import WorkerCompiler
from irdiff.model import (
    Artifact,
    Assembler,
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
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.tools.substitute import RecordedSide, Substitute
from irdiff.stages import Stage
from irdiff.store import Store

_ABOVE = (Stage.SOURCE, Stage.TTIR, Stage.GLIR, Stage.TTGIR, Stage.LLIR)


class Texts:
    """Of all tools of a comparison. Thread-safe."""

    def __init__(self, inner: WorkerCompiler, store: Store) -> None:
        self._inner = inner
        self._store = store

    def catalog(self, substitute: Substitute, corpus: Corpus, workload: str, target: Target) -> Catalog:
        """What the origin launches of a workload."""
        if isinstance(substitute.origin, Toolchain):
            return self._inner.catalog(substitute.origin, corpus, workload, target)
        recorded = substitute.origin
        cases = [
            case for case in recorded.run.cases if (case.workload, case.target) == (workload, target.name)
        ]
        launches = [launch for case in cases if (launch := recorded.launch(case))]
        failures = [
            CaptureFailure(id=case.id.rpartition("@")[0], expected=True, failure=failure)
            for case in cases
            if (failure := case.failures.of(recorded.side)) and failure.stage == "capture"
        ]
        return Catalog(
            launches=tuple(launches),
            failures=tuple(failures),
            supported=True,
            selection=Selection(tiers=(), labels=()),
            read=(),
        )

    def above(
        self, substitute: Substitute, corpus: Corpus, launch: Launch, target: Target, *, fresh: bool
    ) -> Outcome:
        """A case as the origin has it, with the release's own PTX or assembly."""
        if isinstance(substitute.origin, Toolchain):
            return self._inner.compile(substitute.origin, corpus, launch, target, fresh=fresh)
        return self._of_run(substitute, substitute.origin, launch, target)

    def _of_run(
        self, substitute: Substitute, recorded: RecordedSide, launch: Launch, target: Target
    ) -> Outcome:
        case = recorded.cases.get((launch.id, target.name))
        artifacts = case.artifacts.of(recorded.side) if case else {}
        kept = {name: row for name, row in artifacts.items() if self._store.has(row.digest)}
        wanted = (Stage.LLIR, Stage.PTX) if target.backend == "cuda" else (Stage.LLIR,)
        missing = [stage for stage in wanted if stage not in kept]
        if case is None or missing:
            failure = case.failures.of(recorded.side) if case else None
            return _absent(failure or _not_kept(missing), kept)
        flags: tuple[str, ...] = ()
        if Stage.PTX in kept:
            ptx = self._store.get(kept[Stage.PTX].digest) or b""
            flags = ptxas_flags(launch, substitute.version, ptx.decode(errors="replace"))
        return Compiled(
            artifacts=kept,
            metadata=case.metadata.of(recorded.side),
            handed={},
            stage_times_s={},
            stage_cpu_s={},
            assembler=Assembler(digest=substitute.ptxas.digest, flags=flags)
            if substitute.ptxas
            else Assembler(digest=None, flags=flags),
            assembler_log="",
            notes=(),
        )


def above_stage(compiled: Compiled, stage: str) -> Compiled:
    """Without what was made of the text of `stage`: that is for the tool to make."""
    kept = (*_ABOVE, Stage.PTX) if stage == Stage.PTX else _ABOVE
    artifacts = {name: row for name, row in compiled.artifacts.items() if name in kept}
    times = {name: seconds for name, seconds in compiled.stage_times_s.items() if name in artifacts}
    cpu = {name: seconds for name, seconds in compiled.stage_cpu_s.items() if name in artifacts}
    return replace(
        compiled, artifacts=artifacts, stage_times_s=times, stage_cpu_s=cpu, assembler_log="", notes=()
    )


def _not_kept(missing: list[Stage]) -> Failure:
    return Failure(
        kind=FailureKind.UNSUPPORTED,
        stage=str(missing[0]) if missing else "capture",
        message=f"the run has no {' and '.join(missing) or 'such case'}: a run keeps what changed",
        signal=None,
        stderr="",
    )


def _absent(failure: Failure, artifacts: Mapping[str, Artifact]) -> Failed:
    return Failed(failure=failure, curable=True, artifacts=artifacts, stage_times_s={})
