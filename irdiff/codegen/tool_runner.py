"""Runs a tool: one text through an LLVM or an assembler, in a scratch folder, under names that never change.

Where llc differs from Triton's own way of driving LLVM: llc sets the target's data layout and verifies as
Triton does, takes `TargetOptions` from switches (`--fp-contract=fast`, `--trap-unreachable`), and does not
inline; a text that defines more than one function goes through `opt` first, which inlines what is not marked
`noinline`, as Triton does before it generates code. Triton's switch for code that meets no NaN
(`NoNaNsFPMath`) was taken out of LLVM and of Triton after 3.5; it is not set.

The calls are Triton's own, as its releases 3.5 to 3.9 make them (`translateLLVMIRToASM` and
`createTargetMachine` of `python/src/llvm.cc`; each backend's `code_generation`): code generation alone, at
the aggressive level, position independent, with traps for what is unreachable; multiplications and additions
are fused where the launch allows it. All that is optimized or linked (libdevice, ocml) is so in the LLVM IR
already.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import backends, process
from irdiff.backends import ASSEMBLERS
from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import AssemblerProgram, LlvmCall
from irdiff.config import Limits
from irdiff.model import Failure, FailureKind
from irdiff.process import FROM_OUTSIDE, EndedCommand
from irdiff.resolve.tools import ENVIRONMENT, Tool
from irdiff.store import sha256_of_file

_ASSEMBLER_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
"""As the worker gives it: the length of the environment moves the heap of an assembler."""
_CHILD = Path(__file__).with_name("llvmlite_child.py")
_LOG_CHARACTERS = 4000


CHILD_DIGEST = sha256_of_file(_CHILD)
"""A part of the cache key: no module imports this program, so no digest of code covers it."""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs tools, `jobs` at a time. Thread-safe."""

    limits: Limits
    cores: threading.BoundedSemaphore
    randomized: bool = False
    """True if the tools run with address randomization."""

    def at(self, attempt: str) -> Runner:
        """For one attempt at a case: only repetitions are randomized."""
        return replace(self, randomized=attempt.startswith("randomized"))

    def _run(
        self,
        words: list[str],
        folder: Path,
        executable: Path | None = None,
        *,
        environment: dict[str, str] = ENVIRONMENT,
    ) -> EndedCommand:
        with self.cores:
            return process.run_bounded(
                words,
                executable=executable,
                env=environment,
                cwd=folder,
                timeout_s=self.limits.timeout_s,
                memory_bytes=self.limits.memory_bytes,
                randomized=self.randomized,
            )

    def generate(self, tool: Tool, text: str, call: LlvmCall, folder: Path) -> bytes:
        """LLVM IR to assembly; with llvmlite, where LLVM assembles, to an object in `folder` too.

        Raises ToolFailed.
        """
        stage, own = _binary(call.backend).assembly, backends.of(call.backend).CODE_GENERATION
        assert own is not None
        (folder / "kernel.ll").write_text(text, encoding="utf-8")
        ended = self.translate(tool, call, folder)
        if ended.code or unknown_processor(ended.stderr) or not (folder / "kernel.s").exists():
            raise failure_of(ended, tool.version, stage, self.limits.timeout_s)
        made = (folder / "kernel.s").read_text(encoding="utf-8", errors="replace")
        if unknown := own.unknown_intrinsics(made):
            more = f" (and {len(unknown) - 1} more)" if len(unknown) > 1 else ""
            said = f"{tool.version} does not know {unknown[0]}{more}"
            raise ToolFailed(Failure(kind=FailureKind.ERROR, stage=stage, message=said, stderr=said))
        return own.finished(made, call).encode()

    def translate(self, tool: Tool, call: LlvmCall, folder: Path) -> EndedCommand:
        """`kernel.ll` to `kernel.s` in `folder`; with llvmlite, where LLVM assembles, to `kernel.o` too."""
        if "llvmlite" in tool.programs:
            return self._with_llvmlite(tool, call, folder)
        text = (folder / "kernel.ll").read_text(encoding="utf-8")
        if text.count("\ndefine ") > 1 and "opt" in tool.programs:
            words = ["opt", "-S", "-passes=forceattrs,always-inline", "-force-attribute=alwaysinline"]
            inlined = self._run([*words, "kernel.ll", "-o", "kernel.ll"], folder, tool.programs["opt"])
            if inlined.code:
                return inlined
        words = ["llc", *llc_words(call), "kernel.ll", "-o", "kernel.s"]
        return self._run(words, folder, tool.programs["llc"])

    def _with_llvmlite(self, tool: Tool, call: LlvmCall, folder: Path) -> EndedCommand:
        environment = {**ENVIRONMENT, "PYTHONPATH": str(tool.programs["llvmlite"].parent)}
        words = [sys.executable, "-P", "-s", str(_CHILD), call.triple, call.processor]
        words += [_features(call), "" if backends.assembler_of(call.backend) else "kernel.o", *call.flags]
        return self._run(words, folder, environment=environment)

    def link(self, tool: Tool, call: LlvmCall, folder: Path) -> bytes:
        """`kernel.s`, or `kernel.o`, to machine code by LLVM's own programs. Raises ToolFailed."""
        stage = _binary(call.backend).artifact
        commands = [["ld.lld", "-shared", "kernel.o", "-o", f"kernel.{stage}"]]
        if not (folder / "kernel.o").exists():
            words = ["llvm-mc", f"-triple={call.triple}", f"-mcpu={call.processor}"]
            words += [f"-mattr={','.join(call.features)}", "-filetype=obj", "kernel.s", "-o", "kernel.o"]
            commands.insert(0, words)
        for words in commands:
            ended = self._run(words, folder, tool.programs[words[0]])
            if ended.code:
                raise failure_of(ended, tool.version, stage, self.limits.timeout_s)
        return (folder / f"kernel.{stage}").read_bytes()

    def assemble(
        self, assembler: AssemblerProgram, program: Path, name: str, flags: tuple[str, ...], folder: Path
    ) -> tuple[bytes, str]:
        """The assembly in `folder` to machine code and the log, as the worker of a toolchain does it.

        Raises ToolFailed, with the assembler's `name`.
        """
        kind = _binary(assembler.BACKEND)
        ended = self.run_assembler(assembler, program, flags, folder)
        made = folder / f"kernel.{kind.artifact}"
        if ended.code or not made.exists():
            raise failure_of(ended, name, kind.artifact, self.limits.timeout_s)
        return made.read_bytes(), ended.stderr.decode(errors="replace")[-_LOG_CHARACTERS:]

    def run_assembler(
        self, assembler: AssemblerProgram, program: Path, flags: tuple[str, ...], folder: Path
    ) -> EndedCommand:
        """The assembly in `folder` to machine code next to it."""
        kind = _binary(assembler.BACKEND)
        words = [assembler.NAME, *flags, f"kernel.{kind.assembly}", "-o", f"kernel.{kind.artifact}"]
        return self._run(words, folder, program, environment=_ASSEMBLER_ENVIRONMENT)


def _binary(backend: str) -> BinaryKind:
    kind = backends.of(backend).BINARY
    assert kind is not None, "tools are known of backends that have machine code"
    return kind


def llc_words(call: LlvmCall) -> list[str]:
    """The switches of llc for a call."""
    return [
        "-O3",
        f"-mtriple={call.triple}",
        f"-mcpu={call.processor}",
        f"-mattr={_features(call)}",
        "--relocation-model=pic",
        "--trap-unreachable",
        *(["--fp-contract=fast"] if call.fuses else []),
        *(f"--{flag}" for flag in call.flags),
    ]


def _features(call: LlvmCall) -> str:
    return ",".join((*call.features, *((f"{call.isa_feature}{call.newest_isa}",) if call.newest_isa else ())))


_LOCATED = re.compile(r"\S+?:(\d+):(\d+): error: ([^\n]*)\n([^\n]*)")
_INTRINSIC = re.compile(r"Intrinsic has incorrect (?:argument|return) type!\n[^\n]*@(llvm\.[\w.]+)")
_BROKEN = "Broken module found"
_CALLED = re.compile(r"call [^@\n]*@(llvm\.[\w.]+)\(")
_PROCESSOR = re.compile(r"'(\S+)' is not a recognized processor")
_TOKEN = re.compile(r"[\w.@%#!\"$-]+(?:\([^()]*\))?|\S")
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "Cannot allocate memory")
_STDERR_CHARACTERS = 6000
_STACK = "PLEASE submit a bug report"
"""LLVM prints its stack behind this text, with addresses."""


TRANSIENT = frozenset({FailureKind.TIMEOUT, FailureKind.MEMORY})
"""After a failure of these kinds, another attempt may succeed."""


class ToolFailed(Exception):  # noqa: N818 - a finding: the run goes on
    """A tool gave no result."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


def failure_of(ended: EndedCommand, tool: str, stage: str, timeout_s: float) -> ToolFailed:
    """Why a tool gave no result."""
    text = (ended.stderr + ended.stdout).decode(errors="replace").partition(_STACK)[0].strip()
    kind, message = _reason(ended, text, tool, timeout_s)
    number = -ended.code if ended.code < 0 and not ended.timed_out else 0
    name = signal.Signals(number).name if number else None
    said = text[:_STDERR_CHARACTERS]
    return ToolFailed(Failure(kind=kind, stage=stage, message=message, signal=name, stderr=said))


def unknown_processor(stderr: bytes) -> str | None:
    """The processor that an LLVM has gone on without: its code is then for another one."""
    found = _PROCESSOR.search(stderr.decode(errors="replace"))
    return found[1] if found else None


def _reason(ended: EndedCommand, text: str, tool: str, timeout_s: float) -> tuple[FailureKind, str]:
    if ended.timed_out:
        return FailureKind.TIMEOUT, f"{tool}: no result after {timeout_s:g} s"
    if any(word in text for word in _OUT_OF_MEMORY) or -ended.code in FROM_OUTSIDE:
        return FailureKind.MEMORY, f"{tool}: out of memory, or ended from outside"
    processor = unknown_processor(ended.stderr)
    if processor or any(each.UNKNOWN_PROCESSOR in text for each in ASSEMBLERS.values()):
        return FailureKind.UNSUPPORTED, f"{tool} does not know the processor {processor or ''}".strip()
    return (FailureKind.CRASH if ended.code < 0 else FailureKind.ERROR), f"{tool} {_cause(text)}"


def _cause(text: str) -> str:
    """Returns words that follow the name of the tool."""
    if intrinsic := _INTRINSIC.search(text):
        return f"knows {intrinsic[1]} with other arguments"
    if located := _LOCATED.search(text):
        return f"cannot read {_construct(located)}"
    for assembler in ASSEMBLERS.values():
        if said := assembler.ERROR.search(text):
            return f"says: {said[1]}"
    if _BROKEN in text and (named := _CALLED.search(text)):
        return f"takes calls of {named[1]} for broken IR"
    errors = [line for line in text.splitlines() if "LLVM ERROR" in line or "error:" in line]
    first = (errors or text.splitlines() or ["nothing before it ended"])[0]
    return f"says: {first.strip()[:300]}"


def _construct(located: re.Match[str]) -> str:
    """The word at the place that the reader of LLVM points to, and what it says of it."""
    column, said, line = int(located[2]), located[3], located[4]
    at = _TOKEN.match(line, max(0, column - 1))
    word = at.group() if at else line.strip()[:40]
    return f"`{word}`: {said} (line {located[1]})"
