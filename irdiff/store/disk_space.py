"""Recognizes an exhausted disk, quota or file limit, and says where, how much is free and what to type. A
compiler that cannot write fails as if the kernel were wrong, so such a failure ends the comparison.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from irdiff.errors import StoreError

NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
"""Errors of writing; EFBIG is that of `ulimit -f`."""
_REASONS = tuple(map(os.strerror, sorted(NO_SPACE)))
_LEAST_BYTES = 1 << 20
"""With less, no compilation has room for its artifacts."""


def raise_if_named(text: str, folder: Path, temporary: Path) -> None:
    """Raises StoreError if a compiler that wrote to these folders printed that there was no space."""
    for reason in _REASONS:
        if reason in text:
            raise used_up((folder, temporary), reason)


def used_up(folders: Sequence[Path], reason: str) -> StoreError:
    """Returns the error of a process that could not write to one of `folders`. It names the fullest disk."""
    if reason == os.strerror(errno.EFBIG):
        situation, hint = "the limit of `ulimit -f`, which is too small", "ulimit -f unlimited"
    else:
        place = min(folders, key=lambda each: shutil.disk_usage(each).free)
        usage = shutil.disk_usage(place)
        situation = f"{usage.free / 1e6:,.1f} of {usage.total / 1e6:,.1f} MB are free on {_disk_of(place)}"
        hint = (
            "free space, with `irdiff store prune --max-size 2GB`, or name folders on another disk: "
            "IRDIFF_CACHE for the cache, TMPDIR for temporary files"
        )
    return StoreError(f"the comparison cannot go on: {reason}: {situation}", hint=hint)


def _disk_of(path: Path) -> Path:
    """Returns the mount point of a path's file system."""
    path = path.resolve()
    return next(each for each in (path, *path.parents) if each.is_mount())


def check(folder: Path, temporary: Path) -> None:
    """Writes a mebibyte to both folders, and removes it. Raises StoreError if that fails."""
    for place in (folder, temporary):
        try:
            with tempfile.TemporaryFile(dir=place) as file:
                file.write(bytes(_LEAST_BYTES))
        except OSError as error:
            raise used_up((place,), error.strerror or str(error)) from error


def is_nearly_used_up(folder: Path) -> bool:
    """True if less than a mebibyte is free. Takes microseconds."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize < _LEAST_BYTES
