"""Which tests launch something that changed, and which launch nothing that did.

A test is *unchanged* where each side followed it to its end, whatever it launched was compared and has the
same code and the same arguments on both sides, and nothing else that it depends on differs. A test that
launches anything that changed is *changed*. All others are *not known*, with the first reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from irdiff.model import Case, Run, Sides, Verdict
from irdiff.resolve.recorded_tests import RecordedTest
from irdiff.resolve.test_cases import TestCases
from irdiff.words import counted

_CHANGED = frozenset({Verdict.CHANGED, Verdict.BROKEN, Verdict.FIXED, Verdict.ADDED, Verdict.REMOVED})
_SAME = frozenset({Verdict.UNCHANGED, Verdict.ABSORBED})


class TestStatus(StrEnum):
    __test__ = False

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, kw_only=True)
class TestAnswer:
    """What a comparison says of one test for one target."""

    __test__ = False

    name: str
    target: str
    status: TestStatus
    reason: str
    cases: tuple[str, ...]
    """Ids of the changed cases."""


@dataclass(frozen=True, kw_only=True)
class TestsAnswer:
    """What a comparison says of all tests."""

    __test__ = False

    tests: tuple[TestAnswer, ...]
    cases: int
    changed_cases: int
    uncollected: tuple[str, ...]
    """Files of tests that pytest could not collect."""

    def names(self, status: TestStatus) -> tuple[str, ...]:
        """Tests of that status for all targets; of changed ones, for any."""
        found = {test.name for test in self.tests if test.status is status}
        if status is TestStatus.CHANGED:
            return tuple(sorted(found))
        return tuple(sorted(found - {test.name for test in self.tests if test.status is not status}))


def answer(run: Run, found: Sequence[TestCases]) -> TestsAnswer:
    cases = {case.id: case for case in run.cases}
    tests = [test for each in found for test in _of_target(run, each, cases)]
    files = {file for each in found for side in each.recordings for file in side.uncollected}
    return TestsAnswer(
        tests=tuple(tests),
        cases=len(cases),
        changed_cases=sum(case.verdict in _CHANGED for case in cases.values()),
        uncollected=tuple(sorted(files)),
    )


def _of_target(run: Run, found: TestCases, cases: Mapping[str, Case]) -> Iterator[TestAnswer]:
    for name, launch_ids in sorted(found.cases.items()):
        base, head = (side.tests.get(name) for side in found.recordings)
        tests = Sides(base=base, head=head)
        ids = [f"{launch_id}@{found.target.name}" for launch_id in launch_ids]
        compared = [cases.get(case_id) for case_id in ids]
        changed = tuple(case.id for case in compared if case and case.verdict in _CHANGED)
        reason = _changed(tests, changed)
        status = TestStatus.CHANGED
        if reason is None:
            reason = next(_voids(run, found, tests, compared), "")
            status = TestStatus.NOT_KNOWN if reason else TestStatus.UNCHANGED
        yield TestAnswer(
            name=name, target=found.target.name, status=status, reason=reason or "", cases=changed
        )


def _changed(tests: Sides[RecordedTest | None], changed: Sequence[str]) -> str | None:
    """Why a test is changed."""
    base, head = tests
    if changed:
        return f"launches code that changed: {changed[0]}"
    if base is None or head is None:
        return None
    if [launch.text for launch in base.launches] != [launch.text for launch in head.launches]:
        return "passes other grids or arguments to its launches"
    if [read[1:] for read in base.reads] != [read[1:] for read in head.reads]:
        return "looks at compiled code that changed"
    if base.errors != head.errors:
        return "the frontend raises another error"
    return None


def _voids(
    run: Run, found: TestCases, tests: Sides[RecordedTest | None], cases: Sequence[Case | None]
) -> Iterator[str]:
    """Why a test may not be said to be unchanged."""
    for side, test in tests.items():
        if test is None:
            yield f"{side} has no such test"
        elif test.outcome != "passed":
            yield f"{test.outcome} here: {test.reason}"
        else:
            yield from test.doubts
    if not cases:
        yield "launches nothing here"
    for case in cases:
        if case is None:
            yield "a launch was not compared"
        elif case.verdict not in _SAME:
            yield f"a launch does not compile: {case.id}"
    if differing := _differing(found, tests):
        yield f"it reads {differing}, which differs"
    if run.runtime:
        yield f"the runtime differs: {run.runtime[0].path}"


def _differing(found: TestCases, tests: Sides[RecordedTest | None]) -> str | None:
    """A file that a test read and that is another on both sides; its own, if that is one."""
    base, head = found.recordings
    names = {name for test in tests if test for name in test.read}
    differing = sorted(name for name in names if base.files.get(name) != head.files.get(name))
    own = {test.name.partition("::")[0] for test in tests if test}
    return next((name for name in differing if name in own), next(iter(differing), None))


def sentences(found: TestsAnswer) -> Iterator[str]:
    """What a reader is told, the answer first."""
    tests = {test.name for test in found.tests}
    changed = found.names(TestStatus.CHANGED)
    unchanged = found.names(TestStatus.UNCHANGED)
    yield (
        f"{found.changed_cases:,} of {found.cases:,} specializations changed; they are launched by "
        f"{len(changed):,} of {len(tests):,} tests"
    )
    yield f"{counted_tests(len(unchanged))} launch only unchanged code"
    unknown = Counter(
        test.reason.partition(":")[0] for test in found.tests if test.status is TestStatus.NOT_KNOWN
    )
    if unknown:
        total = len(tests) - len(changed) - len(unchanged)
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in unknown.most_common())
        yield f"{counted_tests(total)} not known: {reasons}"
    if found.uncollected:
        files = counted(len(found.uncollected), "file")
        yield f"{files} of tests not collected: {', '.join(found.uncollected)}"


def counted_tests(count: int) -> str:
    return f"{count:,} test{'' if count == 1 else 's'}"
