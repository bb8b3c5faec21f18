"""Says why a program of a repository ended early, in one sentence: its file, the error, and the line. A
traceback goes through irdiff's worker, then the program, then its callees. The first file of the repository
is the program, the last one has the error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from irdiff.model import Failure
from irdiff.words import shortened

ENDED_EARLY = "EndedEarly: "
"""Prefix of an error of the program's own (`worker.run_program`)."""
FRAME = re.compile(r'^\s*File "([^"]+)", line (\d+)', re.MULTILINE)
"""A line of a traceback: its file and line number."""
NOT_THE_PROGRAMS = ("<frozen", "importlib/", "site-packages/", "irdiff/worker/")
"""In the paths of frames that belong to no program."""
_RUNS_IT = ("<frozen runpy>", "irdiff/worker/run_program.py")
_MAX_MESSAGE = 140


@dataclass(frozen=True, kw_only=True)
class ProgramFailure:
    program: str
    """Its path in the repository, or its name if no line of it was reached."""
    reason: str
    """The error and its line: `ImportError: no module k, line 2`."""
    path: str
    """The file with that line; empty if no line of the repository was reached."""
    line: int


def of(failure: Failure, workload: str) -> ProgramFailure:
    message = shortened(failure.message.removeprefix(ENDED_EARLY), _MAX_MESSAGE)
    frames = [
        (path, number)
        for path, number in FRAME.findall(failure.stderr)
        if not path.startswith("/") and not any(part in path for part in NOT_THE_PROGRAMS)
    ]
    if not frames:
        return ProgramFailure(program=workload.partition("/")[2], reason=message, path="", line=0)
    program, (path, number) = frames[0][0], frames[-1]
    place = f"line {number}" if path == program else f"{path} line {number}"
    return ProgramFailure(program=program, reason=f"{message}, {place}", path=path, line=int(number))


def own_traceback(stderr: str) -> list[str]:
    """Omits the frames of irdiff and Python that run the program."""
    lines: list[str] = []
    is_own = True
    for line in stderr.splitlines():
        if frame := FRAME.match(line):
            is_own = not any(part in frame[1] for part in _RUNS_IT)
        elif not line.startswith("    "):  # the quoted source is indented by more than its frame
            is_own = True
        if is_own:
            lines.append(line)
    return lines
