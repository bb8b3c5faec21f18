"""What a tool makes of a stored text: assembly of LLVM IR, machine code of assembly. See `kept_results`."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from irdiff.codegen.calls import LlvmCall, llvm_call
from irdiff.codegen.kept_results import KeptResults
from irdiff.codegen.outcomes import Made, NotMade, error_of
from irdiff.codegen.readable import ReadableTexts
from irdiff.codegen.running import Runner
from irdiff.config import Config
from irdiff.model import Compiled, Failed, Failure, Launch, Outcome, Target, Toolchain
from irdiff.normalize.lexing import UnclearError
from irdiff.resolve.tools.substitute import Substitute
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.stages import Stage
from irdiff.store import Store, sha256

_NO_LINKER = "no-linker"
"""Note of a side whose code is there as text, and whose binary could not be linked (`compare.verdicts`)."""


@dataclass(frozen=True, kw_only=True)
class _PtxAssembler:
    """The ptxas of a side."""

    program: Path
    name: str
    tool: Tool | None
    """None for that of a release, whose PTX it is known to read."""


class Generator:
    """Of the tools of one comparison. Thread-safe."""

    def __init__(
        self, substitutes: Sequence[Substitute], store: Store, config: Config, *, reuse: bool
    ) -> None:
        self._store = store
        self._runner = Runner(limits=config.limits, cores=threading.BoundedSemaphore(config.jobs))
        tools = [row.tool for row in substitutes]
        alone = len(tools) > 1 and all(tool.kind is ToolKind.LLVM for tool in tools)
        self.texts = ReadableTexts(tools, self._runner, store, alone=alone)
        self.results = KeptResults(store, reuse=reuse)

    def generated(
        self,
        substitute: Substitute,
        above: Compiled,
        start: Compiled,
        launch: Launch,
        target: Target,
        attempt: str,
    ) -> Outcome:
        tool = substitute.tool
        stage = Stage.PTX if target.backend == "cuda" else Stage.AMDGCN
        try:
            call = self._call(substitute, launch, target, self._text(above, Stage.PTX))
            text = self.texts.llvm_ir(self._text(start, Stage.LLIR) or "", tool)
        except (ValueError, UnclearError) as error:
            return failed(start, error_of(stage, str(error)))
        parts = (tool.digest, sha256(text.encode()), asdict(call))
        kept = self.results.of(parts, attempt, lambda: self._generate(tool, text, call, attempt))
        if kept.failure:
            return failed(start, kept.failure, curable=kept.curable)
        linked = stage == Stage.PTX or Stage.HSACO in kept.artifacts
        return replace(
            start,
            artifacts={**start.artifacts, **kept.artifacts},
            stage_times_s={**start.stage_times_s, str(stage): kept.seconds},
            notes=() if linked else (_NO_LINKER,),
        )

    def _generate(self, tool: Tool, text: str, call: LlvmCall, attempt: str) -> Made | NotMade:
        randomized = attempt.startswith("randomized")
        with self._store.scratch() as folder:
            made = self._runner.generate(tool, text, call, folder, randomized=randomized)
            if call.header or isinstance(made, NotMade) or not tool.links:
                return made
            linked = self._runner.link(tool, call, folder, randomized=randomized)
            if isinstance(linked, NotMade):
                return linked
            return replace(made, outputs={**made.outputs, **linked.outputs})

    def assembled(self, substitute: Substitute, compiled: Compiled, attempt: str) -> Outcome:
        """With the machine code of its PTX; as it is where no assembler is at hand."""
        ptx = compiled.artifacts.get(Stage.PTX)
        found = self._assembler(substitute, compiled)
        if ptx is None or found is None or compiled.assembler is None:
            return compiled
        flags, digest = compiled.assembler.flags, compiled.assembler.digest
        text = self._store.get(ptx.digest) or b""
        text = self.texts.ptx(text, found.tool) if found.tool else text

        def assemble() -> Made | NotMade:
            randomized = attempt.startswith("randomized")
            with self._store.scratch() as folder:
                return self._runner.assemble(
                    found.program, found.name, text, flags, folder, randomized=randomized
                )

        kept = self.results.of((digest, sha256(text), flags), attempt, assemble)
        if kept.failure:
            return failed(compiled, kept.failure, curable=kept.curable)
        return replace(
            compiled,
            artifacts={**compiled.artifacts, **kept.artifacts},
            stage_times_s={**compiled.stage_times_s, str(Stage.CUBIN): kept.seconds},
            assembler_log=kept.log,
        )

    def _assembler(self, substitute: Substitute, compiled: Compiled) -> _PtxAssembler | None:
        tool = substitute.tool if substitute.tool.kind is ToolKind.PTXAS else substitute.ptxas
        if tool is not None:
            return _PtxAssembler(program=tool.programs["ptxas"], name=tool.version, tool=tool)
        if isinstance(substitute.origin, Toolchain) and compiled.assembler:
            for path, digest in substitute.origin.programs.items():
                if digest == compiled.assembler.digest:
                    return _PtxAssembler(program=Path(path), name=Path(path).name, tool=None)
        return None

    def _call(self, substitute: Substitute, launch: Launch, target: Target, ptx: str | None) -> LlvmCall:
        """What the LLVM of a side is asked for: what Triton asks for, as far as it has that."""
        asked = llvm_call(launch, target, substitute.version, ptx)
        able = self.texts.abilities(substitute.tool)
        newest = min(asked.ptx, able.newest_ptx) if asked.ptx and able.newest_ptx else asked.ptx
        return replace(asked, ptx=newest, flags=tuple(flag for flag in asked.flags if flag in able.flags))

    def _text(self, compiled: Compiled, stage: str) -> str | None:
        artifact = compiled.artifacts.get(stage)
        content = self._store.get(artifact.digest) if artifact else None
        return content.decode(errors="replace") if content is not None else None


def failed(start: Compiled, failure: Failure, *, curable: bool = False) -> Failed:
    return Failed(
        failure=failure,
        curable=curable,
        artifacts=start.artifacts,
        stage_times_s=start.stage_times_s,
    )
