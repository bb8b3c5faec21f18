"""Folders of running processes, below a folder that any number of processes, containers and machines share.

The owner of the folder NAME holds a lock on the file `NAME.lock` beside it. The kernel releases it when the
owner ends in any way. Process ids would not do: another container has its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

_LOCK = ".lock"
_OWN = re.compile(r"[0-9a-f]{32}\.lock")


@contextlib.contextmanager
def entered(parent: Path) -> Iterator[Path]:
    """Yields a new folder, which is removed afterwards. Below one parent all paths have the same length.

    Raises OSError.
    """
    name = uuid.uuid4().hex
    folder, lock = parent / name, parent / f"{name}{_LOCK}"
    unlocked = parent / f".{name}"
    parent.mkdir(parents=True, exist_ok=True)
    with unlocked.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        unlocked.rename(lock)  # `remove_left` sees only locks that are held, or whose owner has ended
        try:
            folder.mkdir()
            yield folder
        finally:
            _remove(folder, lock)


def remove_left(parent: Path) -> None:
    """Removes the folders of owners that have ended."""
    for lock in parent.glob(f"*{_LOCK}"):
        if not _OWN.fullmatch(lock.name):
            continue
        with contextlib.suppress(OSError), lock.open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(lock.with_suffix(""), lock)


def _remove(folder: Path, lock: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.unlink(missing_ok=True)
