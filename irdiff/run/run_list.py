"""Lists the runs of a cache, and finds the one that a user names: by its path, `last`, or the name of its
folder or a unique beginning of it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError

from irdiff.adapters import adapter
from irdiff.errors import RunFolderError
from irdiff.model import Revision, Summary
from irdiff.run import run_folder
from irdiff.store import write_whole

LAST = "last"
_COMPARE = "make one: irdiff compare triton==3.8.0 triton==3.9.0"
_SHOWN = 12
_FEWEST_PARTS = 2
"""Parts of a name: the day and the time. With fewer, the name could soon mean another run too."""


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    name: str
    path: Path
    written: float
    """Seconds since 1970."""
    size_bytes: int


@dataclass(frozen=True, kw_only=True)
class Outline:
    """The entry of a run in a list. It is read without the cases, so that a list of many runs is quick."""

    created: str
    base: Revision
    head: Revision
    summary: Summary
    groups: tuple[object, ...]


def listed(runs: Path) -> list[ListedRun]:
    """Puts the newest first."""
    listed_runs = [_listed(path) for path in runs.glob("*/run.json")]
    return sorted(listed_runs, key=lambda run: (run.written, run.name), reverse=True)


def _listed(path: Path) -> ListedRun:
    folder = path.parent
    size = sum(status.st_size for status in map(Path.lstat, _files(folder)))
    return ListedRun(name=folder.name, path=folder, written=path.stat().st_mtime, size_bytes=size)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.rglob("*") if not path.is_symlink() and path.is_file())


def outline(run: ListedRun) -> Outline | str:
    """Returns the outline, or in a sentence why the run cannot be read."""
    try:
        content = run_folder.read_file(run.path, ("run.json",), run_folder.MAX_RUN_JSON_BYTES)
        return adapter(Outline).validate_json(content)
    except RunFolderError as error:
        return error.what
    except ValidationError:
        return "made by another irdiff: compare again"


def find(text: str, runs: Path) -> Path:
    """Raises RunFolderError with similar names."""
    if text == LAST:
        return _last(runs)
    if text and Path(text).exists():
        return Path(text)
    names = sorted(path.parent.name for path in runs.glob("*/run.json"))
    matching = [name for name in names if text and name.startswith(text)]
    if text in names or len(matching) == 1:
        return runs / (text if text in names else matching[0])
    if matching:
        shown = "\n    ".join([*matching[-_SHOWN:], *(["…"] if len(matching) > _SHOWN else [])])
        raise RunFolderError(
            f"{len(matching)} runs begin with {text[:200]!a}:\n    {shown}", hint="write more of one of them"
        )
    raise _unknown(text, names)


def remember(folder: Path, runs: Path) -> None:
    """Makes `last` mean a run that was just written, in the current folder and below. Raises OSError."""
    write_whole(runs / _pointer(Path.cwd()), os.fsencode(folder.resolve()))


def _pointer(place: Path) -> str:
    """Returns the name of the file that holds the path of the last run of a folder."""
    return f".last-{hashlib.sha256(os.fsencode(place)).hexdigest()[:16]}"


def _last(runs: Path) -> Path:
    """Returns the last run of the current folder, or of the nearest one above."""
    here = Path.cwd()
    pointers = (runs / _pointer(place) for place in (here, *here.parents))
    pointer = next(filter(Path.is_file, pointers), None)
    if pointer is None:
        reason = "no run was made in this folder, or in one above it"
    else:
        folder = Path(os.fsdecode(pointer.read_bytes()))
        if (folder / "run.json").is_file():
            return folder
        reason = f"the last run of this folder was written to {folder}, which no longer exists"
    others = listed(runs)
    newest = others and call_of(others[0].path, runs)
    hint = f"name one in place of `last`: {newest} is the newest, `irdiff runs` lists all"
    raise RunFolderError(reason, hint=hint if others else _COMPARE)


def _unknown(text: str, names: Sequence[str]) -> RunFolderError:
    near = get_close_matches(text, [*names, LAST], n=1)
    if not near:  # the names are long: a part of one is as good
        near = [name for name in names if text and text in name][-1:]
    hint = f"did you mean {near[0]}? `irdiff runs` lists all" if near else "`irdiff runs` lists the runs"
    reason = f"{text[:200]!a} is neither a folder nor a file, and no run has this name"
    return RunFolderError(reason, hint=hint if names else _COMPARE)


def call_of(path: Path, runs: Path) -> str:
    """Returns the shortest word by which commands find the run again, even if `last` then means another run.

    In the list this is a beginning of its name that no other run has, else its path, relative if below the
    current folder.
    """
    if path.is_dir() and path.parent.resolve() == runs.resolve() and path.name != LAST:
        others = [
            run_file.parent.name for run_file in runs.glob("*/run.json") if run_file.parent.name != path.name
        ]
        return _beginning(path.name, others)
    here = Path.cwd().resolve()
    whole = path.resolve()
    return str(whole.relative_to(here)) if whole.is_relative_to(here) and whole != here else str(whole)


def _beginning(name: str, others: Sequence[str]) -> str:
    parts = name.split("-")
    for count in range(_FEWEST_PARTS, len(parts)):
        text = "-".join(parts[:count])
        if not Path(text).exists() and not any(other.startswith(text) for other in others):
            return text
    return name
