"""Sides that name a repository elsewhere, which here is a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from irdiff import config as configuration
from irdiff.errors import UsageError
from irdiff.resolve import remote_repositories
from irdiff.resolve.remote_repositories import Remote
from irdiff.resolve.toolchains import repository
from tests.integration.commits.checkouts import commit, git, new_repository, write

pytestmark = pytest.mark.integration


@pytest.fixture
def fork(tmp_path: Path) -> Path:
    folder = new_repository(tmp_path / "fork")
    write(folder, {"kernel.py": "first\n"})
    commit(folder, "first")
    return folder


def content(spec: str, fork: Path, tmp_path: Path) -> bytes:
    config = configuration.load(cache=tmp_path / "cache")
    store = remote_repositories.open_any((spec,), tmp_path, config)
    snap = remote_repositories.snapshot(spec, store, config)
    (entry,) = repository.entries(snap, config)
    return repository.read([entry])["kernel.py"]


def test_branches_and_commits_of_a_fork_are_read_and_kept_up_to_date(fork: Path, tmp_path: Path) -> None:
    url = fork.as_uri()
    assert content(f"{url}@main", fork, tmp_path) == b"first\n"
    write(fork, {"kernel.py": "second\n"})
    second = commit(fork, "second")
    assert content(f"{url}@main", fork, tmp_path) == b"second\n"
    assert content(f"{url}@main~1", fork, tmp_path) == b"first\n"
    assert content(f"{url}@{second}", fork, tmp_path) == b"second\n"


def test_a_branch_of_the_checkout_goes_first(fork: Path, tmp_path: Path) -> None:
    git(fork, "branch", "owner/name@idea")
    config = configuration.load(cache=tmp_path / "cache")
    store = repository.open_store(fork, config)
    snap = remote_repositories.snapshot("owner/name@idea", store, config)
    assert snap.store == store
    assert not (tmp_path / "cache" / "remotes").exists()


def test_what_cannot_be_fetched_is_said(tmp_path: Path) -> None:
    config = configuration.load(cache=tmp_path / "cache")
    with pytest.raises(UsageError, match="the repository cannot be fetched"):
        remote_repositories.fetched(Remote(url=(tmp_path / "absent").as_uri(), revision="main"), config)
