"""The compiler of a comparison that has tools among its sides: tools for these, workers for all others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from irdiff.capture.catalogs import Catalog, Selection
from irdiff.codegen.calls import ptxas_flags
from irdiff.codegen.generator import Generator, failed
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.config import Config
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
from irdiff.resolve.tools.substitute import STARTS_AT, RecordedSide, Substitute
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.stages import Stage
from irdiff.store import Store


class ToolCompiler:
    """`compare.Compiler` and `capture.Cataloger`. Thread-safe."""

    def __init__(
        self,
        inner: WorkerCompiler,
        substitutes: Sequence[Substitute],
        store: Store,
        config: Config,
        *,
        reuse: bool,
    ) -> None:
        self.inner = inner
        self._store = store
        self._generator = Generator(substitutes, store, config, reuse=reuse)
        self._substitutes = {row.toolchain().digest: row for row in substitutes}
        self._seen: dict[tuple[str, str, str], tuple[Launch, Compiled]] = {}
        """By toolchain, launch and target: what replays need to know."""

    # what every compiler is asked

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.catalog(toolchain, corpus, workload, target)
        return self._catalog(substitute, corpus, workload, target)

    @property
    def taken_from_store(self) -> int:
        return self.inner.taken_from_store + self._generator.taken

    def compile(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, *, fresh: bool = False
    ) -> Outcome:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.compile(toolchain, corpus, launch, target, fresh=fresh)
        return self._compiled(substitute, corpus, launch, target, attempt="fresh" if fresh else "")

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
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.recompile(toolchain, corpus, launch, target, attempt=attempt, fresh=fresh)
        return self._compiled(substitute, corpus, launch, target, attempt=f"randomized {attempt}")

    def notes(self) -> list[str]:
        """What a reader must know of how tools were driven, once all is compiled."""
        kinds = {row.tool.kind for row in self._substitutes.values()}
        above = "PTX and all IR above it are" if kinds == {ToolKind.PTXAS} else "LLVM IR and all above it are"
        names = ", ".join(sorted({row.texts_of for row in self._substitutes.values()}))
        first = f"{above} the same inputs on both sides, those of {names}: they are not compared"
        return [first, *self._generator.texts.notes()]

    # a tool's side

    def _compiled(
        self,
        substitute: Substitute,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        attempt: str,
    ) -> Outcome:
        above = self._above(substitute, corpus, launch, target, fresh=attempt == "fresh")
        if isinstance(above, Failed):
            return above
        if not substitute.compiles(target):
            return above
        start = above_stage(above, STARTS_AT[substitute.tool.kind])
        if target.backend not in substitute.tool.backends:
            return _without_backend(start, substitute.tool, target)
        if substitute.tool.kind is ToolKind.LLVM:
            made = self._generator.generated(substitute, above, start, launch, target, attempt)
            if isinstance(made, Failed):
                return made
            start = made
        else:
            flags = above.assembler.flags if above.assembler else ()
            above = replace(above, assembler=Assembler(digest=substitute.tool.digest, flags=flags))
            start = replace(start, assembler=above.assembler)
        self._seen[substitute.toolchain().digest, launch.id, target.name] = (launch, above)
        return self._generator.assembled(substitute, start, attempt)

    # the texts that a tool is given: of a release, whose stages make them, or of a run, which has them

    def _catalog(self, substitute: Substitute, corpus: Corpus, workload: str, target: Target) -> Catalog:
        """What the origin launches of a workload."""
        if isinstance(substitute.origin, Toolchain):
            return self.inner.catalog(substitute.origin, corpus, workload, target)
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

    def _above(
        self, substitute: Substitute, corpus: Corpus, launch: Launch, target: Target, *, fresh: bool
    ) -> Outcome:
        """A case as the origin has it, with the release's own PTX or assembly."""
        if isinstance(substitute.origin, Toolchain):
            return self.inner.compile(substitute.origin, corpus, launch, target, fresh=fresh)
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

    def replay(
        self,
        toolchain: Toolchain,
        launch_id: str,
        target: Target,
        stage: str,
        input_digest: str,
        *,
        randomized: bool,
    ) -> Outcome | None:
        """One stage of a tool's side on a text of either side; None where it is not the tool's."""
        substitute = self._substitutes.get(toolchain.digest)
        known = self._seen.get((toolchain.digest, launch_id, target.name))
        if substitute is None or known is None:
            return None
        launch, above = known
        attempt = "randomized 0" if randomized else ""
        given = STARTS_AT[substitute.tool.kind] if stage != Stage.CUBIN else Stage.PTX
        text = Artifact(stage=given, digest=input_digest, size_bytes=0)
        start = replace(above, artifacts={given: text}, stage_times_s={}, assembler_log="", notes=())
        if stage == Stage.CUBIN:
            return self._generator.assembled(substitute, start, attempt)
        if stage in (Stage.PTX, Stage.AMDGCN) and substitute.tool.kind is ToolKind.LLVM:
            return self._generator.generated(substitute, above, start, launch, target, attempt)
        return None


def _without_backend(start: Compiled, tool: Tool, target: Target) -> Failed:
    failure = Failure(
        kind=FailureKind.UNSUPPORTED,
        stage=Stage.AMDGCN if target.backend == "hip" else Stage.PTX,
        message=f"{tool.version} has no backend for {target.name}",
        signal=None,
        stderr="",
    )
    return failed(start, failure)


_ABOVE = (Stage.SOURCE, Stage.TTIR, Stage.GLIR, Stage.TTGIR, Stage.LLIR)


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
    return Failed(failure=failure, transient=True, artifacts=artifacts, stage_times_s={})
