"""Which native sources differ between two revisions of a checkout, and which MLIR passes use each.

A pass is what a `.td` file defines as `def NAME : Pass<…>`; its file is the one that names `NAMEBase`. A pass
uses another file where its object refers to a symbol of that file's object, or of one that does, as the
linker resolves them (`building.object_uses`), and a header where it includes it. This is a bound from above:
what is linked need not be called. A file that no pass reaches (Python bindings) is said to be of none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from irdiff.config import Config
from irdiff.model import Sides, Toolchain
from irdiff.resolve.toolchains import environments, includes
from irdiff.resolve.toolchains.building import object_uses
from irdiff.resolve.toolchains.checkout import Checkout, texts
from irdiff.resolve.toolchains.includes import HEADERS
from irdiff.store import Store, key_of

_PASS = re.compile(r"^\s*def\s+(\w+)\s*:\s*Pass<", re.MULTILINE)
_BASE = re.compile(r"\b(\w+)Base\b")
_CODE = (".cpp", ".cc", *HEADERS)
_SOURCES = (*_CODE, ".td")
_BESIDE = re.compile(r"(?:^|/)(?:test|unittest|examples|bin)/")


def passes_of_edits(
    checkouts: Sides[Checkout], base: Toolchain, config: Config
) -> Mapping[str, Sequence[str]]:
    """By path. Names are those of head, whose sources may define new passes; uses are of base's build."""
    if checkouts.base.native_digest == checkouts.head.native_digest:
        return {}
    edited = sorted(path for path in differing(checkouts) if path.endswith(_SOURCES))
    uses = _uses(base, config)
    key = key_of("edited-passes/2", checkouts.base.native_digest, checkouts.head.native_digest, uses)
    store = Store(config.cache / "digests")
    found: dict[str, list[str]] | None = store.get_record("edited-passes", key)
    if found is None:
        sources = (path for path in checkouts.head.native_paths if path.endswith(_SOURCES))
        found = PassIndex(texts(checkouts.head.files, sources), uses).passes_of(edited)
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


class PassIndex:
    """The passes of one revision by the files that they use."""

    def __init__(self, texts: Mapping[str, str], uses: Mapping[str, Sequence[str]]) -> None:
        """`texts` of all sources by path; `uses` as of `object_uses.index`."""
        kept = {path: text for path, text in texts.items() if not _BESIDE.search(path)}
        self._defined = {
            path: set(_PASS.findall(text)) for path, text in kept.items() if path.endswith(".td")
        }
        known = {name for names in self._defined.values() for name in names}
        code = {path: text for path, text in kept.items() if path.endswith(_CODE)}
        self._own = {path: set(_BASE.findall(text)) & known for path, text in code.items()}
        self._uses = uses
        self._includers = includes.includers(code)

    def passes_of(self, edited: Iterable[str]) -> dict[str, list[str]]:
        """For each edited source the passes that use it, as MLIR prints them."""
        chosen = sorted(path for path in edited if path.endswith(_SOURCES) and not _BESIDE.search(path))
        return {path: self._of(path) for path in chosen}

    def _of(self, path: str) -> list[str]:
        if path in self._defined:
            return sorted(self._defined[path])
        found: set[str] = set()
        seen, pending = {path}, [path]
        while pending:
            one = pending.pop()
            own = self._own.get(one, set())
            found |= own
            if own:
                continue  # what refers to a pass's file runs the pass, and is not part of it
            users = self._includers.get(one, set()) if one.endswith(HEADERS) else set(self._uses.get(one, ()))
            pending += users - seen
            seen |= users
        return sorted(found)
