"""What lies on the disk now: content of files, names in folders. Each path is looked at once.

The kernel sets ctime whenever content or metadata of a file changes, and no program can set it back: a file
in the state that it had (device, inode, size, times) has the content that it had.
"""

from __future__ import annotations

import hashlib
import os
import stat
from pathlib import Path


class Disk:
    """The disk as one comparison sees it. Thread-safe: a value that two threads make is the same."""

    def __init__(self) -> None:
        self._states: dict[str, str | None] = {}
        self._digests: dict[str, str | None] = {}
        self._names: dict[str, str | None] = {}
        self._kinds: dict[str, str] = {}
        self._targets: dict[str, str | None] = {}

    def state(self, path: str) -> str | None:
        """Changes whenever the content of a file does; None where there is none."""
        if path not in self._states:
            self._states[path] = state_of(path)
        return self._states[path]

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file's content, `no file` for what is none, None where there is nothing."""
        if path not in self._digests:
            self._digests[path] = _digest_of(Path(path))
        return self._digests[path]

    def kind(self, path: str) -> str:
        """What is to be had of a path by asking for it, but for times."""
        if path not in self._kinds:
            self._kinds[path] = _kind_of(path)
        return self._kinds[path]

    def target(self, path: str) -> str | None:
        """Where a link leads; None for what is none."""
        if path not in self._targets:
            self._targets[path] = _target_of(path)
        return self._targets[path]

    def names(self, path: str) -> str | None:
        """SHA-256 of the names in a folder; None where there is none."""
        if path not in self._names:
            self._names[path] = _digest_of_names(path)
        return self._names[path]


def state_of(path: str) -> str | None:
    """As `irdiff.worker.dependencies` has it."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return None
    return f"{found.st_dev}:{found.st_ino}:{found.st_size}:{found.st_mtime_ns}:{found.st_ctime_ns}"


def _kind_of(path: str) -> str:
    """As `irdiff.worker.dependencies` has it."""
    try:
        found = Path(path).stat()
    except (OSError, ValueError):
        return "absent"
    kind = f"{found.st_mode >> 12:o}"
    return f"{kind} {found.st_size}" if stat.S_ISREG(found.st_mode) else kind


def _target_of(path: str) -> str | None:
    """As `irdiff.worker.dependencies` has it."""
    try:
        return str(Path(path).readlink())
    except (OSError, ValueError):
        return None


def _digest_of(path: Path) -> str | None:
    try:
        if not path.is_file():  # a folder, or a pipe that would never end
            return "no file" if path.exists() else None
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def digest_of_text(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(os.fsencode(text)).hexdigest()


def _digest_of_names(path: str) -> str | None:
    """As `irdiff.worker.dependencies` has it."""
    try:
        names = "/".join(sorted(entry.name for entry in Path(path).iterdir() if entry.name != "__pycache__"))
    except OSError:
        return None
    return digest_of_text(names)
