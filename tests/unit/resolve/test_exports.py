"""Revisions of a repository that are exported to the cache."""

import shutil

import pytest

from irdiff import config as configuration
from irdiff.resolve import kernel_repository
from irdiff.resolve.toolchains import repository
from tests.programs.checkouts import commit, new_repository, write

FILES = {"kernels/add.py": "BLOCK = 256\n", "kernels/tuned.py": "BLOCK = 512\n"}


@pytest.mark.parametrize(
    "damage",
    [
        lambda tree: (tree / "kernels/tuned.py").unlink(),
        lambda tree: (tree / "kernels/tuned.py").write_text("BLOCK = 128\n"),
        lambda tree: (tree / "kernels/add.py").chmod(0o755),
        lambda tree: (tree / "kernels/new.py").write_text(""),
        lambda tree: shutil.rmtree(tree),
        lambda tree: (tree.parent / "tree.sha256").write_text(""),
    ],
)
def test_a_tree_that_was_changed_in_the_cache_is_exported_again(tmp_path, monkeypatch, damage):
    place = new_repository(tmp_path / "kernels")
    write(place, FILES)
    commit(place, "first")
    config = configuration.load(cache=tmp_path / "cache")
    snap = repository.snapshot(repository.open_store(place, config), "HEAD", config)
    monkeypatch.setattr(kernel_repository, "_checked", set())
    damage(kernel_repository.exported(snap, config))
    kernel_repository._checked.clear()  # another process
    tree = kernel_repository.exported(snap, config)
    files = {str(path.relative_to(tree)): path.read_text() for path in tree.rglob("*.py")}
    assert FILES.items() <= files.items() and "kernels/new.py" not in files
    assert not (tree / "kernels/add.py").stat().st_mode & 0o111
