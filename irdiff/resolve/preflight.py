"""Reads two sides before anything is installed: what differs, and what their toolchains are called."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from irdiff.config import Config
from irdiff.model import Edited, Sides
from irdiff.resolve import kernel_repository, pins, remote_repositories, tree_edits
from irdiff.resolve.sides import SideOptions, is_revision, named
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import native, repository
from irdiff.resolve.toolchains.repository import GitStore, Snapshot
from irdiff.store import key_of


@dataclass(frozen=True, kw_only=True)
class Preflight:
    """The trees of two revisions, and what they differ in."""

    snapshots: Sides[Snapshot]
    edited: Edited

    @property
    def specs(self) -> tuple[str, str]:
        return self.snapshots.base.spec, self.snapshots.head.spec


def preflight(base: str | None, head: str | None, options: SideOptions, config: Config) -> Preflight | None:
    """How two revisions differ; None for sides of another kind.

    Raises UsageError.
    """
    specs, store = named(base, head, options, config)
    if store is None or not all(map(is_revision, specs)):
        return None
    snapshots = specs.map(lambda spec: remote_repositories.snapshot(spec, store, config))
    found = tree_edits.between(snapshots, config)
    is_chosen = bool(options.packs) or options.program is not None
    if found is None or (found.of_kernels and is_chosen):
        return None
    return Preflight(snapshots=snapshots, edited=found)


def cache_key(base: str, head: str, options: SideOptions, config: Config) -> str:
    """A name for the toolchains of both sides before they are made, for the cache of a CI service.

    Toolchains of equal keys can replace each other; so may some of different keys.
    """
    specs, store = named(base, head, options, config)
    python = f"python {sys.version_info.major}.{sys.version_info.minor}"
    parts = [_named_by(spec, store, options, config) for spec in specs]
    return key_of("cache/1", python, parts)[:32]


def _named_by(spec: str, store: GitStore | None, options: SideOptions, config: Config) -> object:
    if store is None or not is_revision(spec):
        return spec
    snap = remote_repositories.snapshot(spec, store, config)
    if checkouts.is_triton(snap, config):
        return native.key_of_build(checkouts.read(snap, config), config).name
    wanted = (kernel_repository.FILE, "pyproject.toml", *pins.FILES)
    rows = {row.path: row.content for row in repository.entries(snap, config) if row.path in wanted}
    return [options.triton, rows]
