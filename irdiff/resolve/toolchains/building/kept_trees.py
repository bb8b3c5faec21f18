"""Trees of builds that did not end: kept, so that the same build goes on there.

    toolchains/NAME.tree/source     the exported revision, with the folder that CMake and ninja work in
    toolchains/NAME.tree/wheels     the wheel, once it is built
    toolchains/NAME.tree/tree       the git tree that was exported: another one begins anew

ninja takes an output for done only if its log has the command that made it, so a file that a killed
compiler left half-written is made again. Neighbouring commits have trees of their own and share objects
through ccache.
"""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot

LIMIT = 4
"""So many trees are kept, of about 2 GB each."""
_SUFFIX = ".tree"


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
    exported = path / "tree"
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


def names(config: Config) -> list[str]:
    """Of the builds that left a tree, the oldest first."""
    paths = [path for path in config.toolchains.glob(f"native-*{_SUFFIX}") if path.is_dir()]
    return [path.name.removesuffix(_SUFFIX) for path in sorted(paths, key=lambda path: path.stat().st_mtime)]


def remove_beyond(limit: int, config: Config) -> None:
    """Removes the oldest trees beyond `limit`."""
    known = names(config)
    for name in known[: max(0, len(known) - limit)]:
        remove(name, config)
