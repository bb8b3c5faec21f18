"""How far the changes of a repository reach, in a sentence: what was not read was not compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from irdiff.model import ChangedFile, Reach, Run
from irdiff.words import counted, first_few

_SHOWN = 4
_NAMED = 3


def missed(run: Run) -> bool:
    """Whether Python files changed, and no launch reads one of the files that changed."""
    files = run.reach.files if run.reach else ()
    return any(file.path.endswith(".py") for file in files) and not any(file.read_by for file in files)


def gaps(run: Run) -> list[str]:
    """`2 changed functions ran in no launch: gemm, rope`: code that changed and was not compared."""
    files = [file for file in run.reach.files if file.path.endswith(".py")] if run.reach else []
    idle = [name for file in files for name in file.not_run]
    unread = [PurePosixPath(file.path).name for file in files if not file.read_by]
    return [
        f"{counted(len(names), what)} {verb}: {first_few(names, _NAMED)}"
        for names, what, verb in (
            (idle, "changed function", "ran in no launch"),
            (
                unread,
                "changed file",
                "was read by no launch" if len(unread) == 1 else "were read by no launch",
            ),
        )
        if names
    ]


def read(run: Run) -> int:
    """How many changed files of the repository the launches read."""
    return sum(file.read_by > 0 for file in run.reach.files) if run.reach else 0


def sentence(run: Run) -> str:
    """`changed files: 3; 2 are read by 41 cases; kernels/rope.py is read by none: not compared`, or
    nothing.
    """
    launching = {f"{case.workload}.py" for case in run.cases}
    return _sentence(run.reach, launching) if run.reach and run.reach.files else ""


def _sentence(reach: Reach, launching: Collection[str]) -> str:
    """`launching` are the files of workloads, which call kernels and need not hold any."""
    read = [file for file in reach.files if file.read_by]
    unread = [file for file in reach.files if not file.read_by]
    parts = [f"changed files: {len(reach.files)}"]
    if read:
        parts.append(f"{_are(len(read))} read by {counted(reach.read_by, 'case')}")
    only_read = [
        file
        for file in read
        if file.path.endswith(".py")
        and not file.compiled_by
        and PurePosixPath(*PurePosixPath(file.path).parts[-2:]).as_posix() not in launching
    ]
    if only_read:
        parts.append(f"of {_names(only_read)} no launch compiles a function")
    idle = [f"{name} ({file.path})" for file in read for name in file.not_run]
    if idle:
        parts.append(f"no launch runs {first_few(idle, _SHOWN)}, which changed: not compared")
    if unread:
        parts.append(f"{_names(unread)} {'is' if len(unread) == 1 else 'are'} read by none: not compared")
    return "; ".join(parts)


def _are(count: int) -> str:
    return "1 is" if count == 1 else f"{count} are"


def _names(files: Sequence[ChangedFile]) -> str:
    """The names of the files, Python files first."""
    paths = sorted((file.path for file in files), key=lambda path: (not path.endswith(".py"), path))
    if 1 < len(paths) <= _SHOWN:
        return f"{', '.join(paths[:-1])} and {paths[-1]}"
    return first_few(paths, _SHOWN)
