"""Lists cases by how they ended."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from irdiff.compare.cases import failed_program
from irdiff.model import Case, Run, Verdict
from irdiff.report import error_clusters
from irdiff.report.error_clusters import SharedError
from irdiff.report.lists import Listed, listed

VERDICTS = (
    *(Verdict.BROKEN, Verdict.CHANGED, Verdict.REMOVED, Verdict.FIXED, Verdict.ADDED, Verdict.IR_ONLY),
    *(Verdict.UNCHANGED, Verdict.FAILING, Verdict.UNSUPPORTED),
)


@dataclass(frozen=True, kw_only=True)
class Ending:
    title: str
    errors: Listed[SharedError]


def counts(run: Run) -> Iterator[tuple[str, int]]:
    yield from ((name.value, count) for name in VERDICTS if (count := run.summary.verdicts[name]))
    if unstable := sum(bool(case.nondeterministic) for case in run.cases):
        yield "nondeterministic", unstable


def broken(run: Run, most: int) -> Ending:
    cases = _with(run, Verdict.BROKEN)
    words = "compiles at base, not at head"
    if cases and all(map(failed_program, cases)):
        words = "not compared, since the program fails at head"
    return _ending(f"broken: {words}", cases, most)


def others(run: Run, most: int) -> tuple[Ending, ...]:
    unstable = [
        _ending(f"nondeterministic: {words}", cases, most)
        for words, cases in error_clusters.unstable(run.cases)
    ]
    by_verdict = [
        _ending(f"{verdict}: {words}", _with(run, verdict), most) for verdict, words in _words(run).items()
    ]
    return tuple(ending for ending in (*unstable, *by_verdict) if ending.errors)


def _words(run: Run) -> Mapping[Verdict, str]:
    is_of_compilers = not run.is_of_kernel_repository
    since = "; a workload may name the first release that it runs with (SINCE)"
    until = "; a workload may name the last release that it runs with (UNTIL)"
    return {
        Verdict.FAILING: "compiles on neither side, or is new and does not compile",
        Verdict.FIXED: "compiles at head, not at base",
        Verdict.ADDED: f"launched at head only{since if is_of_compilers else ''}",
        Verdict.REMOVED: f"launched at base only{until if is_of_compilers else ''}",
    }


def _with(run: Run, verdict: Verdict) -> list[Case]:
    return [case for case in run.cases if case.verdict is verdict]


def _ending(title: str, cases: Sequence[Case], most: int) -> Ending:
    shared = error_clusters.errors(sorted(cases, key=lambda case: case.id))
    return Ending(title=f"{title} ({len(cases)})", errors=listed(shared, most))
