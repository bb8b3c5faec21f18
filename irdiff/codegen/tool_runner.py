"""Runs a tool: one text through an LLVM or a ptxas, in a scratch folder, under names that never change.

Where llc differs from Triton's own way of driving LLVM: llc sets the target's data layout and verifies as
Triton does, takes `TargetOptions` from switches (`--fp-contract=fast`, `--trap-unreachable`), and does not
inline; a text that defines more than one function goes through `opt` first, which inlines what is not marked
`noinline`, as Triton does before it generates code. Triton's switch for code that meets no NaN
(`NoNaNsFPMath`) was taken out of LLVM and of Triton after 3.5; it is not set.

The calls are Triton's own, as its releases 3.5 to 3.9 make them (`translateLLVMIRToASM` and
`createTargetMachine` of `python/src/llvm.cc`; `make_ptx`, `make_cubin`, `make_amdgcn` of each
`backends/*/compiler.py`): code generation alone, at the aggressive level, position independent, with traps
for what is unreachable; multiplications and additions are fused where the launch allows it. All that is
optimized or linked (libdevice, ocml) is so in the LLVM IR already. Two things are taken from the PTX that the
launch has: the ISA version in its header, and the processor.
"""

from __future__ import annotations

import re
import signal
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff import process
from irdiff.backends import amd, nvidia
from irdiff.config import Limits
from irdiff.model import Failure, FailureKind, Launch, Target
from irdiff.process import FROM_OUTSIDE, EndedCommand
from irdiff.resolve.tools import ENVIRONMENT, Tool
from irdiff.store import sha256_of_file

_HEADER = re.compile(r"^\.version (\d+)\.(\d+)\n\.target (\w+)", re.M)
_OLD_AMD = re.compile(r"gfx1[12]")
_MAX_PTX = ((3, 7), 90, 86)
"""Triton asks LLVM for no newer PTX than this, from 3.7 on and before."""
_MAD_WIDE_SINCE = (3, 7)
_TRUE16_UNTIL = (3, 8)
_ALLOCATION_SINCE = (3, 7)
_CHECKED_SINCE = (3, 8)


@dataclass(frozen=True, kw_only=True)
class LlvmCall:
    """What LLVM is asked for: all that its result depends on, apart from the text."""

    triple: str
    processor: str
    fuses: bool
    features: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Switches of LLVM's, without dashes."""
    newest_isa: int | None = None
    """The newest PTX that may be written, as 86 for 8.6."""
    header: tuple[str, str] | None = None
    """What Triton writes over the `.version` and `.target` of PTX."""


def llvm_call(launch: Launch, target: Target, version: str, ptx: str | None) -> LlvmCall:
    """As Triton `version` calls LLVM for a launch, whose PTX is given where it is NVIDIA's.

    Raises ValueError where that PTX has no header.
    """
    release = _release(version)
    fuses = _fuses(launch)
    if target.backend != nvidia.NAME:
        arch = str(target.arch)
        features = ("-real-true16",) if _OLD_AMD.match(arch) and release <= _TRUE16_UNTIL else ()
        return LlvmCall(triple="amdgcn-amd-amdhsa", processor=arch, features=features, fuses=fuses)
    found = _HEADER.search(ptx or "")
    if not found:
        raise ValueError("the PTX of the release has no header with its version and target")
    since, new, old_limit = _MAX_PTX
    flags = ["nvptx-short-ptr"]
    flags += ["nvptx-mad-wide-opt"] if release >= _MAD_WIDE_SINCE else []
    flags += ["nvptx-sched4reg"] if launch.options.get("sched4reg") == "True" else []
    return LlvmCall(
        triple="nvptx64-nvidia-cuda",
        processor=found[3],
        newest_isa=min(new if release >= since else old_limit, int(found[1] + found[2])),
        flags=tuple(flags),
        fuses=fuses,
        header=(f"{found[1]}.{found[2]}", found[3]),
    )


def ptxas_flags(launch: Launch, version: str, ptx: str) -> tuple[str, ...]:
    """As Triton `version` calls ptxas for a launch. Raises ValueError where the PTX has no header."""
    found = _HEADER.search(ptx)
    if not found:
        raise ValueError("the PTX has no header with its target")
    release, extra = _release(version), launch.options.get("ptx_options", "None")
    modes = launch.options.get("instrumentation_mode", "")
    checked = release >= _CHECKED_SINCE and any(mode in modes for mode in ("consan", "fpsan"))
    return (
        "-lineinfo",
        *(() if _fuses(launch) else ("--fmad=false",)),
        "-v",
        *(["--regAllocOptLevel=2"] if release >= _ALLOCATION_SINCE else []),
        *(extra.split(" ") if extra not in ("None", "") else ()),
        *(["--opt-level", "1"] if checked else []),
        f"--gpu-name={found[3]}",
    )


def as_triton_writes(ptx: str, call: LlvmCall) -> str:
    """PTX with Triton's own last changes: the header, and no debug flag, which would keep ptxas from
    optimizing.
    """
    assert call.header is not None
    version, processor = call.header
    ptx = re.sub(r"\.version \d+\.\d+", f".version {version}", ptx)
    ptx = re.sub(r"\.target sm_\w+", f".target {processor}", ptx)
    return re.sub(r",\s*debug|debug,\s*", "", ptx)


def _fuses(launch: Launch) -> bool:
    return launch.options.get("enable_fp_fusion", "True") == "True"


def _release(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (99, 0)


_PTXAS_ENVIRONMENT = {"PATH": "/usr/bin:/bin"}
"""As the worker gives it: the length of the environment moves the heap of ptxas."""
_CHILD = Path(__file__).with_name("llvmlite_child.py")
_LOG_CHARACTERS = 4000


CHILD_DIGEST = sha256_of_file(_CHILD)
"""Of a program that no module imports."""


@dataclass(frozen=True, kw_only=True)
class Runner:
    """Runs tools, `jobs` at a time. Thread-safe."""

    limits: Limits
    cores: threading.BoundedSemaphore
    randomized: bool = False
    """Whether addresses differ from run to run."""

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
        """LLVM IR to assembly; with llvmlite, for AMD, to an object in `folder` too. Raises ToolFailed."""
        stage = nvidia.ASSEMBLY if call.header else amd.ASSEMBLY
        (folder / "kernel.ll").write_text(text, encoding="utf-8")
        ended = self.translate(tool, call, folder)
        if ended.code or unknown_processor(ended.stderr) or not (folder / "kernel.s").exists():
            raise failure_of(ended, tool.version, stage, self.limits.timeout_s)
        made = (folder / "kernel.s").read_text(encoding="utf-8", errors="replace")
        if unknown := unknown_intrinsics(made, tool.version):
            raise ToolFailed(Failure(kind=FailureKind.ERROR, stage=stage, message=unknown, stderr=unknown))
        return (as_triton_writes(made, call) if call.header else made).encode()

    def translate(self, tool: Tool, call: LlvmCall, folder: Path) -> EndedCommand:
        """`kernel.ll` to `kernel.s` in `folder`; with llvmlite, for AMD, to `kernel.o` too."""
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
        words += [_features(call), "" if call.header else "kernel.o", *call.flags]
        return self._run(words, folder, environment=environment)

    def link(self, tool: Tool, call: LlvmCall, folder: Path) -> bytes:
        """`kernel.s` of AMD, or `kernel.o`, to its machine code. Raises ToolFailed."""
        commands = [["ld.lld", "-shared", "kernel.o", "-o", "kernel.hsaco"]]
        if not (folder / "kernel.o").exists():
            words = ["llvm-mc", f"-triple={call.triple}", f"-mcpu={call.processor}"]
            words += [f"-mattr={','.join(call.features)}", "-filetype=obj", "kernel.s", "-o", "kernel.o"]
            commands.insert(0, words)
        for words in commands:
            ended = self._run(words, folder, tool.programs[words[0]])
            if ended.code:
                raise failure_of(ended, tool.version, amd.HSACO, self.limits.timeout_s)
        return (folder / "kernel.hsaco").read_bytes()

    def assemble(
        self, program: Path, name: str, text: bytes, flags: tuple[str, ...], folder: Path
    ) -> tuple[bytes, str]:
        """PTX to a cubin and the log, as the worker of a toolchain runs its ptxas. Raises ToolFailed."""
        (folder / "kernel.ptx").write_bytes(text)
        ended = self.run_ptxas(program, flags, folder)
        if ended.code or not (folder / "kernel.cubin").exists():
            raise failure_of(ended, name, nvidia.CUBIN, self.limits.timeout_s)
        log = ended.stderr.decode(errors="replace")[-_LOG_CHARACTERS:]
        return (folder / "kernel.cubin").read_bytes(), log

    def run_ptxas(self, program: Path, flags: tuple[str, ...], folder: Path) -> EndedCommand:
        """`kernel.ptx` to `kernel.cubin` in `folder`."""
        words = ["ptxas", *flags, "kernel.ptx", "-o", "kernel.cubin"]
        return self._run(words, folder, program, environment=_PTXAS_ENVIRONMENT)


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
    return ",".join((*call.features, *((f"+ptx{call.newest_isa}",) if call.newest_isa else ())))


_LOCATED = re.compile(r"\S+?:(\d+):(\d+): error: ([^\n]*)\n([^\n]*)")
_INTRINSIC = re.compile(r"Intrinsic has incorrect (?:argument|return) type!\n[^\n]*@(llvm\.[\w.]+)")
_BROKEN = "Broken module found"
_CALLED = re.compile(r"call [^@\n]*@(llvm\.[\w.]+)\(")
_PROCESSOR = re.compile(r"'(\S+)' is not a recognized processor")
_PTX_ERROR = re.compile(r"^ptxas [^\n]*?(?:error|fatal)\s*:\s*([^\n]*)", re.M)
_TOKEN = re.compile(r"[\w.@%#!\"$-]+(?:\([^()]*\))?|\S")
_UNKNOWN_GPU = "is not defined for option 'gpu-name'"
_OUT_OF_MEMORY = ("bad_alloc", "out of memory", "Cannot allocate memory")
_STDERR_CHARACTERS = 6000
_STACK = "PLEASE submit a bug report"
"""What follows is the stack of LLVM, with addresses."""
_UNKNOWN_INTRINSIC = re.compile(r"\.extern \.func\s+(?:\([^)]*\)\s*)?(llvm\.[\w.]+)")


TRANSIENT = frozenset({FailureKind.TIMEOUT, FailureKind.MEMORY})
"""What another time may cure."""


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


def unknown_intrinsics(text: str, tool: str) -> str:
    """Why PTX is not valid: it calls intrinsics that the LLVM does not know. Empty where it is valid."""
    names = list(dict.fromkeys(_UNKNOWN_INTRINSIC.findall(text)))
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{tool} does not know {names[0]}{more}" if names else ""


def _reason(ended: EndedCommand, text: str, tool: str, timeout_s: float) -> tuple[FailureKind, str]:
    if ended.timed_out:
        return FailureKind.TIMEOUT, f"{tool}: no result after {timeout_s:g} s"
    if any(word in text for word in _OUT_OF_MEMORY) or -ended.code in FROM_OUTSIDE:
        return FailureKind.MEMORY, f"{tool}: out of memory, or ended from outside"
    processor = unknown_processor(ended.stderr)
    if processor or _UNKNOWN_GPU in text:
        return FailureKind.UNSUPPORTED, f"{tool} does not know the processor {processor or ''}".strip()
    return (FailureKind.CRASH if ended.code < 0 else FailureKind.ERROR), f"{tool} {_cause(text)}"


def _cause(text: str) -> str:
    """What the tool did, in words that follow its name."""
    if intrinsic := _INTRINSIC.search(text):
        return f"knows {intrinsic[1]} with other arguments"
    if located := _LOCATED.search(text):
        return f"cannot read {_construct(located)}"
    if said := _PTX_ERROR.search(text):
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
