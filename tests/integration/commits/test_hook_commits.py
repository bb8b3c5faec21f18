"""The pre-push hook: quiet where nothing can change, never in the way unless asked to be."""

import os
import subprocess

import pytest

from tests.programs.checkouts import PLAN, SQUARE, commit, edit, git, new_repository, write


@pytest.fixture
def pushing(tmp_path):
    """A repository of one kernel, pushed to a remote once."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", remote], check=True)
    repo = new_repository(tmp_path / "kernels")
    write(repo, {**SQUARE, "irdiff.toml": PLAN, "README.md": "x\n"})
    commit(repo, "first")
    git(repo, "remote", "add", "origin", str(remote))
    git(repo, "push", "-q", "-u", "origin", "main")
    git(repo, "checkout", "-q", "-b", "feature")
    return repo


def push(repo, cache):
    command, env = ["git", "push", "-q", "origin", "HEAD"], {**os.environ, "IRDIFF_CACHE": str(cache)}
    return subprocess.run(command, cwd=repo, check=False, capture_output=True, text=True, env=env)


def test_pushes_that_it_reports_and_those_that_it_blocks(irdiff, pushing, cache):
    long = ("hook", "install", "--budget", "10m")
    assert irdiff(*long, "--", "--target", "sm_90", cwd=pushing).code == 0
    edit(pushing, "README.md", "x", "y")
    commit(pushing, "documents")
    quiet = push(pushing, cache)
    assert quiet.returncode == 0 and "1 kernel did not change" in quiet.stderr, "any file may be read"

    edit(pushing, "mykernels.py", "x * x", "x + x")
    commit(pushing, "a kernel")
    told = push(pushing, cache)
    assert told.returncode == 0, "it never stops a push unless asked to"
    assert "1 of 1 kernel changed (square)" in told.stderr

    edit(pushing, "mykernels.py", "x + x", "x - x")
    commit(pushing, "again")
    assert irdiff(*long, "--block", "--", "--target", "sm_90", cwd=pushing).code == 0
    stopped = push(pushing, cache)
    assert stopped.returncode == 1
    assert "--no-verify" in stopped.stderr
    irdiff("hook", "install", "--block", "--budget", "0.2", "--", "--no-cache", cwd=pushing)
    late = push(pushing, cache)
    assert late.returncode == 0
    assert "time budget is used up" in late.stderr
