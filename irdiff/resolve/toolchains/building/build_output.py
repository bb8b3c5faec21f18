"""What a native build prints: its progress in one line; its first errors, with their likely cure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from irdiff.resolve.toolchains.environments import ShowProgress

_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)")
_HIT = re.compile(r"^(?:direct|preprocessed)_cache_hit$", re.MULTILINE)
_MISS = re.compile(r"^cache_miss$", re.MULTILINE)
_FEWEST = 6
"""So many compilations must have ended before the time left is estimated."""
_SHOWN_CHARACTERS = 48

_ERROR = re.compile(
    r"\berror[: ]|CMake Error|^FAILED|\bfatal\b|Error:|undefined (?:reference|symbol)|No space left|Killed",
    re.IGNORECASE,
)
_PARAGRAPH_LINES = 6
_MAX_LINES = 12
_MAX_CHARACTERS = 240
_ANOTHER_LLVM = "LLVM_SYSPATH is not of the checkout's pin: take an LLVM that is, or a revision that fits it"
_CAUSES = (
    (r"No space left", "free space, or name another cache folder: --cache DIR"),
    (r"Killed signal|signal: Killed|^Killed|bad_alloc", "out of memory: fewer jobs, MAX_JOBS=2"),
    (
        r"(?i)urlopen|URLError|HTTPError|resolve host|name resolution|offline build",
        "the build wants a network; LLVM_SYSPATH=DIR names an LLVM that is here, JSON_SYSPATH=DIR a JSON",
    ),
    (
        r"fatal error: '?(?P<name>(?:llvm|llvm-c|mlir|lld)/[\w./-]+)'?(?:: No such| file not)",
        "no {name}: " + _ANOTHER_LLVM,
    ),
    (
        r"fatal error: '?(?P<name>[\w./-]+)'?(?:: No such| file not)",
        "install the development package with {name}",
    ),
    (
        r"(?i)could not find.*(?:MLIR|LLVM|LLD)|find_package\((?:MLIR|LLD)",
        "LLVM_SYSPATH must name an LLVM with MLIR and lld: lib/cmake/mlir, lib/cmake/lld",
    ),
    (
        r"error: .*\[-Werror,?-?W?[\w+=-]*\]",
        "warnings are errors: TRITON_APPEND_CMAKE_ARGS=-DCMAKE_CXX_FLAGS=-w lets them pass",
    ),
    (
        r"undefined symbol: (?P<name>\S+)",
        "nothing that was linked defines {name}: MLIR's archives and a shared libLLVM do not fit together",
    ),
    (r"error: (?:no member named|no type named|use of undeclared|.* marked 'override' but)", _ANOTHER_LLVM),
)
"""What a build prints, and what to try; the first that is found explains those after it."""


class BuildOutput:
    """Follows the output of ninja and the statistics log of ccache."""

    def __init__(
        self,
        label: str,
        show: ShowProgress,
        statistics: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lines: list[str] = []
        self._label, self._show, self._statistics, self._clock = label, show, statistics, clock
        self._begin_s = clock()
        self._first: tuple[float, int] | None = None
        """When the first file was compiled, and its number: tables of operations take no time."""

    def on_line(self, line: str) -> None:
        self.lines.append(line)
        step = _STEP.match(line)
        if step is None:
            return
        done, total, now_s = int(step[1]), int(step[2]), self._clock()
        if self._first is None and step[3].startswith("Building C"):
            self._first = now_s, done
        parts = [f"{done}/{total}", duration(now_s - self._begin_s)]
        if self._first and (compiled := done - self._first[1]) >= _FEWEST:
            parts.append(f"about {duration((now_s - self._first[0]) * (total - done) / compiled)} left")
        parts += self._cache()
        self._show(f"{self._label}: native build {', '.join(parts)}: {step[3][-_SHOWN_CHARACTERS:]}")

    def _cache(self) -> list[str]:
        """The log has one line of result for each call of ccache."""
        try:
            text = self._statistics.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return []
        hits, misses = len(_HIT.findall(text)), len(_MISS.findall(text))
        return [f"ccache {hits} of {hits + misses} hits"] if hits + misses else []


def duration(seconds: float) -> str:
    """`45 s`, `2 min 05 s`, `1 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def first_errors(lines: Sequence[str]) -> list[str]:
    """The first lines of a failed build that name an error, or its last ones where none does."""
    errors: dict[str, None] = {}
    following = 0
    for line in lines:
        # what CMake complains of stands in the paragraph below its first line
        following = _PARAGRAPH_LINES if line.startswith("CMake Error") else following - 1
        if line.strip() and (_ERROR.search(line) or following > 0):
            errors[line.strip()[:_MAX_CHARACTERS]] = None
    return list(errors)[:_MAX_LINES] or [line[:_MAX_CHARACTERS] for line in lines[-8:]]


def what_to_try(lines: Sequence[str], revision: str) -> str:
    """The likely cure."""
    text = "\n".join(lines[-1500:])
    for pattern, hint in _CAUSES:
        if found := re.search(pattern, text, re.MULTILINE):
            return hint.format(**found.groupdict())
    return f"`irdiff toolchain doctor {revision}` checks what a build needs; the log has all of it"
