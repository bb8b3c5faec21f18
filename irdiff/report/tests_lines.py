from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irdiff.model import TestAnswer, TestsAnswer, TestStatus
from irdiff.words import counted


def sentences(answer: TestsAnswer) -> Iterator[str]:
    """Puts the answer first."""
    tests = {test.name for test in answer.tests}
    changed = answer.names(TestStatus.CHANGED)
    unchanged = answer.names(TestStatus.UNCHANGED)
    specializations = f"specialization{'' if answer.cases == 1 else 's'} changed"
    launched = f"{'it is' if answer.changed_cases == 1 else 'they are'} launched by"
    yield (
        f"{answer.changed_cases:,} of {answer.cases:,} {specializations}; {launched} "
        f"{len(changed):,} of {_ran(len(tests), answer.collected)}"
    )
    yield f"{_counted(len(unchanged))} {'launches' if len(unchanged) == 1 else 'launch'} only unchanged code"
    reasons = _reasons(answer)
    if reasons:
        reason_words = "; ".join(f"{count:,} {reason}" for reason, count in reasons.most_common())
        yield f"{_counted(len(tests) - len(changed) - len(unchanged))} not known: {reason_words}"
    if answer.uncollected:
        files = counted(len(answer.uncollected), "file")
        yield f"{files} of tests not collected: {', '.join(answer.uncollected)}"


def changed(answer: TestsAnswer) -> list[TestAnswer]:
    return [test for test in answer.tests if test.status is TestStatus.CHANGED]


def _reasons(answer: TestsAnswer) -> Counter[str]:
    """Counts tests by their first reason on any target."""
    decided = {*answer.names(TestStatus.CHANGED), *answer.names(TestStatus.UNCHANGED)}
    first = {
        test.name: test.reason.partition(":")[0]
        for test in reversed(answer.tests)
        if test.status is TestStatus.NOT_KNOWN and test.name not in decided
    }
    return Counter(first.values())


def _ran(ran: int, collected: int) -> str:
    if ran == collected:
        return _counted(ran)
    return f"the {_counted(ran)} that ran. There are {collected:,} tests: `--sample all` runs all of them"


def _counted(count: int) -> str:
    return f"{count:,} test{'' if count == 1 else 's'}"
