from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains import checkout, repository
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import Snapshot, TreeEntry
from tests.unit.resolve.toolchains.trees import STORE, CheckoutOf, Texts


@pytest.fixture
def checkout_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> CheckoutOf:
    """Makes a checkout of the given files and links."""
    contents: dict[str, bytes] = {}

    def read(wanted: Sequence[TreeEntry]) -> dict[str, bytes]:
        return {entry.path: contents[entry.blob] for entry in wanted}

    def made(files: Texts, links: Texts | None = None, modes: Texts | None = None) -> Checkout:
        links = links or {}
        entries = [
            TreeEntry(path=path, mode=mode, blob=f"blob of {text!r}", store=STORE)
            for path, text in {**files, **links}.items()
            for mode in ["120000" if path in links else (modes or {}).get(path, "100644")]
        ]
        contents.update((f"blob of {text!r}", text.encode()) for text in {**files, **links}.values())
        monkeypatch.setattr(repository, "entries", lambda *_: entries)
        monkeypatch.setattr(repository, "read", read)
        snap = Snapshot(store=STORE, tree="t", commit="c" * 40, spec="HEAD")
        return checkout.read(snap, configuration.load(cache=tmp_path))

    return made
