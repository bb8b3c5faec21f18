"""What a run must say of how kernels are launched, which is not in their code. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from irdiff.model import Case, Launch, Pair, Run, Sides, Verdict
from irdiff.words import counted, first_few

_RUNTIME = "the runtime differs between base and head"
_FOLDERS = {"cuda": "nvidia", "hip": "amd"}
"""By the name of a target's backend, its folder in Triton."""
_SHOWN = 4


def notes(runtimes: Sides[Mapping[str, str]], backends: Collection[str]) -> tuple[str, ...]:
    """A note where what runs between `kernel[grid]` and the driver differs: it is part of no artifact.

    runtimes: the digest of each file by its name. backends: of the targets that anything is launched for.
    """
    base, head = runtimes
    differing = sorted(name for name in {*base, *head} if base.get(name) != head.get(name))
    others = {folder for backend, folder in _FOLDERS.items() if backend not in backends}
    read = [name for name in differing if not any(f"triton/backends/{row}/" in name for row in others)]
    if not read:
        return ()
    return (
        f"{_RUNTIME} ({first_few(read, _SHOWN)}): what it does at a launch, the filling of TMA descriptors "
        "included, was not compared",
    )


def differ(run: Run) -> bool:
    """Whether a note of the run says that the runtime differs."""
    return any(note.startswith(_RUNTIME) for note in run.notes)


def grids(pairs: Iterable[Pair]) -> Iterator[str]:
    """A note where base and head launch with another grid: how often a kernel runs is not in its code."""
    found = [
        pair.id
        for pair in pairs
        if isinstance(pair.base, Launch) and isinstance(pair.head, Launch) and _is_other(pair.base, pair.head)
    ]
    if found:
        yield f"{counted(len(found), 'case')} launched with another grid: {first_few(found, _SHOWN)}"


def launched_otherwise(run: Run) -> int:
    """Cases with another grid whose code did not change: their verdict does not say so."""
    same = (case for case in run.cases if case.verdict in (Verdict.UNCHANGED, Verdict.ABSORBED))
    return sum(_has_other_grid(case, run) for case in same)


def _has_other_grid(case: Case, run: Run) -> bool:
    base, head = (run.launches.get(key or "") for key in case.launches)
    return base is not None and head is not None and _is_other(base, head)


def _is_other(base: Launch, head: Launch) -> bool:
    """Whether both grids are known, and differ."""
    return base.grid is not None and head.grid is not None and base.grid != head.grid
