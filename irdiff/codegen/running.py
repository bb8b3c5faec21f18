"""Tools at work: one text through an LLVM or a ptxas, in a scratch folder, under names that never change.

Where llc differs from Triton's own way of driving LLVM: llc sets the target's data layout and verifies as
Triton does, takes `TargetOptions` from switches (`--fp-contract=fast`, `--trap-unreachable`), and does not
inline; a text that defines more than one function goes through `opt` first, which inlines what is not marked
`noinline`, as Triton does before it generates code. Triton's switch for code that meets no NaN
(`NoNaNsFPMath`) was taken out of LLVM and of Triton after 3.5; it is not set.
"""

from __future__ import annotations

import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from irdiff import process
from irdiff.codegen.calls import LlvmCall, as_triton_writes
from irdiff.codegen.outcomes import (
    Made,
    NotMade,
    error_of,
    failure_of,
    unknown_intrinsics,
    unknown_processor,
)
from irdiff.config import Limits
from irdiff.process import EndedCommand
from irdiff.resolve.tools.tool import ENVIRONMENT, Tool
from irdiff.stages import Stage

_PTXAS_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
"""As the worker gives it: the length of the environment moves the heap of ptxas."""
_CHILD = Path(__file__).with_name("llvmlite_child.py")
_LOG_CHARACTERS = 4000


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs tools, `jobs` at a time. Thread-safe."""

    limits: Limits
    cores: threading.BoundedSemaphore

    def _run(
        self,
        words: list[str | Path],
        folder: Path,
        *,
        executable: Path | None = None,
        environment: dict[str, str] = ENVIRONMENT,
        randomized: bool = False,
    ) -> EndedCommand:
        with self.cores:
            return process.run_bounded(
                words,
                executable=executable,
                env=environment,
                cwd=folder,
                timeout_s=self.limits.timeout_s,
                memory_bytes=self.limits.memory_bytes,
                randomized=randomized,
            )

    def generate(
        self, tool: Tool, text: str, call: LlvmCall, folder: Path, *, randomized: bool = False
    ) -> Made | NotMade:
        """LLVM IR to assembly; with the machine code beside it where the tool makes both at once."""
        stage = Stage.PTX if call.header else Stage.AMDGCN
        (folder / "kernel.ll").write_text(text, encoding="utf-8")
        ended = self.translate(tool, call, folder, randomized=randomized)
        if ended.code or unknown_processor(ended.stderr) or not (folder / "kernel.s").exists():
            return failure_of(ended, tool.version, stage, self.limits.timeout_s)
        made = (folder / "kernel.s").read_text(encoding="utf-8", errors="replace")
        if unknown := unknown_intrinsics(made, tool.version):
            return NotMade(failure=error_of(stage, unknown, unknown), curable=False)
        if call.header:
            made = as_triton_writes(made, call)
        return Made(outputs={stage: made.encode()}, log="", notes=())

    def translate(
        self, tool: Tool, call: LlvmCall, folder: Path, *, randomized: bool = False
    ) -> EndedCommand:
        """`kernel.ll` to `kernel.s` in `folder`; with llvmlite, for AMD, to `kernel.o` too."""
        if "llvmlite" in tool.programs:
            return self._with_llvmlite(tool, call, folder, randomized=randomized)
        text = (folder / "kernel.ll").read_text(encoding="utf-8")
        if text.count("\ndefine ") > 1 and "opt" in tool.programs:
            inlined = self._inlined(tool, folder, randomized=randomized)
            if inlined.code:
                return inlined
        words: list[str | Path] = ["llc", *llc_words(call), "kernel.ll", "-o", "kernel.s"]
        return self._run(words, folder, executable=tool.programs["llc"], randomized=randomized)

    def _inlined(self, tool: Tool, folder: Path, *, randomized: bool) -> EndedCommand:
        words: list[str | Path] = ["opt", "-S", "-passes=forceattrs,always-inline"]
        words += ["-force-attribute=alwaysinline", "kernel.ll", "-o", "kernel.ll"]
        return self._run(words, folder, executable=tool.programs["opt"], randomized=randomized)

    def _with_llvmlite(self, tool: Tool, call: LlvmCall, folder: Path, *, randomized: bool) -> EndedCommand:
        request = {
            "input": "kernel.ll",
            "triple": call.triple,
            "processor": call.processor,
            "features": _features(call),
            "flags": call.flags,
            "assembly": "kernel.s",
            "object": "" if call.header else "kernel.o",
        }
        (folder / "request.json").write_text(json.dumps(request))
        environment = {**ENVIRONMENT, "PYTHONPATH": str(tool.programs["llvmlite"].parent)}
        words: list[str | Path] = [sys.executable, "-P", "-s", _CHILD, "request.json"]
        return self._run(words, folder, environment=environment, randomized=randomized)

    def link(self, tool: Tool, call: LlvmCall, folder: Path, *, randomized: bool = False) -> Made | NotMade:
        """`kernel.s` of AMD, or `kernel.o`, to its machine code."""
        if not (folder / "kernel.o").exists():
            words: list[str | Path] = ["llvm-mc", f"-triple={call.triple}", f"-mcpu={call.processor}"]
            words += [f"-mattr={','.join(call.features)}", "-filetype=obj", "kernel.s", "-o", "kernel.o"]
            ended = self._run(words, folder, executable=tool.programs["llvm-mc"], randomized=randomized)
            if ended.code:
                return failure_of(ended, tool.version, Stage.HSACO, self.limits.timeout_s)
        words = ["ld.lld", "-shared", "kernel.o", "-o", "kernel.hsaco"]
        ended = self._run(words, folder, executable=tool.programs["ld.lld"], randomized=randomized)
        if ended.code:
            return failure_of(ended, tool.version, Stage.HSACO, self.limits.timeout_s)
        return Made(outputs={Stage.HSACO: (folder / "kernel.hsaco").read_bytes()}, log="", notes=())

    def assemble(
        self,
        program: Path,
        name: str,
        text: bytes,
        flags: tuple[str, ...],
        folder: Path,
        *,
        randomized: bool = False,
    ) -> Made | NotMade:
        """PTX to a cubin, as the worker of a toolchain runs its ptxas."""
        (folder / "kernel.ptx").write_bytes(text)
        ended = self.run_ptxas(program, flags, folder, randomized=randomized)
        if ended.code or not (folder / "kernel.cubin").exists():
            return failure_of(ended, name, Stage.CUBIN, self.limits.timeout_s)
        log = ended.stderr.decode(errors="replace")[-_LOG_CHARACTERS:]
        return Made(outputs={Stage.CUBIN: (folder / "kernel.cubin").read_bytes()}, log=log, notes=())

    def run_ptxas(
        self, program: Path, flags: tuple[str, ...], folder: Path, *, randomized: bool = False
    ) -> EndedCommand:
        """`kernel.ptx` to `kernel.cubin` in `folder`."""
        return self._run(
            ["ptxas", *flags, "kernel.ptx", "-o", "kernel.cubin"],
            folder,
            executable=program,
            environment=_PTXAS_ENVIRONMENT,
            randomized=randomized,
        )


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
    return ",".join((*call.features, *((f"+ptx{call.ptx}",) if call.ptx else ())))
