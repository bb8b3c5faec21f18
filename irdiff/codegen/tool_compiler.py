"""Compiles the sides of a comparison that are tools with these tools, and all others with workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from irdiff import backends, texts
from irdiff.backends.stages import ASSEMBLIES
from irdiff.capture.catalog import NOTHING, Catalog
from irdiff.codegen.generator import Generator, failed
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
from irdiff.resolve.substitute import RecordedSide, Substitute
from irdiff.resolve.tools import ToolKind
from irdiff.stages import MLIR, Stage
from irdiff.store import Store

if TYPE_CHECKING:
    from irdiff.compile.worker_compiler import WorkerCompiler
    from irdiff.resolve.sides import Side


class ToolCompiler:
    """Compiles and catalogs as `WorkerCompiler` does. Thread-safe."""

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

    def captured_again(self, side: Side, workload: str, target: Target) -> Catalog:
        origin = self._origin(side)
        if isinstance(origin, Toolchain):
            return self.inner.captured_again(replace(side, toolchain=origin), workload, target)
        return self.catalog(side, workload, target)

    def _origin(self, side: Side) -> Toolchain | RecordedSide:
        substitute = self._substitutes.get(side.toolchain.digest)
        return substitute.origin if substitute else side.toolchain

    def catalog(self, side: Side, workload: str, target: Target) -> Catalog:
        """Returns the workload's launches from the release or run whose texts the tool compiles."""
        origin = self._origin(side)
        if isinstance(origin, Toolchain):
            return self.inner.catalog(replace(side, toolchain=origin), workload, target)
        cases = [case for case in origin.run.cases if (case.workload, case.target) == (workload, target.name)]
        failures = [
            CaptureFailure(id=case.id.rpartition("@")[0], expected=True, failure=failure)
            for case in cases
            if (failure := case.failures.of(origin.side)) and failure.stage == "capture"
        ]
        launches = tuple(launch for case in cases if (launch := origin.launch(case)))
        return replace(NOTHING, launches=launches, failures=tuple(failures))

    @property
    def taken_from_store(self) -> int:
        return self.inner.taken_from_store + self._generator.taken

    def compile(self, side: Side, launch: Launch, target: Target, *, attempt: int | None = None) -> Outcome:
        if substitute := self._substitutes.get(side.toolchain.digest):
            named = f"randomized {attempt}" if attempt is not None else ""
            return self._compiled(substitute, side, launch, target, named)
        return self.inner.compile(side, launch, target, attempt=attempt)

    def notes(self) -> list[str]:
        """Returns what a reader must know about how tools were driven; complete once all is compiled."""
        starts = {row.tool.starts_at for row in self._substitutes.values()}
        lowest = Stage.LLIR if Stage.LLIR in starts else next(iter(starts))
        above = f"{texts.title(lowest)} and all above it are"
        names = ", ".join(sorted({row.texts_of for row in self._substitutes.values()}))
        first = f"{above} the same inputs on both sides, those of {names}: they are not compared"
        return [first, *self._generator.texts.notes()]

    def _compiled(
        self, substitute: Substitute, side: Side, launch: Launch, target: Target, attempt: str
    ) -> Outcome:
        """The texts of the origin, a release or a run, with what the tool makes of them."""
        tool, origin = substitute.tool, substitute.origin
        if isinstance(origin, Toolchain):
            above = self.inner.compile(replace(side, toolchain=origin), launch, target)
        else:
            above = self._recorded(substitute, origin, launch, target)
        if isinstance(above, Failed) or not substitute.compiles(target):
            return above
        start = _above_stage(above, tool.starts_at)
        if target.backend not in tool.backends:
            kind = backends.of(target.backend).BINARY
            stage = kind.assembly if kind else Stage.LLIR
            message = f"{tool.version} has no backend for {target.name}"
            return failed(start, Failure(kind=FailureKind.UNSUPPORTED, stage=stage, message=message))
        if tool.kind is ToolKind.LLVM:
            made = self._generator.generated(substitute, above, start, launch, target, attempt)
            if isinstance(made, Failed):
                return made
            start = made
        else:
            flags = above.assembler.flags if above.assembler else ()
            above = replace(above, assembler=Assembler(digest=tool.digest, flags=flags))
            start = replace(start, assembler=above.assembler)
        self._seen[substitute.toolchain().digest, launch.id, target.name] = (launch, above)
        return self._generator.assembled(substitute, start, target, attempt)

    def _recorded(
        self, substitute: Substitute, recorded: RecordedSide, launch: Launch, target: Target
    ) -> Outcome:
        """A case as a run has it."""
        case = recorded.cases.get((launch.id, target.name))
        artifacts = case.artifacts.of(recorded.side) if case else {}
        kept = {name: row for name, row in artifacts.items() if self._store.has(row.digest)}
        kind, assembler = backends.of(target.backend).BINARY, backends.assembler_of(target.backend)
        wanted = (Stage.LLIR, kind.assembly) if kind and assembler else (Stage.LLIR,)
        missing = [stage for stage in wanted if stage not in kept]
        if case is None or missing:
            message = f"the run has no {' and '.join(missing) or 'such case'}: a run keeps what changed"
            stage = missing[0] if missing else "capture"
            gone = Failure(kind=FailureKind.UNSUPPORTED, stage=stage, message=message)
            failure = (case.failures.of(recorded.side) if case else None) or gone
            return Failed(failure=failure, transient=True, artifacts=kept, stage_times_s={})
        flags: tuple[str, ...] = ()
        if kind and assembler:
            text = self._store.get(kept[kind.assembly].digest) or b""
            flags = assembler.flags(launch, substitute.version, text.decode(errors="replace"))
        digest = substitute.assembler.digest if substitute.assembler else None
        return Compiled(
            artifacts=kept,
            metadata=case.metadata.of(recorded.side),
            launcher_args={},
            stage_times_s={},
            stage_cpu_s={},
            assembler=Assembler(digest=digest, flags=flags),
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
        attempt: str,
    ) -> Outcome | None:
        """One stage of a tool's side on a text of either side; None where it is not the tool's."""
        substitute = self._substitutes.get(toolchain.digest)
        known = self._seen.get((toolchain.digest, launch_id, target.name))
        if substitute is None or known is None:
            return None
        launch, above = known
        kind, assembler = backends.of(target.backend).BINARY, backends.assembler_of(target.backend)
        is_binary = kind is not None and assembler is not None and stage == kind.artifact
        given = kind.assembly if kind and is_binary else substitute.tool.starts_at
        text = Artifact(stage=given, digest=input_digest, size_bytes=0)
        start = replace(above, artifacts={given: text}, stage_times_s={}, assembler_log="", notes=())
        if is_binary:
            return self._generator.assembled(substitute, start, target, attempt)
        if stage in ASSEMBLIES and substitute.tool.kind is ToolKind.LLVM:
            return self._generator.generated(substitute, above, start, launch, target, attempt)
        return None


def _above_stage(compiled: Compiled, stage: str) -> Compiled:
    """Without what was made of the text of `stage`: the tool makes that."""
    kept = (*MLIR, Stage.LLIR, *((stage,) if stage in ASSEMBLIES else ()))
    return replace(
        compiled,
        artifacts={name: row for name, row in compiled.artifacts.items() if name in kept},
        stage_times_s={name: spent for name, spent in compiled.stage_times_s.items() if name in kept},
        stage_cpu_s={name: spent for name, spent in compiled.stage_cpu_s.items() if name in kept},
        assembler_log="",
        notes=(),
    )
