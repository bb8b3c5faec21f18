"""The compiler of a comparison that has tools among its sides: tools for these, workers for all others.

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

from irdiff.capture.catalogs import Catalog
from irdiff.codegen import abilities, spellings
from irdiff.codegen.abilities import Abilities
from irdiff.codegen.calls import LlvmCall, llvm_call
from irdiff.codegen.outcomes import Made, NotMade
from irdiff.codegen.running import Runner
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
from irdiff.normalize.lexing import UnclearError
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.tools.substitute import STARTS_AT, Substitute
from irdiff.resolve.tools.tool import Tool, ToolKind
from irdiff.stages import Stage
from irdiff.store import Store, key_of, sha256

_NO_LINKER = "no-linker"
_failure = TypeAdapter(Failure)
_VERSION_LINE = ".version {}.{}"


@dataclass(frozen=True, kw_only=True)
class _Kept:
    """What came of one text, as the store has it."""

    artifacts: Mapping[str, Artifact]
    failure: Failure | None
    curable: bool
    log: str
    seconds: float


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
        self.store = store
        self.reuse = reuse
        self.rewritten: dict[str, set[str]] = {}
        """By spelling: digests of the texts that it was taken out of."""
        self.lowered: dict[str, set[str]] = {}
        """By what was lowered in the header of a PTX: digests."""
        self._texts = Texts(inner, store)
        self._runner = Runner(limits=config.limits, cores=threading.BoundedSemaphore(config.jobs))
        self._substitutes = {row.toolchain().digest: row for row in substitutes}
        self._all_tools = all(row.tool.kind is ToolKind.LLVM for row in substitutes) and len(substitutes) > 1
        self._abilities: dict[str, Abilities] = {}
        self._code = _digest_of_code()
        self._seen: dict[tuple[str, str, str], tuple[Launch, Compiled]] = {}
        """By toolchain, launch and target: what replays need to know."""
        self._lock = threading.Lock()

    # what every compiler is asked

    def catalog(self, toolchain: Toolchain, corpus: Corpus, workload: str, target: Target) -> Catalog:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.catalog(toolchain, corpus, workload, target)
        return self._texts.catalog(substitute, corpus, workload, target)

    def keeps_below_frontend(self, toolchain: Toolchain, target: Target) -> bool:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.keeps_below_frontend(toolchain, target)
        if isinstance(substitute.origin, Toolchain):
            return self.inner.keeps_below_frontend(substitute.origin, target)
        return True

    def entered_frontend(self, toolchain: Toolchain, target: Target) -> list[str]:
        return [] if toolchain.digest in self._substitutes else self.inner.entered_frontend(toolchain, target)

    @property
    def taken_from_store(self) -> int:
        return self.inner.taken_from_store

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
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.compile(toolchain, corpus, launch, target, assemble=assemble, fresh=fresh)
        attempt = "fresh" if fresh else ""
        return self._compiled(substitute, corpus, launch, target, assemble=assemble, attempt=attempt)

    def assemble(
        self, toolchain: Toolchain, corpus: Corpus, launch: Launch, target: Target, compiled: Compiled
    ) -> Outcome:
        substitute = self._substitutes.get(toolchain.digest)
        if substitute is None:
            return self.inner.assemble(toolchain, corpus, launch, target, compiled)
        if Stage.PTX not in compiled.artifacts or Stage.CUBIN in compiled.artifacts:
            return compiled
        return self._assembled(substitute, compiled, attempt="")

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
        return self._compiled(
            substitute, corpus, launch, target, assemble=True, attempt=f"randomized {attempt}"
        )

    def notes(self) -> list[str]:
        """What a reader must know of how tools were driven, once all is compiled."""
        kinds = {row.tool.kind for row in self._substitutes.values()}
        above = "PTX and all IR above it are" if kinds == {ToolKind.PTXAS} else "LLVM IR and all above it are"
        names = sorted({row.texts_of for row in self._substitutes.values()})
        notes = [f"{above} the same inputs on both sides, those of {', '.join(names)}: they are not compared"]
        for name, texts in sorted(self.rewritten.items()):
            who = [tool.version for tool in self._llvms() if name in self.abilities(tool).unreadable]
            exact = next(row.exact for row in spellings.SPELLINGS if row.name == name)
            how = "spelled otherwise, with the same meaning," if exact else "left out on both sides"
            notes.append(f"{' and '.join(who)} cannot read {name}: {how} in {len(texts)} texts")
        for tool in self._llvms():
            lacking = [flag for flag in abilities.FLAGS if flag not in self.abilities(tool).flags]
            if lacking and "cuda" in tool.backends:
                notes.append(f"{tool.version} has no switch {', '.join(lacking)}, which Triton may set")
        notes += [f"{words} ({len(texts)} texts)" for words, texts in sorted(self.lowered.items())]
        return notes

    def _llvms(self) -> list[Tool]:
        return [row.tool for row in self._substitutes.values() if row.tool.kind is ToolKind.LLVM]

    # a tool's side

    def _compiled(
        self,
        substitute: Substitute,
        corpus: Corpus,
        launch: Launch,
        target: Target,
        *,
        assemble: bool,
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
            made = self._generated(substitute, above, start, launch, target, attempt)
            if isinstance(made, Failed):
                return made
            start = made
        else:
            flags = above.assembler.flags if above.assembler else ()
            above = replace(above, assembler=Assembler(digest=substitute.tool.digest, flags=flags))
            start = replace(start, assembler=above.assembler)
        self._seen[substitute.toolchain().digest, launch.id, target.name] = (launch, above)
        return self._assembled(substitute, start, attempt) if assemble else start

    def _generated(
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
            call = self.call(substitute, launch, target, self._text(above, Stage.PTX))
            text = self._readable(self._text(start, Stage.LLIR) or "", exact_only=not self._all_tools)
        except (ValueError, UnclearError) as error:
            return _failed(start, _error(stage, str(error)))
        key = key_of("tool/1", self._code, tool.digest, sha256(text.encode()), asdict(call), attempt)
        kept = self._kept(key, attempt, lambda: self._generate(tool, text, call, attempt))
        if kept.failure:
            return _failed(start, kept.failure, curable=kept.curable)
        linked = stage == Stage.PTX or Stage.HSACO in kept.artifacts
        return replace(
            start,
            artifacts={**start.artifacts, **kept.artifacts},
            stage_times_s={**start.stage_times_s, str(stage): kept.seconds},
            notes=() if linked else (_NO_LINKER,),
        )

    def _generate(self, tool: Tool, text: str, call: LlvmCall, attempt: str) -> Made | NotMade:
        randomized = attempt.startswith("randomized")
        with self.store.scratch() as folder:
            made = self._runner.generate(tool, text, call, folder, randomized=randomized)
            links = {"ld.lld"} <= tool.programs.keys() and bool(
                {"llvm-mc", "llvmlite"} & tool.programs.keys()
            )
            if call.header or isinstance(made, NotMade) or not links:
                return made
            linked = self._runner.link(tool, call, folder, randomized=randomized)
            if isinstance(linked, NotMade):
                return linked
            return replace(made, outputs={**made.outputs, **linked.outputs})

    def _assembled(self, substitute: Substitute, compiled: Compiled, attempt: str) -> Outcome:
        ptx = compiled.artifacts.get(Stage.PTX)
        program, name = self._ptxas(substitute, compiled)
        if ptx is None or program is None or compiled.assembler is None:
            return compiled
        flags, digest = compiled.assembler.flags, compiled.assembler.digest
        text = self._lowered(substitute, self.store.get(ptx.digest) or b"")
        key = key_of("tool/1", self._code, digest, sha256(text), flags, attempt)

        def assemble() -> Made | NotMade:
            randomized = attempt.startswith("randomized")
            with self.store.scratch() as folder:
                return self._runner.assemble(program, name, text, flags, folder, randomized=randomized)

        kept = self._kept(key, attempt, assemble)
        if kept.failure:
            return _failed(compiled, kept.failure, curable=kept.curable)
        return replace(
            compiled,
            artifacts={**compiled.artifacts, **kept.artifacts},
            stage_times_s={**compiled.stage_times_s, str(Stage.CUBIN): kept.seconds},
            assembler_log=kept.log,
        )

    def _ptxas(self, substitute: Substitute, compiled: Compiled) -> tuple[Path | None, str]:
        """The program that assembles for a side, and its name."""
        if substitute.tool.kind is ToolKind.PTXAS:
            return substitute.tool.programs["ptxas"], substitute.tool.version
        if isinstance(substitute.origin, Toolchain):
            digest = compiled.assembler.digest if compiled.assembler else None
            found = (path for path, known in substitute.origin.programs.items() if known == digest)
            path = next(found, None)
            return (Path(path), f"ptxas of {substitute.origin.spec}") if path else (None, "")
        if substitute.ptxas:
            return substitute.ptxas.programs["ptxas"], substitute.ptxas.version
        return None, ""

    def replay(
        self, toolchain: Toolchain, launch_id: str, target: Target, stage: str, input_digest: str
    ) -> Outcome | None:
        """One stage of a tool's side on a text of either side; None where it is not the tool's."""
        substitute = self._substitutes.get(toolchain.digest)
        known = self._seen.get((toolchain.digest, launch_id, target.name))
        if substitute is None or known is None:
            return None
        launch, above = known
        given = STARTS_AT[substitute.tool.kind] if stage != Stage.CUBIN else Stage.PTX
        text = Artifact(stage=given, digest=input_digest, size_bytes=0)
        start = replace(above, artifacts={given: text}, stage_times_s={}, assembler_log="", notes=())
        if stage == Stage.CUBIN:
            return self._assembled(substitute, start, "")
        if stage in (Stage.PTX, Stage.AMDGCN) and substitute.tool.kind is ToolKind.LLVM:
            return self._generated(substitute, above, start, launch, target, "")
        return None

    # texts

    def call(self, substitute: Substitute, launch: Launch, target: Target, ptx: str | None) -> LlvmCall:
        """What the LLVM of a side is asked for: what Triton asks for, as far as it has that."""
        asked = llvm_call(launch, target, substitute.version, ptx)
        able = self.abilities(substitute.tool)
        newest = min(asked.ptx, able.newest_ptx) if asked.ptx and able.newest_ptx else asked.ptx
        return replace(asked, ptx=newest, flags=tuple(flag for flag in asked.flags if flag in able.flags))

    def abilities(self, tool: Tool) -> Abilities:
        with self._lock:
            if tool.digest not in self._abilities:
                self._abilities[tool.digest] = abilities.of_tool(tool, self._runner, self.store)
            return self._abilities[tool.digest]

    def _readable(self, text: str, *, exact_only: bool) -> str:
        """The text in spellings that every LLVM of the comparison reads."""
        names = {name for tool in self._llvms() for name in self.abilities(tool).unreadable}
        chosen = [
            row.name for row in spellings.SPELLINGS if row.name in names and (row.exact or not exact_only)
        ]
        if not chosen:
            return text
        key = key_of("readable/1", self._code, sha256(text.encode()), chosen)
        known = self.store.get_record("readable", key)
        if known is None:
            changed, found = spellings.rewritten(text, chosen)
            known = [self.store.put(changed.encode()), found]
            self.store.put_record("readable", key, known)
        with self._lock:
            for name in known[1]:
                self.rewritten.setdefault(name, set()).add(known[0])
        content = self.store.get(known[0])
        return content.decode() if content is not None else spellings.rewritten(text, chosen)[0]

    def _lowered(self, substitute: Substitute, text: bytes) -> bytes:
        """PTX whose ISA version is one that the assembler of the side knows."""
        if substitute.tool.kind is not ToolKind.PTXAS:
            return text
        newest = self.abilities(substitute.tool).newest_ptx
        start, _, rest = text.partition(b".version ")
        line, _, rest = rest.partition(b"\n")
        major, _, minor = line.strip().partition(b".")
        if newest is None or not (major + minor).isdigit() or int(major + minor) <= newest:
            return text
        lowered = f"{newest // 10}.{newest % 10}"
        with self._lock:
            words = (
                f"{substitute.tool.version} knows no ISA {line.decode().strip()}: it is given as {lowered}"
            )
            self.lowered.setdefault(words, set()).add(sha256(text))
        return start + b".version " + lowered.encode() + b"\n" + rest

    def _text(self, compiled: Compiled, stage: str) -> str | None:
        artifact = compiled.artifacts.get(stage)
        content = self.store.get(artifact.digest) if artifact else None
        return content.decode(errors="replace") if content is not None else None

    # results

    def _kept(self, key: str, attempt: str, make: Callable[[], Made | NotMade]) -> _Kept:
        known = self.store.get_record("tool", key) if self.reuse and attempt != "fresh" else None
        if known is not None:
            artifacts = {name: Artifact(**row) for name, row in known["artifacts"].items()}
            if all(self.store.has(row.digest) for row in artifacts.values()):
                failure = _failure.validate_python(known["failure"]) if known["failure"] else None
                return _Kept(
                    artifacts=artifacts,
                    failure=failure,
                    curable=False,
                    log=known["log"],
                    seconds=known["seconds"],
                )
        begin = time.perf_counter()
        made = make()
        seconds = round(time.perf_counter() - begin, 6)
        if isinstance(made, NotMade):
            kept = _Kept(artifacts={}, failure=made.failure, curable=made.curable, log="", seconds=seconds)
        else:
            rows = {
                str(name): Artifact(stage=str(name), digest=self.store.put(content), size_bytes=len(content))
                for name, content in made.outputs.items()
            }
            kept = _Kept(artifacts=rows, failure=None, curable=False, log=made.log, seconds=seconds)
        if not kept.curable:
            self.store.put_record("tool", key, asdict(kept))
        return kept


def _without_backend(start: Compiled, tool: Tool, target: Target) -> Failed:
    failure = Failure(
        kind=FailureKind.UNSUPPORTED,
        stage=Stage.AMDGCN if target.backend == "hip" else Stage.PTX,
        message=f"{tool.version} has no backend for {target.name}",
        signal=None,
        stderr="",
    )
    return _failed(start, failure)


def _error(stage: str, message: str) -> Failure:
    return Failure(kind=FailureKind.ERROR, stage=stage, message=message, signal=None, stderr="")


def _failed(start: Compiled, failure: Failure, *, curable: bool = False) -> Failed:
    return Failed(
        entered=(),
        failure=failure,
        curable=curable,
        artifacts=start.artifacts,
        stage_times_s=start.stage_times_s,
    )


def _digest_of_code() -> str:
    """Of this folder and of what it rewrites texts with: another irdiff asks its tools anew."""
    here = Path(__file__).parent
    beside = [here.parent / "normalize" / name for name in ("llvm_floats.py", "lexing.py")]
    return key_of([sha256(path.read_bytes()) for path in (*sorted(here.glob("*.py")), *beside)])
