"""Trees of builds that did not end: kept, so that the same build goes on where it was.

    toolchains/NAME.tree/source     the exported revision, with the folder that CMake and ninja work in
    toolchains/NAME.tree/wheels     the wheel, once it is built
    toolchains/NAME.tree/tree       the git tree that was exported: another one begins anew

What is continued is ninja's own work: it takes an output for done only if its log has the command that made
it, so a file that a killed compiler left half-written is made again.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot

LIMIT_BYTES = 8 << 30
"""Of all kept trees together; the oldest go first."""
_SUFFIX = ".tree"
_EXPORTED = "tree"


@dataclass(frozen=True, kw_only=True)
class KeptTree:
    name: str
    path: Path
    size_bytes: int
    used_s: float
    """Seconds since the epoch."""


@dataclass(frozen=True, kw_only=True)
class BuildTree:
    """The folders of one build."""

    path: Path
    continues: bool
    """Whether an earlier build with the same source left something here."""

    @property
    def source(self) -> Path:
        return self.path / "source"

    @property
    def wheels(self) -> Path:
        return self.path / "wheels"

    def wheel(self) -> Path | None:
        return next(iter(sorted(self.wheels.glob("*.whl"))), None)


def prepare(name: str, snap: Snapshot, config: Config) -> BuildTree:
    """The tree to build in, with the source of the snapshot. Call it with the build's lock held."""
    path = config.toolchains / f"{name}{_SUFFIX}"
    exported = path / _EXPORTED
    with contextlib.suppress(OSError):
        if exported.read_text(encoding="utf-8") == snap.tree:
            return BuildTree(path=path, continues=True)
    shutil.rmtree(path, ignore_errors=True)
    tree = BuildTree(path=path, continues=False)
    repository.export(snap, tree.source, config)
    exported.write_text(snap.tree, encoding="utf-8")
    return tree


def remove(name: str, config: Config) -> None:
    shutil.rmtree(config.toolchains / f"{name}{_SUFFIX}", ignore_errors=True)


def list_all(config: Config) -> list[KeptTree]:
    """The oldest first."""
    paths = [path for path in config.toolchains.glob(f"native-*{_SUFFIX}") if path.is_dir()]
    found = [
        KeptTree(
            name=path.name.removesuffix(_SUFFIX),
            path=path,
            size_bytes=sum(_sizes(path)),
            used_s=path.stat().st_mtime,
        )
        for path in paths
    ]
    return sorted(found, key=lambda tree: tree.used_s)


def remove_beyond(limit_bytes: int, config: Config) -> list[str]:
    """Removes the oldest until the rest fits; returns the names."""
    kept = list_all(config)
    left_bytes = sum(tree.size_bytes for tree in kept)
    removed = []
    for tree in kept:
        if left_bytes <= limit_bytes:
            break
        remove(tree.name, config)
        left_bytes -= tree.size_bytes
        removed.append(tree.name)
    return removed


def _sizes(path: Path) -> Iterator[int]:
    for folder, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(folder, name).lstat().st_size
