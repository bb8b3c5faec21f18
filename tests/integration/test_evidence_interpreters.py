"""Kernels in the site-packages of an interpreter: what differs between two interpreters, and what changes in one.

Both interpreters have the very same compiler, linked from the shared toolchain, so that nothing but the packages
beside it tells them apart.
"""

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Repository

pytestmark = [pytest.mark.integration, pytest.mark.timeout(1800)]

ROWS = {row.name: row for row in rows.load()}


@dataclass(frozen=True)
class Interpreter:
    """A virtual environment with the shared compiler and packages of its own."""

    path: Path

    @property
    def side(self):
        return f"python:{self.path / 'bin' / 'python'}"

    def install(self, files):
        """Those below `src`, into its site-packages."""
        for name, text in files.items():
            if name.startswith("src/"):
                comparing.write(self.packages / name.removeprefix("src/"), text)

    @property
    def packages(self):
        return next(self.path.glob("lib/python*/site-packages"))


def new_interpreter(path, toolchain):
    subprocess.run([toolchain, "-m", "venv", "--without-pip", path], check=True)
    made = Interpreter(path)
    for entry in next(toolchain.parent.parent.glob("lib/python*/site-packages")).iterdir():
        (made.packages / entry.name).symlink_to(entry)
    return made


def corpus_of(folder, files):
    """The workloads of rows as a corpus that both sides share."""
    for name, text in files.items():
        if name.startswith("bench/"):
            comparing.write(folder / name.removeprefix("bench/"), text)
    return "--corpus", str(folder)


@pytest.fixture(scope="module")
def toolchain(shared_cache):
    return comparing.toolchain_python(shared_cache)


def test_a_package_edited_in_place(toolchain, cache, tmp_path):
    """The same interpreter with other packages is another side, and a missing module is looked for again."""
    edited, missing = ROWS["helper_in_another_file"], ROWS["missing_module_at_base"]
    words = corpus_of(tmp_path / "corpus", {**edited.base, **missing.base})
    base, head = (new_interpreter(tmp_path / name, toolchain) for name in ("base", "head"))
    for interpreter in (base, head):
        interpreter.install({**edited.base, **missing.base})

    def found():
        made = comparing.compare(base.side, head.side, *words, cache=cache, repo=tmp_path)
        return [made.verdicts_of(row.workload) for row in (edited, missing)]

    assert found() == [["unchanged"], ["failing"]]
    head.install({**edited.head, **missing.head})
    assert found() == [["changed"], ["fixed"]]


def test_a_file_elsewhere_that_changes_between_two_comparisons(cache, tmp_path):
    """Neither revision changes; what both read outside of the repository does."""
    row = ROWS["own_constant"]
    outside = tmp_path / "scale.txt"
    reading = f"SCALE = tl.constexpr(float(open({str(outside)!r}).read()))\n\n\n@triton.jit"
    kernel = f"src/{row.name}/kernel.py"
    text = row.base[kernel].replace("@triton.jit", reading).replace("x * 2.0", "x * SCALE")
    repo = Repository.new(tmp_path / "kernels")
    repo.commit("base", row.base)
    repo.commit("head", {**row.base, kernel: text})
    for scale, expected in (("2.0", "unchanged"), ("3.0", "changed"), ("2.0", "unchanged")):
        outside.write_text(scale)
        found = comparing.compare_commits(repo, "base", "head", cache=cache)
        assert found.verdicts_of(row.workload) == [expected], scale
