"""What a build says of itself, as one line: how far, since when, until when, and what the cache saved."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)")
_COMPILES = re.compile(r"Building C\w* object ")
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")
_WINDOW = 40
_FEWEST = 6
"""So many compilations must have ended before anything is said of the rest."""
_FILE_CHARACTERS = 48


@dataclass(frozen=True, kw_only=True)
class CacheCounts:
    """Calls of the compiler cache."""

    hits: int
    misses: int


class BuildProgress:
    """Follows the output of ninja. What comes before the first compilation tells nothing of the rest."""

    def __init__(
        self,
        label: str,
        tell: Callable[[str], None],
        statistics: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._tell, self._statistics, self._clock = label, tell, statistics, clock
        self._begin = clock()
        self._ends: deque[tuple[float, int]] = deque(maxlen=_WINDOW)
        self._done, self._all, self._what = 0, 0, ""
        self.cache = CacheCounts(hits=0, misses=0)
        self._read_bytes = 0

    def on_line(self, line: str) -> None:
        if step := _STEP.match(line):
            self._done, self._all, self._what = int(step[1]), int(step[2]), step[3]
            if _COMPILES.match(step[3]):
                self._ends.append((self._clock(), self._done))
            self.on_tick()

    def on_tick(self) -> None:
        if not self._all:
            return  # it configures: a few seconds
        self._read_statistics()
        parts = [f"{self._done}/{self._all}", duration(self._clock() - self._begin)]
        left = self.left_s()
        if left is not None:
            parts.append(f"about {duration(left)} left")
        if self.cache.hits or self.cache.misses:
            parts.append(f"ccache {self.cache.hits} of {self.cache.hits + self.cache.misses} hits")
        self._tell(f"{self._label}: native build {', '.join(parts)}: {_short(self._what)}")

    def left_s(self) -> float | None:
        """Seconds until the end at the pace of the last compilations; None where that is not known yet."""
        if len(self._ends) < _FEWEST:
            return None
        (first_s, first), (last_s, last) = self._ends[0], self._ends[-1]
        waited_s = self._clock() - last_s
        if last == first:
            return None
        pace_s = (last_s - first_s) / (last - first)
        return max(0.0, pace_s * (self._all - self._done) - min(waited_s, pace_s))

    def _read_statistics(self) -> None:
        """The statistics log of ccache has one line of result for each call, after one with the source."""
        try:
            with self._statistics.open("rb") as file:
                file.seek(self._read_bytes)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._read_bytes += len(whole)
        words = whole.decode(errors="replace").split("\n")
        self.cache = CacheCounts(
            hits=self.cache.hits + sum(word in _HITS for word in words),
            misses=self.cache.misses + words.count("cache_miss"),
        )


def duration(seconds: float) -> str:
    """`45 s`, `2 min 05 s`, `1 h 10 min`."""
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def _short(what: str) -> str:
    """The end of a path tells files apart, its beginning does not."""
    last = (what.split() or [""])[-1].removesuffix(".o")
    if "/" not in last:
        return what[:_FILE_CHARACTERS]
    if len(last) <= _FILE_CHARACTERS:
        return last
    end = last[-_FILE_CHARACTERS:]
    return "…/" + end.partition("/")[2] if "/" in end else f"…{end}"
