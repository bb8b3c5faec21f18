"""The progress of a build in one line: steps, time passed, time left, hits of the compiler cache."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

_STEP = re.compile(r"^\[(\d+)/(\d+)\]\s+(.*)")
_COMPILES = re.compile(r"Building C\w* object ")
_HIT = re.compile(r"^(?:direct|preprocessed)_cache_hit$", re.MULTILINE)
_MISS = re.compile(r"^cache_miss$", re.MULTILINE)
_WINDOW = 40
_FEWEST = 6
"""So many compilations must have ended before the time left is estimated."""
_SHOWN_CHARACTERS = 48


class BuildProgress:
    """Follows the output of ninja and the statistics log of ccache."""

    def __init__(
        self,
        label: str,
        tell: Callable[[str], None],
        statistics: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._label, self._tell, self._statistics, self._clock = label, tell, statistics, clock
        self._begin_s = clock()
        self._compiled: deque[tuple[float, int]] = deque(maxlen=_WINDOW)
        self._done, self._all, self._what = 0, 0, ""

    def on_line(self, line: str) -> None:
        if step := _STEP.match(line):
            self._done, self._all, self._what = int(step[1]), int(step[2]), step[3]
            if _COMPILES.match(step[3]):
                self._compiled.append((self._clock(), self._done))
            self.on_tick()

    def on_tick(self) -> None:
        if not self._all:
            return  # it configures: a few seconds
        parts = [f"{self._done}/{self._all}", duration(self._clock() - self._begin_s)]
        if (left_s := self.left_s()) is not None:
            parts.append(f"about {duration(left_s)} left")
        parts += self._cache()
        self._tell(f"{self._label}: native build {', '.join(parts)}: {self._what[-_SHOWN_CHARACTERS:]}")

    def left_s(self) -> float | None:
        """Seconds until the end at the pace of the last compilations; None where that is not known yet."""
        if len(self._compiled) < _FEWEST:
            return None
        (first_s, first), (last_s, last) = self._compiled[0], self._compiled[-1]
        pace_s = (last_s - first_s) / (last - first)
        waited_s = self._clock() - last_s
        return max(0.0, pace_s * (self._all - self._done) - min(waited_s, pace_s))

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
    whole = int(seconds + 0.5)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
