"""What a run must say of how kernels are launched, which is not in their code. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from irdiff.model import Case, Launch, Pair, Run, Verdict
from irdiff.words import counted, first_few

_LAUNCHER = "the launcher of "
_SHOWN = 4


def notes(base: Mapping[str, str], head: Mapping[str, str], backends: Iterable[str]) -> tuple[str, ...]:
    """One note for each backend whose launcher differs; `base` and `head` hold a digest by backend.

    The launcher is what passes a kernel its arguments: `driver.py`, `driver.c`. It is part of no artifact.
    """
    return tuple(
        f"{_LAUNCHER}{backend} (driver.py, driver.c) differs between base and head: what it does at a "
        "launch, the filling of TMA descriptors included, was not compared"
        for backend in dict.fromkeys(backends)
        if base.get(backend) != head.get(backend)
    )


def differ(run: Run) -> bool:
    """Whether a note of the run says that a launcher differs."""
    return any(note.startswith(_LAUNCHER) for note in run.notes)


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
