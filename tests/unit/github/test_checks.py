from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from irdiff.github import checks
from irdiff.github.checks import Conclusion
from irdiff.model import ChangedFile, FileChange, Reach, Run, RuntimeEdit, Verdict


@pytest.fixture
def run(build: Any) -> Run:
    changed = "a/x:2@sm_90"
    made: Run = build.run(
        build.case("a/x:1@sm_90", Verdict.BROKEN, error="head: \x1b[31mboom"),
        build.case(changed, Verdict.CHANGED),
        build.case("a/x:3@sm_90"),
        groups=(build.group("g1", changed),),
    )
    return made


def test_broken_cases_come_before_groups(run: Run) -> None:
    broken, group = checks.annotate(run, "corpus")
    assert (broken.path, broken.annotation_level) == ("corpus/a/x.py", "failure")
    assert broken.message == r"head: \x1b[31mboom"
    assert (group.annotation_level, group.title) == ("warning", run.groups[0].title)
    assert (
        "), first in ttgir: triton-nvidia-gpu-proxy-fence-insertion; for example a/x:2@sm_90" in group.message
    )


@pytest.mark.parametrize("source", ["", "/etc/passwd", "../../x.py", "a/\x1b.py"])
def test_what_lies_outside_the_repository_is_not_annotated(run: Run, source: str) -> None:
    launches = {key: replace(launch, source_path=source) for key, launch in run.launches.items()}
    assert checks.annotate(replace(run, launches=launches), "corpus") == ()


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], Conclusion.FAILURE),
        ([Verdict.UNCHANGED, Verdict.ABSORBED], Conclusion.SUCCESS),
        ([Verdict.UNCHANGED, Verdict.FAILING], Conclusion.NEUTRAL),
        ([Verdict.UNCHANGED, Verdict.CHANGED], Conclusion.NEUTRAL),
        ([Verdict.UNCHANGED, Verdict.REMOVED], Conclusion.NEUTRAL),
        ([Verdict.REMOVED, Verdict.FAILING, Verdict.UNSUPPORTED], Conclusion.FAILURE),
        ([Verdict.CHANGED, Verdict.BROKEN], Conclusion.FAILURE),
    ],
)
def test_conclusion(build: Any, verdicts: list[Verdict], expected: Conclusion) -> None:
    run = build.run(*(build.case(f"a/x:{n}@sm_90", verdict) for n, verdict in enumerate(verdicts)))
    assert checks.conclusion(run) is expected


def _changed_file(**changes: Any) -> ChangedFile:
    file = ChangedFile(path="k.py", change=FileChange.CHANGED, compiled_by=1, read_by=1, not_run=())
    return replace(file, **changes)


def test_what_was_not_compared_or_not_made_twice_the_same_is_no_success(build: Any) -> None:
    case = build.case("a/x:1@sm_90")
    quiet = build.run(case)
    assert checks.conclusion(quiet) is Conclusion.SUCCESS
    at_launch = RuntimeEdit(path="triton/runtime/jit.py", diff=("-grid",))
    assert checks.conclusion(replace(quiet, runtime=(at_launch,))) is Conclusion.NEUTRAL
    unsteady = replace(case, nondeterministic=("head",))
    assert checks.conclusion(build.run(unsteady)) is Conclusion.NEUTRAL
    for file, expected in (
        (_changed_file(), Conclusion.SUCCESS),
        (_changed_file(path="data.json", compiled_by=0, read_by=0), Conclusion.SUCCESS),
        (_changed_file(compiled_by=0, read_by=0), Conclusion.NEUTRAL),
        (_changed_file(not_run=("settings",)), Conclusion.NEUTRAL),
    ):
        run = replace(quiet, reach=Reach(files=(file,), read_by=file.read_by))
        assert checks.conclusion(run) is expected, file


def test_a_new_launch_that_does_not_compile_is_a_failure(build: Any) -> None:
    case = build.case("a/x:2@sm_90", Verdict.FAILING)
    new = replace(
        case, launches=replace(case.launches, base=None), failures=replace(case.failures, base=None)
    )
    assert checks.conclusion(build.run(build.case("a/x:1@sm_90"), case)) is Conclusion.NEUTRAL
    assert checks.conclusion(build.run(build.case("a/x:1@sm_90"), new)) is Conclusion.FAILURE
