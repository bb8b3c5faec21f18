"""What two sides are before anything is installed: what differs, and what names their toolchains."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from irdiff.config import Config
from irdiff.model import Edited, Sides
from irdiff.resolve import edited_kernels, kernel_repository, pins, remote_repositories
from irdiff.resolve.sides import SideOptions, is_revision, named
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import edited_files, native
from irdiff.resolve.toolchains.repository import GitStore, Snapshot
from irdiff.store import key_of


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """What the trees of two revisions say."""

    snapshots: Sides[Snapshot]
    edited: Edited

    @property
    def specs(self) -> tuple[str, str]:
        return self.snapshots.base.spec, self.snapshots.head.spec


def preflight(base: str | None, head: str | None, options: SideOptions, config: Config) -> Preflight | None:
    """What can matter of two revisions, before anything is made of them; None for other sides.

    Raises UsageError.
    """
    asked = named(base, head, options, config)
    store = asked.store
    if store is None or not all(map(is_revision, asked.specs)):
        return None
    snapshots = asked.specs.map(lambda spec: remote_repositories.snapshot(spec, store, config))
    found = edited_files.between(snapshots.base, snapshots.head, config)
    if found is None and not options.packs and options.program is None:
        found = edited_kernels.between(snapshots.base, snapshots.head, config)
    return Preflight(snapshots=snapshots, edited=found) if found else None


def cache_key(base: str, head: str, options: SideOptions, config: Config) -> str:
    """What names the toolchains of both sides before they are made, for the cache of a CI service.

    Equal keys are of toolchains that serve each other; another key may be of the same ones.
    """
    asked = named(base, head, options, config)
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    parts = [_named_by(spec, asked.store, options, config) for spec in asked.specs]
    return key_of("cache/1", python, parts)[:32]


def _named_by(spec: str, store: GitStore | None, options: SideOptions, config: Config) -> object:
    if store is None or not is_revision(spec):
        return spec
    snap = remote_repositories.snapshot(spec, store, config)
    if checkouts.is_triton(snap, config):
        return native.key_of_build(checkouts.read(snap, config), config).name
    wanted = (kernel_repository.FILE, "pyproject.toml", *pins.FILES)
    contents = edited_kernels.contents(snap, config)
    return [options.triton, {path: contents[path] for path in wanted if path in contents}]
