"""Kernels in the site-packages of an interpreter: what differs between two interpreters, and what changes in one.

Both interpreters have the very same compiler, so that nothing but the packages beside it tells them apart.
"""

import pytest

from tests.programs import edited_toolchain
from tests.programs.evidence import comparing, rows
from tests.programs.evidence.comparing import Repository

pytestmark = pytest.mark.timeout(1800)

ROWS = {row.name: row for row in rows.load()}


def write_below(prefix, folder, files):
    """Those whose path begins so, without it."""
    for name, text in files.items():
        if name.startswith(prefix):
            comparing.write(folder / name.removeprefix(prefix), text)


def test_a_package_edited_in_place(newest, cache, tmp_path):
    """The same interpreter with other packages is another side, and a missing module is looked for again."""
    edited, missing = ROWS["helper_in_another_file"], ROWS["missing_module_at_base"]
    files = {**edited.base, **missing.base}
    write_below("bench/", tmp_path / "corpus", files)
    for name in ("base", "head"):
        packages = edited_toolchain.beside(newest, tmp_path / name)
        write_below("src/", packages, files)
    sides = [f"python:{tmp_path}/{name}/bin/python" for name in ("base", "head")]

    def found():
        words = ("--corpus", str(tmp_path / "corpus"))
        made = comparing.compare(*sides, *words, cache=cache, repo=tmp_path)
        return [made.verdicts_of(row.workload) for row in (edited, missing)]

    assert found() == [["unchanged"], ["failing"]]
    write_below("src/", packages, {**edited.head, **missing.head})
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
