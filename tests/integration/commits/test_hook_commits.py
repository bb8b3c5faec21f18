"""The pre-push hook: quiet where nothing can change, never in the way unless asked to be."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from checkouts import commit, edit, git, new_repository, write

pytestmark = pytest.mark.integration

KERNEL = """\
import triton
import triton.language as tl


@triton.jit
def scale(x_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(x_ptr + offsets, x * 2.0, mask=offsets < n)
"""
WORKLOAD = """\
from irdiff_corpus import launch, tensor
from scaling import scale


def run(x):
    scale[(64,)](x, x.numel(), BLOCK=1024)


LAUNCHES = {"fp32": launch(run, tensor((1 << 16,), "fp32"))}
"""


@pytest.fixture
def pushing(tmp_path: Path) -> Path:
    """A repository of one kernel, pushed to a remote once."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", remote], check=True)
    repo = new_repository(tmp_path / "kernels")
    plan = '[kernels]\nworkloads = "irdiff"\ntoolchain = "triton==3.9.0"\n'
    files = {"irdiff.toml": plan, "scaling.py": KERNEL, "irdiff/a/scale.py": WORKLOAD, "README.md": "x\n"}
    write(repo, files)
    commit(repo, "first")
    git(repo, "remote", "add", "origin", str(remote))
    git(repo, "push", "-q", "-u", "origin", "main")
    git(repo, "checkout", "-q", "-b", "feature")
    return repo


def push(repo: Path, cache: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", "push", "-q", "origin", "HEAD"],
        cwd=repo,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "IRDIFF_CACHE": str(cache)},
    )


def test_a_push(irdiff, pushing: Path, cache: Path) -> None:
    assert irdiff("hook", "install", "--", "--target", "sm_90", cwd=pushing).code == 0
    edit(pushing, "README.md", "x", "y")
    commit(pushing, "documents")
    quiet = push(pushing, cache)
    assert (quiet.returncode, quiet.stderr) == (0, ""), "no relevant path changed"

    edit(pushing, "scaling.py", "2.0", "3.0")
    commit(pushing, "a kernel")
    told = push(pushing, cache)
    assert told.returncode == 0, "it never stops a push unless asked to"
    assert "1 of 1 kernel changed (scale)" in told.stderr
    assert "changed" in told.stderr


def test_blocking_and_the_budget(irdiff, pushing: Path, cache: Path) -> None:
    assert irdiff("hook", "install", "--block", "--", "--target", "sm_90", cwd=pushing).code == 0
    edit(pushing, "scaling.py", "2.0", "3.0")
    commit(pushing, "a kernel")
    stopped = push(pushing, cache)
    assert stopped.returncode == 1
    assert "--no-verify" in stopped.stderr
    irdiff("hook", "install", "--block", "--budget", "0.2", "--", "--no-cache", cwd=pushing)
    late = push(pushing, cache)
    assert late.returncode == 0
    assert "time budget is used up" in late.stderr


def test_a_hook_of_someone_else_stays(irdiff, pushing: Path) -> None:
    hook = pushing / ".git" / "hooks" / "pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 0\n")
    refused = irdiff("hook", "install", cwd=pushing)
    assert refused.code == 2
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"
    assert irdiff("hook", "install", "--force", cwd=pushing).code == 0
    assert "irdiff" in hook.read_text()
