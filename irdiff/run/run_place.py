"""Checks where a run folder may be written: only an absent or empty folder, or a run, is ever replaced.

A run is recognized by its marker, a `run.json` that begins with irdiff's schema, and by having only irdiff's
files next to it. Everything else belongs to somebody and is refused before anything is compiled. It is
checked again when the run is written. The old run is removed file by file, by the names that a run has, so a
file that was added meanwhile stays.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from irdiff.errors import StoreError, UsageError
from irdiff.store.disk_space import NO_SPACE

_HINT = "name a folder that is not there yet: --out DIR"
_TRIED_BYTES = 64 << 10
_MARKER = re.compile(rb'\s*\{\s*"schema":\s*"irdiff-run/\d+"')
_FILES = re.compile(
    r"run\.json|timing\.json|failure\.json|timing-samples\.jsonl\.zst|artifacts/[0-9a-f]{2}/[0-9a-f]{62}"
)
_FOLDERS = re.compile(r"artifacts(/[0-9a-f]{2})?")


def check(folder: Path) -> None:
    """Raises UsageError if a run must not be written to `folder`, and says what is there."""
    place = _absolute(folder)
    if place.is_symlink():
        raise UsageError(f"{folder} is a symbolic link: a run replaces its folder", hint=_HINT)
    here, resolved = Path.cwd().resolve(), place.resolve()
    if resolved == here or resolved in here.parents:
        raise UsageError(f"{folder} is or holds the current folder: a run replaces its folder", hint=_HINT)
    for above in place.parents:
        if not above.exists():
            continue
        if not above.is_dir():
            raise UsageError(f"{above} is not a folder: no run can be written below it", hint=_HINT)
        if stranger_in(above) is None:
            raise UsageError(f"{folder} lies inside the run {above}", hint=_HINT)
    if not place.exists():
        return
    if not place.is_dir():
        raise UsageError(f"{folder} is there and is not a folder: it is left as it is", hint=_HINT)
    if place.is_mount():
        raise UsageError(f"{folder} is a mount point, which cannot be replaced", hint=f"--out {folder}/run")
    if _is_empty(place):
        return
    if stranger := stranger_in(place):
        raise UsageError(f"{folder} is not a run alone ({stranger}): it is left as it is", hint=_HINT)


def prepare(folder: Path) -> None:
    """Checks the folder, and whether it can be written at all, before anything is compiled."""
    try:
        check(folder)
        try_to_write(folder)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}", hint=_HINT) from error


def try_to_write(path: Path) -> None:
    """Writes a little next to `path`, or in the nearest existing folder above it. Permissions alone do not
    show a full or read-only disk. Raises StoreError if there is no space, and OSError.
    """
    above = next(folder for folder in _absolute(path).parents if folder.exists())
    try:
        with tempfile.NamedTemporaryFile(dir=above, prefix=".part-") as file:
            file.write(bytes(_TRIED_BYTES))
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise StoreError(
            f"{path} cannot be written: {error.strerror}",
            hint=f"free space below {above}, or name another place",
        ) from error


def _absolute(folder: Path) -> Path:
    """Resolves links on the way to the folder, but not the folder itself."""
    if folder.name in {"", ".."}:
        return folder.resolve()
    return folder.parent.resolve() / folder.name


def stranger_in(folder: Path) -> str | None:
    """Names what makes a folder more than a run; None for a run."""
    try:
        if not _has_marker(folder):
            return "it has no run.json and artifacts of irdiff's"
        for path, status in _walk(folder):
            name = path.relative_to(folder).as_posix()
            expected = _FOLDERS if stat.S_ISDIR(status.st_mode) else _FILES
            plain = stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)
            if not plain or not expected.fullmatch(name):
                return f"it holds {name[:200]!a}"
    except OSError as error:
        return f"it cannot be read: {error.strerror or error}"
    return None


def _has_marker(folder: Path) -> bool:
    # The folder of artifacts is part of the marker: `--json run.json` makes no folder a run.
    try:
        descriptor = os.open(folder / "run.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    with os.fdopen(descriptor, "rb") as file:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return regular and bool(_MARKER.match(file.read(200))) and (folder / "artifacts").is_dir()


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yields folders after their content, and follows no link."""
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(Path(entry.path))
            yield Path(entry.path), status


def _is_empty(folder: Path) -> bool:
    with os.scandir(folder) as entries:
        return next(entries, None) is None


@contextmanager
def replaced(folder: Path) -> Iterator[Path]:
    """Yields a new folder, which replaces `folder` as a whole when the block ends. If the block raises, or
    `folder` must not be replaced (UsageError), everything is as it was.
    """
    check(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".part-"))
    try:
        yield part
        part.chmod(0o755)
        _put(part, folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)  # made above, by nobody else
        raise


def remove(folder: Path) -> None:
    """Raises UsageError for anything but a run."""
    place = _absolute(folder)
    stranger = "it is a symbolic link" if place.is_symlink() else stranger_in(place)
    if stranger:
        raise UsageError(
            f"{folder} holds more than a run ({stranger}), so it was not removed",
            hint="remove it yourself; `irdiff runs` lists the runs",
        )
    _remove_run(place)


def _put(part: Path, folder: Path) -> None:
    check(folder)
    if not folder.exists() or _is_empty(folder):
        part.rename(folder)  # over an empty folder in one step, and over no other
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".old-"))
    folder.rename(old)
    try:
        if stranger := stranger_in(old):
            raise UsageError(f"{folder} is not a run alone ({stranger}): it is left as it is", hint=_HINT)
        part.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    _remove_run(old)


def _remove_run(folder: Path) -> None:
    """Removes files by the names that a run has. A folder to which something else was added stays."""
    try:
        for path, status in [*_walk(folder)]:
            if stat.S_ISDIR(status.st_mode):
                path.rmdir()
            elif _FILES.fullmatch(path.relative_to(folder).as_posix()):
                path.unlink()
        folder.rmdir()
    except OSError:
        return  # what is left lies in `.old-…` next to the new run: nothing of it is lost
