"""How a tool ended on one text: what it made, or why it made nothing, in words that name the construct."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.model import Failure, FailureKind
from irdiff.process import FROM_OUTSIDE, EndedCommand

_LOCATED = re.compile(r"\S+?:(\d+):(\d+): error: ([^\n]*)\n([^\n]*)")
_LLVMLITE_LOCATED = re.compile(r"<string>:(\d+):(\d+): error: ([^\n]*)\n([^\n]*)")
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


@dataclass(frozen=True, kw_only=True)
class Made:
    """What came of one text."""

    outputs: Mapping[str, bytes]
    """By stage."""
    log: str
    notes: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class NotMade:
    failure: Failure
    curable: bool
    """As of `model.Failed`."""


def failure_of(ended: EndedCommand, tool: str, stage: str, timeout_s: float) -> NotMade:
    """Why a tool gave no result."""
    text = (ended.stderr + ended.stdout).decode(errors="replace").partition(_STACK)[0].strip()
    kind, message = _reason(ended, text, tool, timeout_s)
    number = -ended.code if ended.code < 0 and not ended.timed_out else 0
    failure = Failure(
        kind=kind,
        stage=stage,
        message=message,
        signal=signal.Signals(number).name if number else None,
        stderr=text[:_STDERR_CHARACTERS],
    )
    return NotMade(failure=failure, curable=kind in (FailureKind.TIMEOUT, FailureKind.MEMORY))


def unknown_processor(stderr: bytes) -> str | None:
    """The processor that an LLVM has gone on without: its code is then for another one."""
    found = _PROCESSOR.search(stderr.decode(errors="replace"))
    return found[1] if found else None


def unknown_intrinsics(text: str, tool: str) -> str:
    """Why the PTX of an LLVM is none, which calls intrinsics that it does not know; empty where it is one."""
    names = list(dict.fromkeys(_UNKNOWN_INTRINSIC.findall(text)))
    more = f" (and {len(names) - 1} more)" if len(names) > 1 else ""
    return f"{tool} does not know {names[0]}{more}" if names else ""


def error_of(stage: str, message: str, stderr: str = "") -> Failure:
    return Failure(kind=FailureKind.ERROR, stage=stage, message=message, signal=None, stderr=stderr)


def _reason(ended: EndedCommand, text: str, tool: str, timeout_s: float) -> tuple[FailureKind, str]:
    if ended.timed_out:
        return FailureKind.TIMEOUT, f"{tool}: no result after {timeout_s:g} s"
    if any(word in text for word in _OUT_OF_MEMORY) or -ended.code in FROM_OUTSIDE:
        return FailureKind.MEMORY, f"{tool}: out of memory, or ended from outside"
    processor = unknown_processor(ended.stderr)
    if processor or _UNKNOWN_GPU in text:
        return FailureKind.UNSUPPORTED, f"{tool} does not know the processor {processor or ''}".strip()
    return (FailureKind.CRASH if ended.code < 0 else FailureKind.ERROR), f"{tool} {_told(text)}"


def _told(text: str) -> str:
    """What the tool does, in words that follow its name."""
    if intrinsic := _INTRINSIC.search(text):
        return f"knows {intrinsic[1]} with other arguments"
    if located := _LLVMLITE_LOCATED.search(text) or _LOCATED.search(text):
        return f"cannot read {_construct(located)}"
    if said := _PTX_ERROR.search(text):
        return f"says: {said[1]}"
    if _BROKEN in text and (named := _CALLED.search(text)):
        return f"takes calls of {named[1]} for broken IR"
    telling = [line for line in text.splitlines() if "LLVM ERROR" in line or "error:" in line]
    first = (telling or text.splitlines() or ["nothing before it ended"])[0]
    return f"says: {first.strip()[:300]}"


def _construct(located: re.Match[str]) -> str:
    """The word at the place that the reader of LLVM points to, and what it says of it."""
    column, said, line = int(located[2]), located[3], located[4]
    at = _TOKEN.match(line, max(0, column - 1))
    word = at.group() if at else line.strip()[:40]
    return f"`{word}`: {said} (line {located[1]})"
