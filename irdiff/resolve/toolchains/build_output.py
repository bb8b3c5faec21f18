"""Reads the output of a native build: its progress as one line, its first errors and a likely cure."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence

from irdiff.resolve.toolchains import environments

_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)")
_FEWEST = 6
"""How many compilations must have ended before the remaining time is estimated."""
_SHOWN_CHARACTERS = 48

_ERROR = re.compile(
    r"\berror[: ]|CMake Error|^FAILED|\bfatal\b|Error:|undefined (?:reference|symbol)|No space left|Killed",
    re.IGNORECASE,
)
_PARAGRAPH_LINES = 6
_MAX_LINES = 12
_MAX_CHARACTERS = 240
_CAUSES = (
    (r"No space left", "free space, or name another cache folder: --cache DIR"),
    (r"Killed signal|signal: Killed|^Killed|bad_alloc", "out of memory: fewer jobs, MAX_JOBS=2"),
    (
        r"(?i)urlopen|URLError|HTTPError|resolve host|name resolution|offline build",
        "the build wants a network",
    ),
    (
        r"fatal error: '?(?:llvm|mlir|lld)/|(?i:could not find.*(?:MLIR|LLVM|LLD)\b)",
        "LLVM_SYSPATH must name an LLVM of the checkout's pin, with MLIR and lld",
    ),
    (
        r"fatal error: '?(?P<name>[\w./-]+)'?(?:: No such| file not)",
        "install the development package with {name}",
    ),
    (r"undefined symbol: (?P<name>\S+)", "nothing that was linked defines {name}"),
)
"""Patterns in the output of a build, and what to try. The first match explains later ones."""


class BuildOutput:
    def __init__(self, label: str) -> None:
        self.lines: list[str] = []
        self._label, self._begin_s = label, time.monotonic()
        self._first: tuple[float, int] | None = None
        """When the first file was compiled, and its number: tables of operations take no time."""

    def on_line(self, line: str) -> None:
        self.lines.append(line)
        step = _STEP.match(line)
        if step is None:
            return
        done, total, now_s = int(step[1]), int(step[2]), time.monotonic()
        if self._first is None and step[3].startswith("Building C"):
            self._first = now_s, done
        left = ""
        if self._first and (compiled := done - self._first[1]) >= _FEWEST:
            left = f", about {duration((now_s - self._first[0]) * (total - done) / compiled)} left"
        took = duration(now_s - self._begin_s)
        environments.show_progress(
            f"{self._label}: native build {done}/{total}, {took}{left}: {step[3][-_SHOWN_CHARACTERS:]}"
        )


def duration(seconds: float) -> str:
    """`45 s`, `2 min 05 s`, `1 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def first_errors(lines: Sequence[str]) -> list[str]:
    """Falls back to the last lines if no line names an error."""
    errors: dict[str, None] = {}
    following = 0
    for line in lines:
        # what CMake complains of stands in the paragraph below its first line
        following = _PARAGRAPH_LINES if line.startswith("CMake Error") else following - 1
        if line.strip() and (_ERROR.search(line) or following > 0):
            errors[line.strip()[:_MAX_CHARACTERS]] = None
    return list(errors)[:_MAX_LINES] or [line[:_MAX_CHARACTERS] for line in lines[-8:]]


def what_to_try(lines: Sequence[str], revision: str) -> str:
    text = "\n".join(lines[-1500:])
    for pattern, hint in _CAUSES:
        if match := re.search(pattern, text, re.MULTILINE):
            return hint.format(**match.groupdict())
    return f"`irdiff toolchain doctor {revision}` checks what a build needs; the log has all of it"
