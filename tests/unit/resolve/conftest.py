from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.resolve.toolchains import checkout, repository
from irdiff.resolve.toolchains.repository import GitStore, Snapshot, TreeEntry


@pytest.fixture
def checkout_of(monkeypatch, tmp_path):
    """Makes a checkout of Triton of the given files and links: a blob is its text."""
    store = GitStore(git_dir=Path("/none"), common_dir=Path("/none"), worktree=None, objects=None, caller={})
    monkeypatch.setattr(repository, "read", lambda rows: {row.path: row.blob.encode() for row in rows})

    def made(files, links=None, modes=None):
        links = links or {}
        texts = {"setup.py": "", "python/triton/__init__.py": "", **files, **links}
        modes = {**(modes or {}), **dict.fromkeys(links, "120000")}
        entries = [
            TreeEntry(path=path, mode=modes.get(path, "100644"), blob=text, store=store)
            for path, text in texts.items()
        ]
        monkeypatch.setattr(repository, "entries", lambda *_: entries)
        snap = Snapshot(store=store, tree="t", commit="c" * 40, spec="HEAD")
        return checkout.read(snap, configuration.load(cache=tmp_path))

    return made
