"""Bisect over commits of a Triton checkout, over an adopted release."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from checkouts import commit, edit, git, write

pytestmark = pytest.mark.integration

ADD = "elementwise/vector_add:fp32-16m"
NVIDIA = "third_party/nvidia/backend/compiler.py"
AMD = "third_party/amd/backend/compiler.py"
SEMANTIC = "python/triton/language/semantic.py"


@pytest.fixture
def history(irdiff, own_cache: Path, triton_repository: Path) -> tuple[Path, dict[str, str]]:
    """A line of commits of every kind, with a side branch merged and a commit that does not start."""
    repo, commits = triton_repository, {}
    assert irdiff("toolchain", "adopt", "HEAD", "triton==3.9.0", cwd=repo).code == 0
    commits["first"] = git(repo, "rev-parse", "HEAD")

    def step(name: str, path: str, before: str, after: str) -> None:
        edit(repo, path, before, after)
        commits[name] = commit(repo, name)

    step("comment", SEMANTIC, "class ", "# a comment\nclass ")
    step("amd", AMD, "if knobs.amd.use_buffer_ops:", "if False:")
    git(repo, "checkout", "-q", "-b", "side")
    step("nvidia", NVIDIA, "passes.ttgpuir.add_coalesce(pm)", "pass")
    git(repo, "checkout", "-q", "main")
    write(repo, {"README.md": "about\n"})
    commits["readme"] = commit(repo, "readme")
    git(repo, "merge", "-q", "--no-edit", "side")
    commits["merge"] = git(repo, "rev-parse", "HEAD")
    package, error = "python/triton/__init__.py", "raise ImportError('not yet')\n"
    step("unbuildable", package, "__version__", f"{error}__version__")
    step("cured", package, error, "")
    step("frontend", SEMANTIC, "create_fadd(input.handle", "create_fsub(input.handle")
    step("raises", NVIDIA, "        emuTF32", "        raise ValueError('on purpose')\n        emuTF32")
    commits["last"] = commit(repo, "last")
    return repo, commits


def test_each_commit_is_found(irdiff, history, tmp_path: Path) -> None:
    repo, commits = history

    def found(good: str, bad: str, target: str, *more: str) -> dict:
        path = tmp_path / "finding.json"
        words = ("bisect", commits[good], commits[bad], "--case", f"{ADD}@{target}", *more)
        done = irdiff(*words, "--json", str(path), cwd=repo)
        assert done.code == 0, done.stderr
        finding = json.loads(path.read_text())
        names = {sha: name for name, sha in commits.items()}
        finding["names"] = [names[sha] for sha in finding["commits"]]
        finding["stdout"] = done.stdout
        return finding

    amd = found("first", "cured", "gfx942")
    assert amd["names"] == ["amd"]
    assert (amd["verdict"], amd["origin"]) == ("changed", "ttgir")
    assert any(line.startswith("-") for line in amd["diff"])
    assert "first commit that changes" in amd["stdout"]

    nvidia = found("first", "cured", "sm_90")
    assert nvidia["names"] == ["nvidia"], "inside of the side branch, not its merge"

    frontend = found("first", "frontend", "sm_90", "--stage", "ttir")
    assert frontend["names"] == ["frontend"]
    assert any("subf" in line for line in frontend["diff"])

    raises = found("frontend", "last", "sm_90")
    assert raises["names"] == ["raises"]
    assert raises["verdict"] == "broken"
    assert any("on purpose" in line for line in raises["diff"]), "the traceback stands for the diff"

    skipping = found("merge", "frontend", "gfx942")
    assert skipping["names"] == ["frontend"]
    assert set(skipping["skipped"]) == set(skipping["tried"]) & {commits["unbuildable"]}


def test_nothing_to_find(irdiff, history) -> None:
    repo, commits = history
    same = irdiff("bisect", commits["first"], commits["comment"], "--case", f"{ADD}@sm_90", cwd=repo)
    assert same.code == 2
    assert "is the same at" in same.stderr
    turned = irdiff("bisect", commits["cured"], commits["first"], "--case", f"{ADD}@sm_90", cwd=repo)
    assert turned.code == 2
    assert "no ancestor" in turned.stderr
