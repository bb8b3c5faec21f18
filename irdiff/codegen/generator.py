"""Runs tools on stored texts, and keeps the results: assembly of LLVM IR, machine code of assembly.

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

from irdiff import backends
from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import LlvmCall
from irdiff.codegen.readable import ReadableTexts
from irdiff.codegen.tool_runner import CHILD_DIGEST, TRANSIENT, Runner, ToolFailed
from irdiff.config import Config
from irdiff.ir.lexing import UnclearError
from irdiff.ir.llir.spellings import rewritten
from irdiff.model import Artifact, Compiled, Failed, Failure, FailureKind, Launch, Outcome, Target, Toolchain
from irdiff.resolve.substitute import Substitute
from irdiff.resolve.tools import Tool, ToolKind
from irdiff.stages import Stage
from irdiff.store import Store, sha256
from irdiff.store.memo import MemoStep

_NO_LINKER = "no-linker"
"""Note of a side that has assembly, but no linked binary (`compare.verdicts`)."""


@dataclass(frozen=True, kw_only=True)
class KeptResult:
    """The result of a tool for one text, as the store keeps it."""

    artifacts: Mapping[str, Artifact]
    failure: Failure | None = None
    log: str = ""
    respelled: tuple[str, ...] = ()
    """Names of the `SPELLINGS` that were rewritten in the text, for this tool or for the other side's."""
    seconds: float


STEP: MemoStep[KeptResult] = MemoStep("tool", __name__, KeptResult)
_Made = tuple[dict[str, bytes], dict[str, object]]
"""Outputs by stage; `log` and `respelled` of the result."""


class Generator:
    """Runs the tools of one comparison. Thread-safe."""

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
        """`start` with the assembly of its LLVM IR, and the binary where LLVM assembles too; `above` has the
        release's assembly.
        """
        tool, backend = substitute.tool, backends.of(target.backend)
        kind, own = backend.BINARY, backend.CODE_GENERATION
        assert kind and own, "a tool has backends that irdiff knows"
        stage = kind.assembly
        text = self._text(start, Stage.LLIR)
        able = self.texts.abilities(tool)
        try:
            call = own.llvm_call(launch, target, substitute.version, self._text(above, stage))
        except ValueError as error:
            return failed(start, Failure(kind=FailureKind.ERROR, stage=stage, message=str(error)))
        # what Triton asks for, as far as this LLVM has it
        asked, known = call.newest_isa, able.newest_isa
        flags = tuple(flag for flag in call.flags if flag in able.flags)
        call = replace(call, newest_isa=min(asked, known) if asked and known else asked, flags=flags)
        names = self.texts.spellings(tool)
        digest = sha256(text.encode())

        def make() -> _Made:
            return self._generate(tool, kind, text, names, call, attempt)

        kept = self._kept((tool.digest, digest, names, asdict(call)), attempt, make)
        self.texts.note(kept.respelled, digest)
        if kept.failure:
            return failed(start, kept.failure)
        linked = not kind.is_reported_as_text or kind.artifact in kept.artifacts
        return replace(
            start,
            artifacts={**start.artifacts, **kept.artifacts},
            stage_times_s={**start.stage_times_s, str(stage): kept.seconds},
            notes=() if linked else (_NO_LINKER,),
        )

    def _generate(
        self, tool: Tool, kind: BinaryKind, text: str, names: Sequence[str], call: LlvmCall, attempt: str
    ) -> _Made:
        runner = self._runner.at(attempt)
        try:
            readable, respelled = rewritten(text, names) if names else (text, ())
        except UnclearError as error:
            raise ToolFailed(
                Failure(kind=FailureKind.ERROR, stage=kind.assembly, message=str(error))
            ) from error
        with self._store.scratch() as folder:
            outputs: dict[str, bytes] = {kind.assembly: runner.generate(tool, readable, call, folder)}
            if kind.is_reported_as_text and tool.links:
                outputs[kind.artifact] = runner.link(tool, call, folder)
        return outputs, {"respelled": respelled}

    def assembled(self, substitute: Substitute, compiled: Compiled, target: Target, attempt: str) -> Outcome:
        """With the machine code of its assembly; as it is where LLVM assembles, or no assembler is there."""
        kind, assembler = backends.of(target.backend).BINARY, backends.assembler_of(target.backend)
        if kind is None or assembler is None or compiled.assembler is None:
            return compiled
        assembly = compiled.artifacts.get(kind.assembly)
        tool = substitute.tool if substitute.tool.kind is ToolKind.ASSEMBLER else substitute.assembler
        program = tool.programs[assembler.NAME] if tool else _assembler_of_release(substitute, compiled)
        if assembly is None or program is None:
            return compiled
        flags, digest = compiled.assembler.flags, compiled.assembler.digest
        text = self._store.get(assembly.digest) or b""
        text = self.texts.assembly(text, tool) if tool else text  # a release's own reads the release's text

        def make() -> _Made:
            name = tool.version if tool else program.name
            with self._store.scratch() as folder:
                (folder / f"kernel.{kind.assembly}").write_bytes(text)
                code, log = self._runner.at(attempt).assemble(assembler, program, name, flags, folder)
            return {kind.artifact: code}, {"log": log}

        kept = self._kept((digest, sha256(text), flags), attempt, make)
        if kept.failure:
            return failed(compiled, kept.failure)
        return replace(
            compiled,
            artifacts={**compiled.artifacts, **kept.artifacts},
            stage_times_s={**compiled.stage_times_s, kind.artifact: kept.seconds},
            assembler_log=kept.log,
        )

    def _kept(self, parts: tuple[object, ...], attempt: str, make: Callable[[], _Made]) -> KeptResult:
        """The result of `make`, which depends on `parts` alone."""
        memo = self._store.memo(STEP, [CHILD_DIGEST, parts, attempt])
        known = memo.get() if self._reuse else None
        if known and all(self._store.has(row.digest) for row in known.artifacts.values()):
            self.taken += 1
            return known
        begin = time.perf_counter()
        row: dict[str, object] = {"artifacts": {}}
        try:
            outputs, row = make()
            row["artifacts"] = {
                str(name): Artifact(stage=str(name), digest=self._store.put(content), size_bytes=len(content))
                for name, content in outputs.items()
            }
        except ToolFailed as error:
            row["failure"] = error.failure
        kept = STEP.read({**row, "seconds": round(time.perf_counter() - begin, 6)})
        if kept.failure is None or kept.failure.kind not in TRANSIENT:
            memo.keep(kept)
        return kept

    def _text(self, compiled: Compiled, stage: str) -> str:
        """Empty where there is none."""
        artifact = compiled.artifacts.get(stage)
        return ((artifact and self._store.get(artifact.digest)) or b"").decode(errors="replace")


def _assembler_of_release(substitute: Substitute, compiled: Compiled) -> Path | None:
    if isinstance(substitute.origin, Toolchain) and compiled.assembler:
        for path, digest in substitute.origin.programs.items():
            if digest == compiled.assembler.digest:
                return Path(path)
    return None


def failed(start: Compiled, failure: Failure) -> Failed:
    return Failed(
        failure=failure,
        transient=failure.kind in TRANSIENT,
        artifacts=start.artifacts,
        stage_times_s=start.stage_times_s,
    )
