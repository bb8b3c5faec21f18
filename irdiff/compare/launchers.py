"""How kernels are launched, which is not in their code: notes for the run, and packed values. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from irdiff.model import Compiled, Run, Sides
from irdiff.words import first_few

_RUNTIME = "the runtime differs between base and head"
_FOLDERS = {"cuda": "nvidia", "hip": "amd"}
"""By the name of a target's backend, its folder in Triton."""
_SHOWN = 4


def notes(runtimes: Sides[Mapping[str, str]], backends: Collection[str]) -> tuple[str, ...]:
    """A note where what runs between `kernel[grid]` and the driver differs: it is part of no artifact.

    runtimes: the digest of each file by its name. backends: of the targets that anything is launched for.
    """
    names = first_few(_differing(runtimes, backends), _SHOWN)
    text = "what it does at a launch, the filling of TMA descriptors included, was not compared"
    return (f"{_RUNTIME} ({names}): {text}",) if names else ()


def _differing(runtimes: Sides[Mapping[str, str]], backends: Collection[str]) -> list[str]:
    """Names of files that differ, but for those of other backends."""
    base, head = runtimes
    others = {folder for backend, folder in _FOLDERS.items() if backend not in backends}
    return sorted(
        name
        for name in {*base, *head}
        if base.get(name) != head.get(name)
        and not any(f"triton/backends/{folder}/" in name for folder in others)
    )


def differ(run: Run) -> bool:
    """Whether a note of the run says that the runtime differs."""
    return any(note.startswith(_RUNTIME) for note in run.notes)


def packed_differs(
    both: Sides[Compiled], runtimes: Sides[Mapping[str, str]], backend: str
) -> tuple[str, ...]:
    """`packed` where the backends pack something else for the launcher.

    Launchers of two releases may take different things: values of another number are compared only where the
    launchers are the same files. Where they are not, the run's notes say that the runtime differs.
    """
    ours, theirs = (side.handed.get("packed") for side in both)
    if ours == theirs or None in (ours, theirs):
        return ()
    is_alike = isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs)
    return ("packed",) if is_alike or not _differing(runtimes, {backend}) else ()
