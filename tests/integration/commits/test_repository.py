"""Reading git: every kind of repository, the working tree, and what is said where nothing can be read."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from irdiff import config as configuration
from irdiff.errors import UsageError
from irdiff.resolve import kernel_repository, remote_repositories
from irdiff.resolve.remote_repositories import Remote
from irdiff.resolve.toolchains import repository
from tests.programs.checkouts import commit, git, new_repository, write
from tests.texts import text_of


@pytest.fixture
def here(tmp_path):
    return configuration.load(cache=tmp_path / "a cache")


@pytest.fixture
def repo(tmp_path):
    made = new_repository(tmp_path / "with space" / "naïve-路")
    names = {"a.txt": "one\n", "dir/ünï code.txt": "x", "dir/tab\there.txt": "t"}
    write(made, {**names, ".gitignore": "*.log\n"})
    (made / "run.sh").write_text("#!/bin/sh\n")
    (made / "run.sh").chmod(0o755)
    (made / "link").symlink_to("a.txt")
    commit(made, "one")
    return made


def snapshot(repo, spec, config):
    return repository.snapshot(repository.open_store(repo, config), spec, config)


def contents(repo, spec, config):
    snap = snapshot(repo, spec, config)
    files = [entry for entry in repository.entries(snap, config) if entry.is_file]
    return {name: text.decode() for name, text in repository.read(files).items()}


def test_names_modes_and_export(repo, here, tmp_path):
    found = contents(repo / "dir", "HEAD", here)
    assert found["dir/ünï code.txt"] == "x"
    assert found["dir/tab\there.txt"] == "t"
    snap = snapshot(repo, "main", here)
    repository.export(snap, tmp_path / "out", here)
    assert (tmp_path / "out" / "dir" / "ünï code.txt").read_text() == "x"
    assert os.access(tmp_path / "out" / "run.sh", os.X_OK)
    assert (tmp_path / "out" / "link").is_symlink()
    assert not (tmp_path / "out" / ".git").exists()


def test_working_tree(repo, here):
    clean = snapshot(repo, ".", here)
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
    assert repository.is_dirty(repository.open_store(repo, here))


def test_files_that_git_was_told_to_pass_over(repo, here):
    git(repo, "update-index", "--assume-unchanged", "a.txt", "run.sh")
    git(repo, "update-index", "--skip-worktree", "a.txt", "dir/ünï code.txt", "dir/tab\there.txt")
    (repo / "dir" / "tab\there.txt").unlink()
    clean = snapshot(repo, ".", here)
    assert clean.commit == git(repo, "rev-parse", "HEAD"), "what a sparse checkout left out is not deleted"
    flagged = git(repo, "ls-files", "-v")
    edits = {"a.txt": "two\n", "run.sh": "#!/bin/bash\n", "dir/ünï code.txt": "y"}
    write(repo, edits)
    assert contents(repo, ".", here).items() >= edits.items()
    assert git(repo, "ls-files", "-v") == flagged, "the user's own index keeps its flags"


def test_files_outside_of_a_sparse_checkout(repo, here):
    write(repo, {"kernels/k.py": "1\n", "docs/k.md": "1\n"})
    commit(repo, "folders")
    git(repo, "sparse-checkout", "set", "kernels")
    assert not (repo / "docs").exists()
    clean = snapshot(repo, ".", here)
    assert clean.commit == git(repo, "rev-parse", "HEAD")
    write(repo, {"dir/ünï code.txt": "edited\n", "new/file.txt": "untracked\n"})
    found = contents(repo, ".", here)
    assert (found["dir/ünï code.txt"], found["new/file.txt"]) == ("edited\n", "untracked\n")
    assert found["docs/k.md"] == "1\n"


def test_submodule(repo, here, tmp_path):
    library = new_repository(tmp_path / "library")
    write(library, {"lib.c": "int one;\n"})
    commit(library, "one")
    git(repo, "submodule", "add", "-q", str(library), "third_party/lib ä")
    commit(repo, "with a submodule")
    assert contents(repo, "HEAD", here)["third_party/lib ä/lib.c"] == "int one;\n"
    write(repo, {"third_party/lib ä/lib.c": "int two;\n"})
    assert contents(repo, ".", here)["third_party/lib ä/lib.c"] == "int two;\n"
    assert contents(repo, "HEAD", here)["third_party/lib ä/lib.c"] == "int one;\n"
    repository.export(snapshot(repo, ".", here), tmp_path / "out", here)
    assert (tmp_path / "out/third_party/lib ä/lib.c").read_text() == "int two;\n"

    subprocess.run(["git", "clone", "-q", repo, tmp_path / "without"], check=True)
    snap = snapshot(tmp_path / "without", "HEAD", here)
    modules = [entry.path for entry in repository.entries(snap, here) if entry.is_submodule]
    assert modules == ["third_party/lib ä"]
    with pytest.raises(UsageError, match="third_party/lib ä"):
        repository.export(snap, tmp_path / "none", here)
    repository.export(snap, tmp_path / "empty", here, may_lack_submodules=True)
    assert not any((tmp_path / "empty/third_party/lib ä").iterdir())
    assert kernel_repository.absent_submodules(snap, here).keys() == {"third_party/lib ä"}


def test_shallow_clone(repo, here, tmp_path):
    git(repo, "checkout", "-q", "-b", "feature")
    for name in ("two", "three"):
        write(repo, {"a.txt": name})
        commit(repo, name)
    clone = tmp_path / "shallow"
    words = ("--depth=1", "--no-single-branch", f"file://{repo}", clone)
    subprocess.run(["git", "clone", "-q", *words], check=True)
    git(clone, "remote", "set-head", "origin", "main")
    assert contents(clone, "HEAD", here)["a.txt"] == "three"
    store = repository.open_store(clone, here)
    for ask in (repository.snapshot, lambda store, *_: repository.default_base(store, "HEAD")):
        with pytest.raises(UsageError) as caught:
            ask(store, "HEAD~1", here)
        assert "--unshallow" in caught.value.hint


def test_detached_head_and_default_base(repo, here):
    first = git(repo, "rev-parse", "HEAD")
    git(repo, "checkout", "-q", "--detach")
    git(repo, "mv", "a.txt", "A.txt")
    assert {name for name in contents(repo, ".", here) if name.lower() == "a.txt"} == {"A.txt"}
    commit(repo, "detached")
    store = repository.open_store(repo, here)
    assert repository.default_base(store, "HEAD") == repository.default_base(store, ".") == first
    assert not repository.is_dirty(store)


def test_bare_repository_and_worktree(repo, here, tmp_path):
    tree, bare = tmp_path / "tree", tmp_path / "bare.git"
    git(repo, "worktree", "add", "-q", "--detach", str(tree), "HEAD")
    write(tree, {"a.txt": "edited\n"})
    assert [contents(tree, spec, here)["a.txt"] for spec in (".", "HEAD")] == ["edited\n", "one\n"]
    assert contents(repo, ".", here)["a.txt"] == "one\n"
    subprocess.run(["git", "clone", "-q", "--bare", repo, bare], check=True)
    assert contents(bare, "main", here)["a.txt"] == "one\n"
    store = repository.open_store(bare, here)
    assert not repository.is_dirty(store)
    with pytest.raises(UsageError, match="bare repository"):
        repository.snapshot(store, ".", here)


def test_what_is_not_there(repo, here, tmp_path):
    store = repository.open_store(repo, here)
    for spec in ("nothing", "--help", "HEAD~99", "main..HEAD"):
        with pytest.raises(UsageError, match="is no revision of the repository"):
            repository.snapshot(store, spec, here)
    with pytest.raises(UsageError, match="nothing to compare"):
        repository.default_base(store, "HEAD")
    (tmp_path / "empty").mkdir()
    for name in ("empty", "absent"):
        with pytest.raises(UsageError, match="is in no git repository"):
            repository.open_store(tmp_path / name, here)
    empty = new_repository(tmp_path / "no commits")
    with pytest.raises(UsageError, match="is no revision"):
        snapshot(empty, "HEAD", here)
    with pytest.raises(UsageError, match="there is no main branch"):
        git(repo, "branch", "-m", "main", "trunk")
        repository.default_base(store, "HEAD")


def test_nothing_that_the_configuration_names_is_run(repo, here, tmp_path):
    (traces := tmp_path / "traces").mkdir()
    program = tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0 $@" >> {traces}/"$$"\n')
    program.chmod(0o755)
    (hooks := tmp_path / "hooks").mkdir()
    for name in ("post-index-change", "fsmonitor-watchman", "post-checkout", "pre-commit"):
        (hooks / name).symlink_to(program)
    named = "core.fsmonitor core.pager core.editor diff.external gpg.program core.askPass credential.helper"
    settings = dict.fromkeys(named.split(), str(program))
    settings |= {"core.hooksPath": str(hooks), "log.showSignature": "true"}
    for name, value in settings.items():
        git(repo, "config", name, value)
    for path in traces.iterdir():
        path.unlink()
    write(repo, {"a.txt": "edited\n", "new.txt": "new\n"})
    store = repository.open_store(repo, here)
    assert repository.is_dirty(store)
    assert contents(repo, ".", here)["a.txt"] == "edited\n"
    snap = repository.snapshot(store, "HEAD", here)
    assert snap.title == "one"
    repository.export(snap, tmp_path / "out", here)
    repository.default_base(store, ".")
    assert [path.read_text() for path in traces.iterdir()] == []
    git(repo, "status")
    assert list(traces.iterdir()), "git itself would have run them"


DOOR = text_of("repository/door.py")


def test_every_process_goes_through_the_door(repo, tmp_path):
    """GitPython asks for git's version as it is imported: of the null device, which is no program."""
    done = subprocess.run(
        [sys.executable, "-c", DOOR, repo, tmp_path / "cache"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['git'] ['/dev/null']\n"


def test_releases_are_compared_without_git(tmp_path):
    code = "import irdiff.resolve.sides, irdiff.cli.compare_command, sys; assert 'git' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "PATH": str(tmp_path)})


def test_git_that_is_not_installed(repo, here, tmp_path):
    without = replace(here, tool_environment={**here.tool_environment, "PATH": str(tmp_path)})
    with pytest.raises(UsageError, match="git cannot be started") as caught:
        repository.open_store(repo, without)
    assert "install git" in caught.value.hint


def test_branches_and_commits_of_a_fork_are_read_and_kept_up_to_date(repo, here, tmp_path):
    def content(revision):
        spec = f"{repo.as_uri()}@{revision}"
        store = remote_repositories.open_any((spec,), tmp_path, here)
        entries = repository.entries(remote_repositories.snapshot(spec, store, here), here)
        return repository.read([entry for entry in entries if entry.path == "a.txt"])["a.txt"]

    assert content("main") == b"one\n"
    write(repo, {"a.txt": "second\n"})
    second = commit(repo, "second")
    assert [content(name) for name in ("main", "main~1", second)] == [b"second\n", b"one\n", b"second\n"]
    with pytest.raises(UsageError, match="the repository cannot be fetched"):
        remote_repositories.fetched(Remote(url=(tmp_path / "absent").as_uri(), revision="main"), here)


def test_a_branch_of_the_checkout_goes_before_a_fork(repo, here):
    git(repo, "branch", "owner/name@idea")
    store = repository.open_store(repo, here)
    assert remote_repositories.snapshot("owner/name@idea", store, here).store == store
    assert not (here.cache / "remotes").exists()
