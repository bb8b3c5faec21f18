"""Decides which tests launch changed code, and which launch none.

A test is *unchanged* if each side followed it to its end, all of its launches were compared and have the same
code and arguments, and nothing else that it depends on differs. A test of head that launches anything that
changed is *changed*. All others are *not known*, with the first reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff.model import Case, Run, Sides, StageStatus, TestAnswer, TestsAnswer, TestStatus, Verdict
from irdiff.resolve.recorded_tests import RecordedTest
from irdiff.resolve.test_cases import Pair, TestCases

_CHANGED = frozenset({Verdict.CHANGED, Verdict.BROKEN, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED})
_SAME = frozenset({Verdict.UNCHANGED, Verdict.IR_ONLY})


def answer(run: Run, test_cases: Sequence[TestCases]) -> TestsAnswer:
    cases = {case.id: case for case in run.cases}
    tests = [test for each in test_cases for test in _of_target(run, each, cases)]
    files = {file for each in test_cases for side in each.recordings for file in side.uncollected}
    return TestsAnswer(
        tests=tuple(tests),
        collected=max((each.collected for each in test_cases), default=0),
        cases=len(cases),
        changed_cases=sum(case.verdict in _CHANGED for case in cases.values()),
        uncollected=tuple(sorted(files)),
    )


def _of_target(run: Run, test_cases: TestCases, cases: Mapping[str, Case]) -> Iterator[TestAnswer]:
    for identity, launch_ids in sorted(test_cases.cases.items()):
        base, head = (side.tests.get(identity) for side in test_cases.recordings)
        either = head or base
        assert either is not None
        launches = {launch_id: cases.get(f"{launch_id}@{test_cases.target.name}") for launch_id in launch_ids}
        compared = _ComparedTest(
            sides=Sides(base=base, head=head),
            cases=launches,
            reads=tuple(_reads(base, head, {test_cases.pairs[key]: case for key, case in launches.items()})),
        )
        reason, status = _changed(compared) if head else None, TestStatus.CHANGED
        if reason is None:
            reason = next(_voids(run, test_cases, compared), "")
            status = TestStatus.NOT_KNOWN if reason else TestStatus.UNCHANGED
        yield TestAnswer(
            name=either.name,
            target=test_cases.target.name,
            status=status,
            reason=reason,
            cases=compared.changed_cases,
        )


@dataclass(frozen=True, kw_only=True)
class _ComparedTest:
    sides: Sides[RecordedTest | None]
    cases: Mapping[str, Case | None]
    """By launch id; None for a launch that was not compared."""
    reads: tuple[tuple[str, StageStatus], ...]
    """Each text of compiled code that the test reads: the stage, and how that text compares."""

    @property
    def changed_cases(self) -> tuple[str, ...]:
        return tuple(case.id for case in self.cases.values() if case and case.verdict in _CHANGED)


def _reads(
    base: RecordedTest | None, head: RecordedTest | None, cases: Mapping[Pair, Case | None]
) -> Iterator[tuple[str, StageStatus]]:
    """Yields the status of each text that the test reads. For a text that the test did not get, takes that of
    the case.
    """
    if base is None or head is None:
        return
    if [stage for _, stage, _ in base.reads] != [stage for _, stage, _ in head.reads]:
        yield "compiled code", StageStatus.CHANGED
        return
    for (ours, stage, our_text), (theirs, _, their_text) in zip(base.reads, head.reads, strict=True):
        if our_text and their_text:
            yield stage, StageStatus.IDENTICAL if our_text == their_text else StageStatus.CHANGED
        else:
            case = cases.get((ours, theirs))
            yield stage, case.stages.get(stage, StageStatus.ABSENT) if case else StageStatus.ABSENT


def _changed(test: _ComparedTest) -> str | None:
    base, head = test.sides
    if test.changed_cases:
        return f"launches code that changed: {test.changed_cases[0]}"
    if base is None or head is None:
        return None
    if [launch.text for launch in base.launches] != [launch.text for launch in head.launches]:
        return "passes other grids or arguments to its launches"
    for stage, status in test.reads:
        if status is StageStatus.CHANGED:
            return f"looks at {stage} that changed"
    if base.errors != head.errors:
        return "the frontend raises another error"
    return None


def _voids(run: Run, test_cases: TestCases, compared: _ComparedTest) -> Iterator[str]:
    yield from (f"{side} has no such test" for side, test in compared.sides.items() if test is None)
    for test in compared.sides:
        if test is not None:
            yield from test.doubts
            if test.outcome != "passed":
                yield f"{test.outcome} here: {test.reason}"
    if not compared.cases and not any(test and test.errors for test in compared.sides):
        yield "without a launch here"
    for case in compared.cases.values():
        if case is None:
            yield "a launch was not compared"
        elif case.verdict not in _SAME:
            yield f"a launch does not compile: {case.id}"
    for stage, status in compared.reads:
        if status is not StageStatus.IDENTICAL:
            yield f"looks at {stage}, whose text is not the same on both sides"
    if differing := _differing(test_cases, compared.sides):
        yield f"it reads {differing}, which differs"
    if named := _named(test_cases, compared.sides):
        yield f"it may read {named}, which differs, and which its source names"
    if run.runtime:
        yield f"the runtime differs: {run.runtime[0].path}"


def _named(test_cases: TestCases, tests: Sides[RecordedTest | None]) -> str | None:
    """Returns a data file that differs, and whose name stands in a source that this test read: code below
    Python may read it, or the test may ask only whether it is there.
    """
    sources = [
        recording.texts.get(name, "")
        for recording, test in zip(test_cases.recordings, tests, strict=True)
        for name in (test.read if test else ())
    ]
    names = (name for name in test_cases.differing_data if any(_is_named(name, text) for text in sources))
    return next(names, None)


def _is_named(file: str, source: str) -> bool:
    """In quotation marks or behind a slash: a comment may have the word, too."""
    return any(f"{mark}{Path(file).name}" in source for mark in "\"'/")


def _differing(test_cases: TestCases, tests: Sides[RecordedTest | None]) -> str | None:
    """Returns a file that a test read and that differs between the sides; the test's own, if it is one."""
    base, head = test_cases.recordings
    names = {name for test in tests if test for name in test.read}
    differing = sorted(name for name in names if base.files.get(name) != head.files.get(name))
    own = {test.name.partition("::")[0] for test in tests if test}
    return next((name for name in differing if name in own), next(iter(differing), None))
