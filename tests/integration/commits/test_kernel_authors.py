"""The first hour of a kernel author, from the README alone: a real repository, a real Triton, six questions.

Each question is a commit, and has one right answer.
"""

import json
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.checkouts import commit, edit, git, new_repository, write
from tests.programs.evidence import comparing
from tests.texts import TEXTS

PROJECTS = TEXTS / "kernel_authors"
TARGET = ("--target", "sm_90")
LIGER = ("liger", ("--toolchain", "triton==3.9.0"))
VLLM = ("vllm", ("--with", "torch==2.13.0"))  # its kernels import torch
both = pytest.mark.parametrize(
    "project", [LIGER, pytest.param(VLLM, marks=pytest.mark.wide)], ids=lambda p: p[0], indirect=True
)
liger = pytest.mark.parametrize("project", [LIGER], ids=["liger"], indirect=True)


@dataclass
class Author:
    """Somebody with a fresh clone, who types what the README says."""

    repo: Path
    cache: Path

    def types(self, *words, code=0):
        done = comparing.irdiff(*words, cache=self.cache, cwd=self.repo)
        assert done.code == code, done.stderr + done.stdout
        return done

    def compares(self, *words):
        found = comparing.compare(*(words or ("HEAD~1", "HEAD")), cache=self.cache, repo=self.repo)
        assert found.run is not None, found.stderr
        return found

    def asks(self, message):
        """Commits what was edited, and compares it with what was there before."""
        commit(self.repo, message)
        return self.compares()

    def replaces(self, old, new):
        """In every file that git knows."""
        for name in git(self.repo, "grep", "-lw", old).splitlines():
            path = self.repo / name
            path.write_text(re.sub(rf"\b{old}\b", new, path.read_text()))


@pytest.fixture(scope="module")
def project(request, shared_cache, tmp_path_factory):
    """With recorded workloads and an irdiff.toml, both committed: capture, init, commit."""
    name, words = request.param
    repo = new_repository(tmp_path_factory.mktemp("author") / name)
    first = "import torch\n" if name == "vllm" else ""
    for path in (PROJECTS / "src").rglob("*.py"):
        place = str(path.relative_to(PROJECTS)).replace("liger", name)
        write(repo, {place: first + path.read_text().replace("liger", name)})
    write(repo, {"bench/run.py": (PROJECTS / f"{name}.py").read_text()})
    write(repo, {"requirements.txt": "torch==2.13.0\ntriton==3.9.0\n", ".gitignore": "__pycache__/\n"})
    commit(repo, "Kernels")
    somebody = Author(repo, comparing.new_cache(repo.parent / "cache", shared_cache))
    said = somebody.types("capture", *words, "bench/run.py", "--small").stdout
    then = re.search(r"next: irdiff (init.*), then commit both; after a change: irdiff compare\n", said)
    assert then, said
    somebody.types(*then[1].split())
    commit(repo, "Workloads")
    return repo


@pytest.fixture
def author(project, cache, tmp_path):
    return Author(Path(shutil.copytree(project, tmp_path / project.name, symlinks=True)), cache)


def changed(found):
    """Kernels with a changed case; every other case must be unchanged."""
    run = found if isinstance(found, dict) else found.run
    assert {case["verdict"] for case in run["cases"]} <= {"changed", "unchanged"}
    cases = (case for case in run["cases"] if case["verdict"] == "changed")
    return {run["launches"][case["launches"]["head"]]["kernel"] for case in cases}


@both
def test_six_questions(author):
    name = author.repo.name
    kernels = f"src/{name}/ops/norm.py"
    text = (author.repo / "irdiff-captured" / "run" / "norm_kernel.py").read_text()
    assert f"\nfrom {name}.ops.norm import norm_kernel\n" in text and "def norm_kernel" not in text

    comment = "    # the mean of squares"
    edit(author.repo, kernels, comment, f"{comment}, in a longer\n    # comment")
    assert changed(author.asks("A comment")) == set()

    edit(author.repo, kernels, "x * scale", "x * (scale + 1.0)")
    real = author.asks("A real change")
    assert changed(real) == {"norm_kernel"}
    head = git(author.repo, "rev-parse", "--short=7", "HEAD")
    assert re.search(rf"^HEAD~1 \w{{7}} -> HEAD {head}, triton 3\.9\.0, in ", real.stdout, re.MULTILINE)

    edit(author.repo, f"src/{name}/ops/math.py", "tl.sigmoid(x)", "tl.sigmoid(1.5 * x)")
    assert changed(author.asks("A helper in another file")) == {"gate_kernel"}

    edit(author.repo, kernels, "num_warps=8", "num_warps=2")
    assert changed(author.asks("An option")) == {"norm_kernel"}

    author.replaces("gate_kernel", "swish_gate_kernel")
    renamed = author.asks("A rename")
    assert changed(renamed) == set()
    assert "renamed: gate_kernel -> swish_gate_kernel\n" in renamed.stdout

    edit(author.repo, "requirements.txt", "triton==3.9.0", "triton==3.8.0")
    bump = author.asks("Another Triton")
    assert bump.run and real.run
    assert (bump.run["base"]["version"], bump.run["head"]["version"]) == ("3.9.0", "3.8.0")
    assert bump.run["summary"]["compared"] == len(bump.cases()) == len(real.cases())
    assert "changed files" not in bump.stdout, "the pin was read: it is what the sides say"


@both
def test_a_program_shows_what_is_computed_before_a_launch(author):
    """The recorded workloads give the number of warps as it was: only the program computes it."""
    edit(author.repo, f"src/{author.repo.name}/ops/gate.py", "else 4", "else 2")
    recorded = author.asks("Fewer warps for short rows")
    assert changed(recorded) == set()
    assert [row["not_run"] for row in recorded.run["reach"]["files"]] == [["settings"]]
    several = ("--program", "bench/run.py", "--program", "bench/run.py --small")
    found = author.compares("HEAD~1", "HEAD", *several, "--configs", "1")
    assert changed(found) == {"gate_kernel"}
    assert {case["id"].partition("/gate")[0] for case in found.cases() if case["verdict"] == "changed"} == {
        "program/run:run",
        "program/run:small",
    }
    assert "only the first config of each autotuner was compared (--configs)" in " ".join(found.run["notes"])
    assert not (author.repo / "program").exists() and not git(author.repo, "status", "--porcelain")


@liger
def test_a_workload_without_its_grid_is_told_what_to_write(author):
    workload = author.repo / "irdiff-captured" / "run" / "norm_kernel.py"
    workload.write_text(re.sub(r"norm_kernel\[.*\]", "norm_kernel", workload.read_text()))
    commit(author.repo, "A kernel without its grid")
    bare = author.types("compare", "HEAD", "HEAD", "--no-cache", *TARGET, "--case", "run/norm_kernel", code=4)
    assert "write launch(norm_kernel[grid], x_ptr, out_ptr, n, eps, BLOCK)" in bare.stdout


@liger
def test_the_first_comparison_needs_no_workloads_at_base(author):
    """The base is from before the workloads: those of head launch its kernels."""
    edit(author.repo, "src/liger/ops/norm.py", "x * scale", "x * (scale + 1.0)")
    commit(author.repo, "A real change")
    assert changed(author.compares("HEAD~2", "HEAD")) == {"norm_kernel"}
    releases = author.compares("triton==3.8.0", "triton==3.9.0")
    assert {case["workload"] for case in releases.cases()} == {"run/norm_kernel", "run/gate_kernel"}
    assert re.search(r"^working tree (\w{7}), triton 3\.8\.0 \(", releases.stdout, re.MULTILINE)


@liger
def test_the_program_that_irdiff_toml_names(author, tmp_path):
    """It runs on both sides, once for each target; one that fails is the first thing that is said."""
    (author.repo / "irdiff.toml").unlink()
    author.types("init", "bench/run.py --small", *TARGET, "--target", "gfx942")
    commit(author.repo, "irdiff.toml names a program")
    edit(author.repo, "src/liger/ops/gate.py", "else 4", "else 2")
    commit(author.repo, "Fewer warps for short rows")
    words = ("compare", "HEAD~1", "HEAD", "--configs", "1", "--no-recheck", "--no-attribute")
    made = tmp_path / "run.json"
    author.types(*words, "--json", str(made))
    run = json.loads(made.read_text())
    assert [target["name"] for target in run["targets"]] == ["sm_90", "gfx942"]
    assert changed(run) == {"gate_kernel"}

    program = author.repo / "bench" / "run.py"
    program.write_text(program.read_text() + "\n1 / 0\n")
    commit(author.repo, "A program that fails")
    assert author.types(*words).stdout.startswith(
        "bench/run.py fails at head, on both targets: ZeroDivisionError: division by zero, line "
    )

    write(author.repo, {"README.md": "Kernels\n", "src/liger/ops/new.py": ""})
    commit(author.repo, "It fails as before")
    assert "\nZeroDivisionError: division by zero\n" in author.types(*words, code=4).stderr
