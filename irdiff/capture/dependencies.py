"""What a capture depended on, and whether that is still so.

A record names each file by its content, each folder by the names in it, and each path that was only asked for
by what was said of it, a link by where it leads. It holds where all of them are as they were. Paths below
the corpus of a repository are kept relative to it: another revision, exported elsewhere, has the same record
where it has the same content.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff.capture.disk import Disk, digest_of_text

_ANCHOR = "<corpus>"


@dataclass(frozen=True, kw_only=True)
class Dependencies:
    """Of one capture. Paths are as `relative` gives them."""

    files: Mapping[str, tuple[str | None, str | None]]
    """State and digest of each; None where the file was absent."""
    folders: Mapping[str, str | None]
    asked: Mapping[str, str]
    links: Mapping[str, str | None]
    """Of each path that was asked about itself where it leads; None for what is no link."""

    def hold(self, anchor: Path | None, disk: Disk) -> bool:
        """Whether everything is as it was."""
        return (
            all(_is_same(absolute(path, anchor), *row, disk) for path, row in self.files.items())
            and all(disk.names(absolute(path, anchor)) == names for path, names in self.folders.items())
            and all(disk.kind(absolute(path, anchor)) == kind for path, kind in self.asked.items())
            and all(self._leads_as_before(path, anchor, disk) for path in self.links)
        )

    def _leads_as_before(self, path: str, anchor: Path | None, disk: Disk) -> bool:
        target = disk.target(absolute(path, anchor))
        return (target and relative(target, anchor)) == self.links[path]


def _is_same(path: str, state: str | None, digest: str | None, disk: Disk) -> bool:
    now = disk.state(path)
    return now == state or (None not in (now, state) and disk.digest(path) == digest)


def of_report(report: Mapping[str, Any], anchor: Path | None, disk: Disk) -> Dependencies | None:
    """From what the worker saw; None where that cannot be told: a file has changed since, or more than files
    was asked.
    """
    if report["unknowable"]:
        return None
    files: dict[str, tuple[str | None, str | None]] = {}
    for path, state in report["files"].items():
        digest = disk.digest(path) if state is not None else None
        if disk.state(path) != state:
            return None
        files[relative(path, anchor)] = (state, digest)
    return Dependencies(
        files=files,
        folders={relative(path, anchor): digest_of_text(names) for path, names in report["folders"].items()},
        asked={relative(path, anchor): kind for path, kind in report["asked"].items()},
        links={
            relative(path, anchor): target and relative(target, anchor)
            for path, target in report["links"].items()
        },
    )


def read_below(report: Mapping[str, Any], anchor: Path | None) -> tuple[str, ...]:
    """The files of a repository's corpus that were opened, relative to its anchor."""
    prefix = f"{anchor}/"
    opened = (path for path, state in report["files"].items() if state is not None)
    return tuple(sorted(path.removeprefix(prefix) for path in opened if path.startswith(prefix)))


def relative(path: str, anchor: Path | None) -> str:
    """With the anchor's own place taken out."""
    if anchor is not None and (path == str(anchor) or path.startswith(f"{anchor}/")):
        return _ANCHOR + path[len(str(anchor)) :]
    return path


def absolute(path: str, anchor: Path | None) -> str:
    return str(anchor) + path[len(_ANCHOR) :] if anchor is not None and path.startswith(_ANCHOR) else path


def to_json(found: Dependencies) -> dict[str, Any]:
    return {
        "files": dict(found.files),
        "folders": dict(found.folders),
        "asked": dict(found.asked),
        "links": dict(found.links),
    }


def of_json(row: Mapping[str, Any]) -> Dependencies:
    files = {path: (state, digest) for path, (state, digest) in row["files"].items()}
    return Dependencies(files=files, folders=row["folders"], asked=row["asked"], links=row["links"])
