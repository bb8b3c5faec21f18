"""The compiler of a comparison that has tools among its sides: tools for these, workers for all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from irdiff.capture.catalogs import Catalog
from irdiff.codegen.generator import Generator, failed
from irdiff.codegen.texts import Texts, above_stage
from irdiff.compile.compiler import WorkerCompiler
from irdiff.config import Config
from irdiff.model import (
    Artifact,
    Assembler,
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
from irdiff.resolve.tools.substitute import STARTS_AT, Substitute
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
        self._texts = Texts(inner, store)
        self._generator = Generator(substitutes, store, config, reuse=reuse)
        self._substitutes = {row.toolchain().digest: row for row in substitutes}
        self._seen: dict[tuple[str, str, str], tuple[Launch, Compiled]] = {}
        """By toolchain, launch and target: what replays need to know."""

    # what every compiler is asked

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.catalog(toolchain, corpus, workload, target)
        return self._texts.catalog(substitute, corpus, workload, target)

    @property
    def taken_from_store(self) -> int:
        return self.inner.taken_from_store + self._generator.results.taken

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
        above = self._texts.above(substitute, corpus, launch, target, fresh=attempt == "fresh")
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
