"""The first hour of a kernel author, from the README alone: a real repository, a real Triton, six questions.

Each question is a commit, and has one right answer. On a quiet machine each is answered within 30 seconds.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from checkouts import commit, edit, git, new_repository, write

pytestmark = pytest.mark.integration

ANSWER_WITHIN_S = 30.0
PROJECTS = Path(__file__).parent / "projects"
TARGETS = ("--target", "sm_90", "--target", "gfx942")
LIGER = ("liger", ("--toolchain", "triton==3.9.0"))
VLLM = ("vllm", ("--with", "torch==2.13.0"))  # its kernels import torch
both = pytest.mark.parametrize(
    "project", [LIGER, pytest.param(VLLM, marks=pytest.mark.wide)], ids=lambda p: p[0]
)


class Author:
    """Somebody with a fresh clone, who types what the README says."""

    def __init__(self, repo: Path, irdiff: Callable) -> None:
        self.repo, self._irdiff = repo, irdiff

    def types(self, *words: str, code: int = 0):
        result = self.fails(*words, code=code)
        assert "Traceback" not in result.stderr + result.stdout
        return result

    def fails(self, *words: str, code: int):
        started = time.monotonic()
        result = self._irdiff(*words, cwd=self.repo)
        self.took_s = time.monotonic() - started
        assert result.code == code, result.stderr + result.stdout
        return result

    def asks(self, message: str):
        """Commits what was edited, and compares it with what was there before."""
        commit(self.repo, message)
        result = self.types("compare", "HEAD~1", "HEAD", *TARGETS)
        if os.getloadavg()[0] < (os.cpu_count() or 1):
            assert self.took_s < ANSWER_WITHIN_S
        return result

    def replaces(self, old: str, new: str) -> None:
        """In every file that git knows."""
        for name in git(self.repo, "grep", "-lw", old).splitlines():
            path = self.repo / name
            path.write_text(re.sub(rf"\b{old}\b", new, path.read_text()))


@pytest.fixture
def author(project: tuple[str, tuple[str, ...]], tmp_path: Path, irdiff: Callable) -> Author:
    """With recorded workloads and an irdiff.toml, both committed: capture, init, commit."""
    name, words = project
    repo = new_repository(tmp_path / name)
    files = {
        str(path.relative_to(PROJECTS / name)): path.read_text() for path in (PROJECTS / name).rglob("*.*")
    }
    write(
        repo, {**files, "requirements.txt": "torch==2.13.0\ntriton==3.9.0\n", ".gitignore": "__pycache__/\n"}
    )
    commit(repo, "Kernels")
    somebody = Author(repo, irdiff)
    said = somebody.types("capture", *words, "bench/run.py", "--small").stdout
    then = re.search(r"next: irdiff (init.*), then commit both; after a change: irdiff compare\n", said)
    assert then, said
    somebody.types(*then[1].split())
    commit(repo, "Workloads")
    somebody.types("compare", "HEAD~1", "HEAD", *TARGETS)  # the base is warm from here on
    return somebody


def changed(result) -> set[str]:
    """Kernels with a changed case; every other case must be unchanged."""
    verdicts = result.verdicts()
    assert set(verdicts) <= {"changed", "unchanged"}, verdicts
    launches = result.run["launches"]
    return {
        launches[case["launches"]["head"]]["kernel"]
        for case in result.run["cases"]
        if case["verdict"] == "changed"
    }


@both
def test_six_questions(author: Author) -> None:
    kernels = f"src/{author.repo.name}/ops/norm.py"
    text = (author.repo / "irdiff-captured" / "run" / "norm_kernel.py").read_text()
    assert (
        f"\nfrom {author.repo.name}.ops.norm import norm_kernel\n" in text and "def norm_kernel" not in text
    )

    edit(
        author.repo,
        kernels,
        "    # the mean of squares",
        "    # the mean of all squares, in a longer\n    # comment",
    )
    assert changed(author.asks("A comment")) == set()

    edit(author.repo, kernels, "x * scale", "x * (scale + 1.0)")
    real = author.asks("A real change")
    assert changed(real) == {"norm_kernel"}
    head = git(author.repo, "rev-parse", "--short=7", "HEAD")
    assert re.search(rf"^HEAD~1 \w{{7}} -> HEAD {head}, triton 3\.9\.0  in ", real.stdout, re.MULTILINE)
    assert re.search(rf"^run folder: .*HEAD-1-\w{{7}}-HEAD-{head}$", real.stdout, re.MULTILINE)

    edit(author.repo, f"src/{author.repo.name}/ops/math.py", "tl.sigmoid(x)", "tl.sigmoid(1.5 * x)")
    assert changed(author.asks("A helper in another file")) == {"gate_kernel"}

    edit(author.repo, kernels, "num_warps=8", "num_warps=2")
    assert changed(author.asks("An option")) == {"norm_kernel"}

    author.replaces("gate_kernel", "swish_gate_kernel")
    renamed = author.asks("A rename")
    assert changed(renamed) == set()
    assert "renamed: gate_kernel -> swish_gate_kernel\n" in renamed.stdout

    edit(author.repo, "requirements.txt", "triton==3.9.0", "triton==3.8.0")
    bump = author.asks("Another Triton")
    assert (bump.run["base"]["version"], bump.run["head"]["version"]) == ("3.9.0", "3.8.0")
    assert bump.run["summary"]["compared"] == len(bump.run["cases"]) == len(real.run["cases"])
    assert "changed files" not in bump.stdout, "the pin was read: it is what the sides say"
    assert re.search(r", triton 3\.9\.0 \(\w{12}\) -> HEAD \w{7}, triton 3\.8\.0 \(", bump.stdout)


@both
def test_a_program_shows_what_is_computed_before_a_launch(author: Author) -> None:
    """The recorded workloads give the number of warps as it was: only the program computes it."""
    edit(author.repo, f"src/{author.repo.name}/ops/gate.py", "else 4", "else 2")
    commit(author.repo, "Fewer warps for short rows")
    recorded = author.types("compare", "HEAD~1", "HEAD", *TARGETS)
    assert changed(recorded) == set()
    idle = f"no launch runs settings (src/{author.repo.name}/ops/gate.py), which changed: not compared"
    assert idle in recorded.stdout
    words = ("compare", "HEAD~1", "HEAD", *TARGETS, "--program", "bench/run.py --small", "--configs", "1")
    result = author.types(*words)
    assert changed(result) == {"gate_kernel"}
    assert "of each autotuning list 1 configs are compared (--configs)" in " ".join(result.run["notes"])
    told = author.types("explain", "last", "1").stdout
    assert "option num_warps: 4" in told and "option num_warps: 2" in told
    assert not (author.repo / "program").exists() and not git(author.repo, "status", "--porcelain")


@pytest.mark.parametrize("project", [LIGER], ids=["liger"])
def test_messages_on_the_way(author: Author) -> None:
    """What stops a new user says what to type next."""
    write(author.repo, {"src/liger/ops/needy.py": "import einops\nfrom liger.ops.norm import norm_kernel\n"})
    workload = author.repo / "irdiff-captured" / "run" / "norm_kernel.py"
    workload.write_text(workload.read_text().replace("from liger.ops.norm", "from liger.ops.needy"))
    commit(author.repo, "Needs a package")
    words = ("compare", "HEAD", "HEAD", "--no-cache", *TARGETS, "--case", "run/norm_kernel")
    lacking = author.types(*words, code=4)
    assert "liger/ops/needy.py needs the package einops, which triton==3.9.0 has not" in lacking.stderr
    assert "next: compare again --with einops, or write packages" in lacking.stderr

    workload.write_text(
        re.sub(r"norm_kernel\[.*\]", "norm_kernel", workload.read_text()).replace("needy", "norm")
    )
    commit(author.repo, "A kernel without its grid")
    bare = author.types(*words, code=4)
    assert "write launch(norm_kernel[grid], x_ptr, out_ptr, n, eps, BLOCK)" in bare.stdout

    own = author.types("capture", "--python", "/usr/bin/env", "bench/run.py", code=3)
    assert (own.stderr.count("\n") <= 4 and "next: " in own.stderr) or "could not record" in own.stderr


@pytest.mark.parametrize("project", [LIGER], ids=["liger"])
def test_the_first_comparison_needs_no_workloads_at_base(author: Author) -> None:
    """The base is from before the workloads: those of head launch its kernels."""
    edit(author.repo, "src/liger/ops/norm.py", "x * scale", "x * (scale + 1.0)")
    commit(author.repo, "A real change")
    result = author.types("compare", "HEAD~2", "HEAD", *TARGETS)
    assert changed(result) == {"norm_kernel"}
    releases = author.types("compare", "triton==3.8.0", "triton==3.9.0", *TARGETS)
    assert {case["workload"] for case in releases.run["cases"]} == {"run/norm_kernel", "run/gate_kernel"}
    assert re.search(r"^working tree (\w{7}), triton 3\.8\.0 \(", releases.stdout, re.MULTILINE)


@pytest.mark.parametrize("project", [LIGER], ids=["liger"])
def test_the_program_that_irdiff_toml_names(author: Author) -> None:
    """It runs on both sides, once for each target; one that fails is the first thing that is said."""
    (author.repo / "irdiff.toml").unlink()
    author.types("init", "bench/run.py --small", *TARGETS)
    commit(author.repo, "irdiff.toml names a program")
    edit(author.repo, "src/liger/ops/gate.py", "else 4", "else 2")
    commit(author.repo, "Fewer warps for short rows")
    result = author.types("compare", "HEAD~1", "HEAD", "--configs", "1")
    assert [target["name"] for target in result.run["targets"]] == ["sm_90", "gfx942"]
    assert changed(result) == {"gate_kernel"}

    program = author.repo / "bench" / "run.py"
    program.write_text(program.read_text() + "\n1 / 0\n")
    commit(author.repo, "A program that fails")
    said = author.types("compare", "HEAD~1", "HEAD", "--configs", "1").stdout
    assert said.startswith(
        "The program run failed at head, on both targets: ZeroDivisionError: division by zero."
    )

    write(author.repo, {"README.md": "Kernels\n", "src/liger/ops/new.py": ""})
    commit(author.repo, "It fails as before")
    failed = author.fails("compare", "HEAD~1", "HEAD", "--configs", "1", code=4)
    assert "\nZeroDivisionError: division by zero\n" in failed.stderr
