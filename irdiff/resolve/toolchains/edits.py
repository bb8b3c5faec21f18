"""The native sources in which two revisions of a checkout differ, and the passes that use each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from irdiff.config import Config
from irdiff.model import Sides, Toolchain
from irdiff.resolve.toolchains import environments, repository
from irdiff.resolve.toolchains.building import object_uses
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.edited_passes import SOURCES, PassIndex
from irdiff.store import Store, key_of


def passes_of_edits(
    checkouts: Sides[Checkout], base: Toolchain, config: Config
) -> Mapping[str, Sequence[str]]:
    """By path. Names are those of head, whose sources may define new passes; uses are of base's build."""
    if checkouts.base.native_digest == checkouts.head.native_digest:
        return {}
    edited = sorted(path for path in differing(checkouts) if path.endswith(SOURCES))
    uses = _uses(base, config)
    key = key_of("edited-passes/1", checkouts.base.native_digest, checkouts.head.native_digest, uses)
    store = Store(config.cache / "digests")
    found: dict[str, list[str]] | None = store.get_record("edited-passes", key)
    if found is None:
        entries = [
            checkouts.head.tree[path]
            for path in checkouts.head.native_paths
            if path.endswith(SOURCES) and path in checkouts.head.tree
        ]
        contents = repository.read(entries)
        texts = {path: content.decode(errors="replace") for path, content in contents.items()}
        found = PassIndex(texts, uses).passes_of(edited)
        store.put_record("edited-passes", key, found)
    return found


def differing(checkouts: Sides[Checkout]) -> list[str]:
    """Paths of native inputs that are not the same on both sides."""
    paths = {*checkouts.base.native_paths, *checkouts.head.native_paths}
    blobs = checkouts.map(lambda checkout: {path: entry.blob for path, entry in checkout.files.items()})
    return sorted(path for path in paths if blobs.base.get(path) != blobs.head.get(path))


def _uses(toolchain: Toolchain, config: Config) -> Mapping[str, Sequence[str]]:
    """Of the native build below a revision's environment; nothing where it has none (an adopted release)."""
    own = environments.find(Path(toolchain.path).name, config)
    try:
        text = Path(own.state["native"] if own else "", object_uses.FILE).read_text(encoding="utf-8")
        found: dict[str, list[str]] = json.loads(text)
    except (OSError, KeyError, ValueError):
        return {}
    return found
