"""What uv says of an installation, as one line: how much is to be downloaded, how far it is, until when."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_DOWNLOAD = re.compile(r"^Downloading (\S+) \(([\d.]+)([KMG])iB\)$")
_DOWNLOADED = re.compile(r"^Downloaded (\S+)$")
_STEP = re.compile(r"^(Prepared|Installed) \d+ packages?")
_MIB = {"K": 1 / 1024, "M": 1.0, "G": 1024.0}

Tell = Callable[[str], None]
_tell: ContextVar[Tell | None] = ContextVar("tell", default=None)


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Whatever is installed within the block, by this thread, is told of."""
    token = _tell.set(tell)
    try:
        yield
    finally:
        _tell.reset(token)


def say(text: str) -> None:
    """Tells whoever waits for what is installed, where somebody does."""
    if tell := _tell.get():
        tell(text)


class InstallProgress:
    """Follows the lines of one uv. Small packages are not announced by uv, and count for nothing."""

    def __init__(self, label: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._label, self._clock, self._tell = label, clock, _tell.get()
        self._sizes: dict[str, float] = {}
        self._done: set[str] = set()
        self._begin = clock()

    def line(self, line: str) -> None:
        if self._tell is None:
            return
        if found := _DOWNLOAD.match(line):
            self._begin = self._begin if self._sizes else self._clock()
            self._sizes[found[1]] = float(found[2]) * _MIB[found[3]]
            self._tell(f"installing {self._label}: {self._far()}")
        elif (found := _DOWNLOADED.match(line)) and found[1] in self._sizes:
            self._done.add(found[1])
            self._tell(f"installing {self._label}: {self._far()}{self._left()}")
        elif found := _STEP.match(line):
            step = "unpacked" if found[1] == "Prepared" else "in place, compiling its byte code"
            self._tell(f"installing {self._label}: {step}")

    def _far(self) -> str:
        downloaded = sum(self._sizes[name] for name in self._done)
        return f"downloaded {downloaded:.0f}/{sum(self._sizes.values()):.0f} MiB"

    def _left(self) -> str:
        done = sum(self._sizes[name] for name in self._done)
        left = sum(self._sizes.values()) - done
        passed_s = self._clock() - self._begin
        return f", about {left * passed_s / done:.0f} s left" if left > 0 and done > 0 else ""
