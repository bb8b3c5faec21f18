"""Line counts in lcov's text form, as `llvm-cov export -format=lcov` writes them.

`SF:` names a file, `DA:LINE,COUNT` one of its lines that holds code; a file may be there more than once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_COUNT = re.compile(r"DA:(\d+),(\d+)")


def counts(lines: Iterable[str]) -> dict[str, dict[int, int]]:
    """By file and line how often it ran. Raises ValueError for what is no such text."""
    found: dict[str, dict[int, int]] = {}
    file: dict[int, int] | None = None
    for line in lines:
        if line.startswith("SF:"):
            file = found.setdefault(line[3:].rstrip("\n"), {})
        elif line.startswith("end_of_record"):
            file = None
        elif line.startswith("DA:"):
            row = _COUNT.match(line)
            if row is None or file is None:
                raise ValueError(f"no line count of a file: {line[:80]!r}")
            number = int(row[1])
            file[number] = file.get(number, 0) + int(row[2])
    return found
