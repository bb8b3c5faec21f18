"""Reading git: every kind of repository, the working tree, and what is said where nothing can be read."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from checkouts import commit, git, new_repository, write

from irdiff import config as configuration
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.resolve.toolchains import repository

pytestmark = pytest.mark.integration


@pytest.fixture
def here(tmp_path: Path) -> Config:
    return configuration.load(cache=tmp_path / "a cache")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    made = new_repository(tmp_path / "with space" / "naïve-路")
    write(
        made, {"a.txt": "one\n", "dir/ünï code.txt": "x", "dir/tab\there.txt": "t", ".gitignore": "*.log\n"}
    )
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "link").symlink_to("a.txt")
    commit(made, "one")
    return made


def contents(repo: Path, spec: str, config: Config) -> dict[str, str]:
    snap = repository.snapshot(repository.open_store(repo), spec, config)
    files = [entry for entry in repository.entries(snap, config) if entry.is_file]
    return {name: text.decode() for name, text in repository.read(files).items()}


def test_names_modes_and_export(repo: Path, here: Config, tmp_path: Path) -> None:
    found = contents(repo / "dir", "HEAD", here)
    assert found["dir/ünï code.txt"] == "x"
    assert found["dir/tab\there.txt"] == "t"
    snap = repository.snapshot(repository.open_store(repo), "main", here)
    repository.export(snap, tmp_path / "out", here)
    assert (tmp_path / "out" / "dir" / "ünï code.txt").read_text() == "x"
    assert os.access(tmp_path / "out" / "run.sh", os.X_OK)
    assert (tmp_path / "out" / "link").is_symlink()
    assert not (tmp_path / "out" / ".git").exists()


def test_working_tree(repo: Path, here: Config) -> None:
    clean = repository.snapshot(repository.open_store(repo), ".", here)
    assert clean.commit == git(repo, "rev-parse", "HEAD"), "a clean working tree is its commit"
    write(repo, {"a.txt": "staged\n"})
    git(repo, "add", "a.txt")
    write(repo, {"a.txt": "and then edited\n", "new/file.txt": "untracked\n", "noise.log": "ignored"})
    git(repo, "rm", "-q", "--cached", "run.sh")
    (repo / "dir" / "ünï code.txt").unlink()
    index = (repo / ".git" / "index").read_bytes()
    found = contents(repo, ".", here)
    assert found["a.txt"] == "and then edited\n"
    assert found["new/file.txt"] == "untracked\n"
    assert "run.sh" in found, "it is out of the index, not out of the working tree"
    assert "noise.log" not in found
    assert "dir/ünï code.txt" not in found
    assert (repo / ".git" / "index").read_bytes() == index
    assert repository.is_dirty(repository.open_store(repo))


def test_case_only_rename(repo: Path, here: Config) -> None:
    git(repo, "mv", "a.txt", "A.txt")
    assert {name for name in contents(repo, ".", here) if name.lower() == "a.txt"} == {"A.txt"}
    commit(repo, "another case")
    assert {name for name in contents(repo, "HEAD~1", here) if name.lower() == "a.txt"} == {"a.txt"}
    assert {name for name in contents(repo, "HEAD", here) if name.lower() == "a.txt"} == {"A.txt"}


def test_submodule(repo: Path, here: Config, tmp_path: Path) -> None:
    library = new_repository(tmp_path / "library")
    write(library, {"lib.c": "int one;\n"})
    commit(library, "one")
    git(repo, "submodule", "add", "-q", str(library), "third_party/lib ä")
    commit(repo, "with a submodule")
    assert contents(repo, "HEAD", here)["third_party/lib ä/lib.c"] == "int one;\n"
    write(repo, {"third_party/lib ä/lib.c": "int two;\n"})
    assert contents(repo, ".", here)["third_party/lib ä/lib.c"] == "int two;\n"
    assert contents(repo, "HEAD", here)["third_party/lib ä/lib.c"] == "int one;\n"
    repository.export(repository.snapshot(repository.open_store(repo), ".", here), tmp_path / "out", here)
    assert (tmp_path / "out/third_party/lib ä/lib.c").read_text() == "int two;\n"

    subprocess.run(["git", "clone", "-q", repo, tmp_path / "without"], check=True)
    snap = repository.snapshot(repository.open_store(tmp_path / "without"), "HEAD", here)
    assert [entry.path for entry in repository.entries(snap, here) if entry.is_missing_submodule] == [
        "third_party/lib ä"
    ]
    with pytest.raises(UsageError, match="submodule third_party/lib ä is not there"):
        repository.export(snap, tmp_path / "none", here)


def test_shallow_clone(repo: Path, here: Config, tmp_path: Path) -> None:
    git(repo, "checkout", "-q", "-b", "feature")
    for name in ("two", "three"):
        write(repo, {"a.txt": name})
        commit(repo, name)
    clone = tmp_path / "shallow"
    subprocess.run(
        ["git", "clone", "-q", "--depth=1", "--no-single-branch", f"file://{repo}", clone], check=True
    )
    git(clone, "remote", "set-head", "origin", "main")
    assert contents(clone, "HEAD", here)["a.txt"] == "three"
    store = repository.open_store(clone)
    with pytest.raises(UsageError) as caught:
        repository.snapshot(store, "HEAD~1", here)
    assert "--unshallow" in caught.value.hint
    with pytest.raises(UsageError) as caught:
        repository.default_base(store, "HEAD")
    assert "--unshallow" in caught.value.hint


def test_detached_head_and_default_base(repo: Path, here: Config) -> None:
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "--detach")
    write(repo, {"a.txt": "detached\n"})
    commit(repo, "detached")
    store = repository.open_store(repo)
    assert repository.default_base(store, "HEAD") == first
    assert repository.default_base(store, ".") == first
    assert not repository.is_dirty(store)


def test_bare_repository(repo: Path, here: Config, tmp_path: Path) -> None:
    bare = tmp_path / "bare.git"
    subprocess.run(["git", "clone", "-q", "--bare", repo, bare], check=True)
    assert contents(bare, "main", here)["a.txt"] == "one\n"
    store = repository.open_store(bare)
    assert not repository.is_dirty(store)
    with pytest.raises(UsageError, match="bare repository"):
        repository.snapshot(store, ".", here)


def test_what_is_not_there(repo: Path, here: Config, tmp_path: Path) -> None:
    store = repository.open_store(repo)
    for spec in ("nothing", "--help", "HEAD~99", "main..HEAD"):
        with pytest.raises(UsageError, match="is no revision of the repository"):
            repository.snapshot(store, spec, here)
    with pytest.raises(UsageError, match="nothing to compare"):
        repository.default_base(store, "HEAD")
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="is in no git repository"):
        repository.open_store(tmp_path / "empty")
    with pytest.raises(UsageError, match="is in no git repository"):
        repository.open_store(tmp_path / "absent")
    empty = new_repository(tmp_path / "no commits")
    with pytest.raises(UsageError, match="is no revision"):
        repository.snapshot(repository.open_store(empty), "HEAD", here)
    with pytest.raises(UsageError, match="there is no main branch"):
        git(repo, "branch", "-m", "main", "trunk")
        repository.default_base(store, "HEAD")
