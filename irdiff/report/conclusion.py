"""Concludes for a check run and the page's colour whether a run is good, bad, or for the reader to judge."""

from __future__ import annotations

from enum import StrEnum

from irdiff.group.report_classes import ReportClass
from irdiff.model import Case, Run, Verdict
from irdiff.report import edit_coverage
from irdiff.report.timing_summary import TimingSummary


class Conclusion(StrEnum):
    SUCCESS = "success"
    NEUTRAL = "neutral"
    FAILURE = "failure"


def of(run: Run, timing: TimingSummary | None = None) -> Conclusion:
    """Changed is neutral, as is what was not compared: the reviewer decides whether a change is wanted. A
    result that a GPU found to be wrong is a failure, unless an edit of the kernel asks for another one.
    """
    if edit_coverage.same_compiler(run):
        return Conclusion.SUCCESS
    wrong = timing.wrong_at_head if timing else ()
    is_wrong = any(case.id in wrong and not _is_intended(case) for case in run.cases)
    if not run.summary.compared or is_wrong or any(map(_is_broken, run.cases)):
        return Conclusion.FAILURE
    is_whole = run.options.shard == (1, 1) and not edit_coverage.not_looked_at(run)
    is_quiet = is_whole and not (timing and timing.gravity)
    is_same = all(_is_same(case, run) and not case.nondeterministic for case in run.cases)
    return Conclusion.SUCCESS if is_quiet and is_same else Conclusion.NEUTRAL


def _is_same(case: Case, run: Run) -> bool:
    return may_fail(case, run) or case.verdict in {Verdict.UNCHANGED, Verdict.IR_ONLY}


def may_fail(case: Case, run: Run) -> bool:
    launch = run.launches.get(case.launches.head or case.launches.base or "")
    return case.verdict is Verdict.FAILING and launch is not None and not launch.expected


def _is_intended(case: Case) -> bool:
    return case.summary is not None and case.summary.severity == ReportClass.INTENDED


def _is_broken(case: Case) -> bool:
    return case.verdict is Verdict.BROKEN or is_new_and_fails(case)


def is_new_and_fails(case: Case) -> bool:
    return case.verdict is Verdict.FAILING and case.launches.base is None and case.failures.base is None
