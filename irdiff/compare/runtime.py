"""Triton's files that may run between `kernel[grid]` and the driver: where they differ they are shown."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from irdiff.backends import BACKENDS
from irdiff.model import RuntimeEdit, RuntimeFile, Sides
from irdiff.words import first_few

Runtime = Mapping[str, RuntimeFile]
MAX_LINES = 400
"""The most lines of the diff of one file."""
_MAX_SHOWN = 40
"""Files whose diff is kept."""
_AT_EACH_LAUNCH = re.compile(r"triton/(?:runtime|compiler|backends/[^/]+)/[^/]+$")
_SHOWN = 4


def edits(runtimes: Sides[Runtime], backends: Collection[str]) -> tuple[RuntimeEdit, ...]:
    """Differing files of the runtime. backends: those of the targets that anything is launched for."""
    names = differing(runtimes, backends)
    return tuple(
        RuntimeEdit(path=name, diff=_diff(*(side.get(name) for side in runtimes)) if n < _MAX_SHOWN else ())
        for n, name in enumerate(names)
    )


def differing(runtimes: Sides[Runtime], backends: Collection[str]) -> list[str]:
    """Names of files that differ, but for those of other backends; what every launch runs comes first."""
    base, head = ({name: file.digest for name, file in side.items()} for side in runtimes)
    others = {backend.FOLDER for name, backend in BACKENDS.items() if name not in backends}
    names = [
        name
        for name in {*base, *head}
        if base.get(name) != head.get(name)
        and not any(f"triton/backends/{folder}/" in name for folder in others)
    ]
    return sorted(names, key=lambda name: (not _AT_EACH_LAUNCH.match(name), not name.endswith(".py"), name))


def _diff(base: RuntimeFile | None, head: RuntimeFile | None) -> tuple[str, ...]:
    rows = difflib.unified_diff(_lines(base), _lines(head), lineterm="")
    hunks = list(islice(rows, 2, None))
    left_out = len(hunks) - MAX_LINES
    return (*hunks[:MAX_LINES], *([f"… {left_out} more lines"] if left_out > 0 else ()))


def _lines(file: RuntimeFile | None) -> list[str]:
    content = Path(file.path).read_bytes() if file else b""
    if b"\0" in content:
        return [f"a binary of {len(content)} bytes"]
    return content.decode("utf-8", errors="replace").splitlines()


def notes(edits: Sequence[RuntimeEdit]) -> Iterator[str]:
    if names := first_few([edit.path for edit in edits], _SHOWN):
        yield (
            "the runtime differs, and what it does at a launch, such as filling TMA descriptors, was not "
            f"compared; irdiff diff RUN shows the lines that differ. Files: {names}"
        )
