"""The hook of pre-commit, as git runs it: quiet where nothing can change, never in the way unless asked to be."""

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.programs.checkouts import PLAN, SQUARE, commit, edit, git, new_repository, write

ROOT = Path(__file__).parents[3]


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


def hook(repo, *words):
    """The entry of `.pre-commit-hooks.yaml` with these arguments, for git to run."""
    (entry,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    _, *command = entry["entry"].split()
    script = repo / ".git" / "hooks" / "pre-push"
    script.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-m', 'irdiff', *command, *words])}\n")
    script.chmod(0o755)


def test_pushes_that_it_reports_and_those_that_it_blocks(pushing, cache):
    long = ("--budget", "10m")
    hook(pushing, *long, "--", "--target", "sm_90")
    edit(pushing, "README.md", "x", "y")
    commit(pushing, "documents")
    quiet = push(pushing, cache)
    assert quiet.returncode == 0 and "1 case did not change" in quiet.stderr, "any file may be read"

    edit(pushing, "mykernels.py", "x * x", "x + x")
    commit(pushing, "a kernel")
    told = push(pushing, cache)
    assert told.returncode == 0, "it never stops a push unless asked to"
    assert "1 of 1 case changed (square)" in told.stderr

    edit(pushing, "mykernels.py", "x + x", "x - x")
    commit(pushing, "again")
    hook(pushing, *long, "--block", "--", "--target", "sm_90")
    stopped = push(pushing, cache)
    assert stopped.returncode == 1
    assert "--no-verify" in stopped.stderr
    hook(pushing, "--block", "--budget", "0.2", "--", "--no-cache")
    late = push(pushing, cache)
    assert late.returncode == 0
    assert "time budget is used up" in late.stderr
