"""What a tool makes of a stored text, kept in the store: assembly of LLVM IR, machine code of assembly.

A result is kept under the digest of the text that the tool was given, the digest of the tool, its options and
the code of this folder. That is sound because a tool is a process that is given nothing else: files of fixed
names in an empty folder, a fixed environment, fixed addresses; its digest covers every library it loads. What
another time may cure (a time-out, memory) is not kept.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter

from irdiff.codegen.calls import LlvmCall, llvm_call
from irdiff.codegen.readable import ReadableTexts
from irdiff.codegen.running import CODE, TRANSIENT, Made, Runner, error_of
from irdiff.codegen.spellings import rewritten
from irdiff.config import Config
from irdiff.model import Artifact, Compiled, Failed, Failure, Launch, Outcome, Target, Toolchain
from irdiff.normalize.lexing import UnclearError
from irdiff.resolve.tools.substitute import Substitute
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.stages import Stage
from irdiff.store import Store, key_of, sha256

_NO_LINKER = "no-linker"
"""Note of a side that has assembly, but no linked binary (`compare.verdicts`)."""


@dataclass(frozen=True, kw_only=True)
class _PtxAssembler:
    """The ptxas of a side."""

    program: Path
    name: str
    tool: Tool | None
    """None for that of a release, whose PTX it is known to read."""


@dataclass(frozen=True, kw_only=True)
class KeptResult:
    """What came of one text, as the store has it."""

    artifacts: Mapping[str, Artifact]
    failure: Failure | None
    log: str
    respelled: tuple[str, ...]
    seconds: float


_adapter = TypeAdapter(KeptResult)


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
        self._reuse = reuse
        self.taken = 0
        """How many results needed no tool, for progress."""

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
        text = self._text(start, Stage.LLIR) or ""
        try:
            call = self._call(substitute, launch, target, self._text(above, Stage.PTX))
        except ValueError as error:
            return failed(start, error_of(stage, str(error)))
        names = self.texts.spellings(tool)
        digest = sha256(text.encode())
        parts = (tool.digest, digest, names, asdict(call))
        kept = self._kept(parts, attempt, lambda: self._generate(tool, text, names, call, attempt))
        self.texts.note(kept.respelled, digest)
        if kept.failure:
            return failed(start, kept.failure)
        linked = stage == Stage.PTX or Stage.HSACO in kept.artifacts
        return replace(
            start,
            artifacts={**start.artifacts, **kept.artifacts},
            stage_times_s={**start.stage_times_s, str(stage): kept.seconds},
            notes=() if linked else (_NO_LINKER,),
        )

    def _generate(
        self, tool: Tool, text: str, names: Sequence[str], call: LlvmCall, attempt: str
    ) -> Made | Failure:
        runner = self._runner.at(attempt)
        try:
            readable, respelled = rewritten(text, names) if names else (text, ())
        except UnclearError as error:
            return error_of(Stage.PTX if call.header else Stage.AMDGCN, str(error))
        with self._store.scratch() as folder:
            made = runner.generate(tool, readable, call, folder)
            if isinstance(made, Failure):
                return made
            made = replace(made, respelled=respelled)
            if call.header or not tool.links:
                return made
            linked = runner.link(tool, call, folder)
            if isinstance(linked, Failure):
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

        def assemble() -> Made | Failure:
            with self._store.scratch() as folder:
                return self._runner.at(attempt).assemble(found.program, found.name, text, flags, folder)

        kept = self._kept((digest, sha256(text), flags), attempt, assemble)
        if kept.failure:
            return failed(compiled, kept.failure)
        return replace(
            compiled,
            artifacts={**compiled.artifacts, **kept.artifacts},
            stage_times_s={**compiled.stage_times_s, str(Stage.CUBIN): kept.seconds},
            assembler_log=kept.log,
        )

    def _kept(
        self, parts: tuple[object, ...], attempt: str, make: Callable[[], Made | Failure]
    ) -> KeptResult:
        """What `make` makes of `parts`, all that it depends on. The attempt `fresh` trusts nothing kept."""
        key = key_of("tool/1", CODE, parts, attempt)
        known = self._store.get_record("tool", key) if self._reuse and attempt != "fresh" else None
        if known is not None:
            kept = _adapter.validate_python(known)
            if all(self._store.has(row.digest) for row in kept.artifacts.values()):
                self.taken += 1
                return kept
        begin = time.perf_counter()
        made = make()
        kept = self._result(made, round(time.perf_counter() - begin, 6))
        if kept.failure is None or kept.failure.kind not in TRANSIENT:
            self._store.put_record("tool", key, asdict(kept))
        return kept

    def _result(self, made: Made | Failure, seconds: float) -> KeptResult:
        if isinstance(made, Failure):
            return KeptResult(artifacts={}, failure=made, log="", respelled=(), seconds=seconds)
        artifacts = {
            str(name): Artifact(stage=str(name), digest=self._store.put(content), size_bytes=len(content))
            for name, content in made.outputs.items()
        }
        return KeptResult(
            artifacts=artifacts, failure=None, log=made.log, respelled=made.respelled, seconds=seconds
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


def failed(start: Compiled, failure: Failure) -> Failed:
    return Failed(
        failure=failure,
        transient=failure.kind in TRANSIENT,
        artifacts=start.artifacts,
        stage_times_s=start.stage_times_s,
    )
