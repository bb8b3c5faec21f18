"""What a run says of two revisions that make the same compiler, and that nothing else may say it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.compare import radius
from irdiff.errors import RunFolderError
from irdiff.github import checks
from irdiff.github.checks import Conclusion
from irdiff.model import Edited, EditedFile, FileChange, Run
from irdiff.report import edit_coverage, headline, markdown
from irdiff.run import run_checks


def _edited(*files: tuple[str, str, bool], of_kernels: bool = False, identical: bool = True) -> Edited:
    rows = [
        EditedFile(path=path, change=FileChange.CHANGED, feeds=(feeds,), counts=counts)
        for path, feeds, counts in files
    ]
    return Edited(files=tuple(rows), of_kernels=of_kernels, identical=identical)


@pytest.fixture
def same(build) -> Run:
    found = _edited(("docs/a.md", "documents", False), ("python/test/t.py", "tests", False))
    run = build.run()
    return replace(
        run, edited=found, cases=(), launches={}, groups=(), summary=radius.summarize((), run.targets)
    )


def test_the_headline_and_the_check(same: Run) -> None:
    assert checks.conclusion(same) is Conclusion.SUCCESS
    assert "2 files differ: documents (1), tests (1)" in markdown.render(same, Path("nowhere"))
    run_checks.check_run(same, Path("run.json"))


def test_a_run_without_cases_is_no_success_by_itself(same: Run) -> None:
    assert same.edited is not None
    bare = replace(same, edited=replace(same.edited, identical=False))
    assert checks.conclusion(bare) is Conclusion.FAILURE
    assert checks.conclusion(replace(same, edited=None)) is Conclusion.FAILURE


def test_cases_that_were_compared_all_the_same_are_what_is_said(build, same: Run) -> None:
    """As with `--no-cache`: no headline and no gate may pass over them."""
    run = replace(build.run(build.case()), edited=same.edited)
    assert not edit_coverage.same_compiler(run)
    assert headline.of(run) != edit_coverage.identical(same.edited or pytest.fail())


def test_a_run_of_the_same_compiler_has_no_cases(build, same: Run) -> None:
    case = build.case()
    run = replace(build.run(case), edited=same.edited)
    with pytest.raises(RunFolderError, match="called one of the same compiler, and has cases"):
        run_checks.check_run(run, Path("run.json"))


def test_builds_that_made_the_same_library_are_said_to(build) -> None:
    found = _edited(("lib/a.cpp", "native code", True), identical=False)
    run = replace(build.run(build.case()), edited=found)
    same = replace(run, head=replace(run.head, digest=run.base.digest))
    assert "byte by byte" not in edit_coverage.differences(run)
    assert edit_coverage.differences(same).endswith(
        "both sides have the same compiler all the same, byte by byte"
    )
    kernels = replace(same, edited=replace(found, of_kernels=True))
    assert "byte by byte" not in edit_coverage.differences(kernels), "one release compiles both: nobody asked"


def test_what_differs_and_what_follows() -> None:
    found = _edited(
        *((f"lib/{n}.cpp", "native code", True) for n in range(6)),
        ("python/triton/a.py", "Python frontend", True),
        ("README.md", "documents", False),
        identical=False,
    )
    assert edit_coverage.differing(found) == (
        "8 files differ: native code (6: lib/0.cpp, lib/1.cpp, lib/2.cpp, lib/3.cpp and 2 more), "
        "Python frontend (1: python/triton/a.py), documents (1)"
    )
    assert edit_coverage.consequence(found).startswith("native code differs")
    python = _edited(("python/triton/a.py", "Python frontend", True), identical=False)
    assert edit_coverage.consequence(python) == "only Python differs: both sides share one native build"
    kernels = _edited(("LICENSE", "documents", False), of_kernels=True)
    assert "nothing was compared (1 file looked at)" in edit_coverage.consequence(kernels)
