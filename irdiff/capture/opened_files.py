"""Files outside of a toolchain that its stages opened. A cached result holds while these have the same
content.

The worker lists them as they are opened (`worker/capture/noted.py`), so the list of a stage that crashes is
complete too. A missing file counts as missing. One without a digest (a pipe, a file that a stage reads and
then writes) has an empty one, which equals none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from irdiff.store import sha256_of_file
from irdiff.worker.protocol import OPENED

_ABSENT = "absent"


def of_request(folder: Path, root: Path) -> dict[str, str]:
    """Returns the digest of each file that a request opened, by its path, relative to `root` if below it."""
    try:
        listed = [json.loads(line) for line in (folder / OPENED).read_text().splitlines()]
    except FileNotFoundError:
        return {}
    names = {path: _name(Path(path), root) for _, path in listed}
    opened = {names[path]: _digest(names[path], root) for kind, path in listed if kind == "r"}
    return opened | {names[path]: "" for kind, path in listed if kind == "w"}


def hold(opened: Mapping[str, str], root: Path) -> bool:
    return all(digest and _digest(name, root) == digest for name, digest in opened.items())


def _name(path: Path, root: Path) -> str:
    for place in (root, root.resolve()):
        if path.is_relative_to(place):
            return str(path.relative_to(place))
    return str(path)


def _digest(name: str, root: Path) -> str:
    path = root / name
    if not path.exists():
        return _ABSENT
    try:
        return sha256_of_file(path) if path.is_file() else ""
    except OSError:
        return ""
