"""The first commit that changes what one case compiles to.

Each commit is compared with GOOD, as by `irdiff compare`. If a merge is the first that differs, it may have
brought in a branch that began before GOOD; the commits of that branch are compared with its beginning. Pure:
what compares is handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from irdiff.bisect.commit_search import History, Search, ends, short
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Case, StageStatus, Verdict

_WITHOUT_CODE = frozenset({Verdict.BROKEN, Verdict.REMOVED})
"""If BAD has the code of the case, nothing says whether a commit without it has the change of BAD."""
_ONE_SIDED = _WITHOUT_CODE | {Verdict.FIXED, Verdict.ADDED}

Compare = Callable[[str, str], Case | None]
"""The case between two commits; None where neither has it. Raises ToolchainError where one is not built."""


@dataclass(frozen=True, kw_only=True)
class FirstBadCommits:
    """The first commit that is bad, or those of which one is."""

    commits: tuple[str, ...]
    """One, or several where skipped commits lie between the last good and the first bad one."""
    case: Case
    """The case between `before` and the first of them that is known to be bad."""
    before: str
    """A parent of that commit, or the last one known to be good."""
    after: str
    tried: tuple[str, ...]
    skipped: tuple[str, ...]
    changes_again: bool
    """True if a later commit changes the case again before BAD."""


@dataclass(frozen=True, kw_only=True)
class CodeBisection:
    """One search."""

    good: str
    bad: str
    case_id: str
    stage: str | None
    """The stage whose canonical text counts; None for the machine code."""
    history: History
    compare: Compare
    report: Callable[[str], None]

    def run(self) -> FirstBadCommits:
        """Raises UsageError where GOOD and BAD do not differ or are no line of commits."""
        good, bad = ends(self.history, self.good, self.bad)
        whole = self.compare(good, bad)
        if whole is None:
            workload = self.case_id.partition(":")[0]
            raise UsageError(
                f"there is no case {self.case_id} at {short(good)} or {short(bad)}",
                hint=f"list them: irdiff corpus list --case '{workload}'",
            )
        if not self._is_bad(whole, whole):
            differing = [stage for stage, status in whole.stages.items() if status is StageStatus.CHANGED]
            raise UsageError(
                f"{self.case_id}: the {self.stage or 'machine code'} is the same at {self.good} and "
                f"{self.bad} ({whole.verdict})",
                hint="stages that differ, for --stage: " + ", ".join(differing or ["none"]),
            )
        search = Search(
            history=self.history,
            goods=[good],
            bad=bad,
            judge=lambda commit: self._judge(good, commit, whole),
            report=self.report,
        )
        suspects = search.run()
        if within := self._within_merged_branch(good, suspects):
            return replace(
                within,
                tried=(*search.tried, *within.tried),
                skipped=(*search.skipped, *within.skipped),
                changes_again=self._differs(within.after, bad),
            )
        before, case = self._shown(search, whole)
        return FirstBadCommits(
            commits=suspects,
            case=case,
            before=before,
            after=search.bad,
            tried=tuple(search.tried),
            skipped=tuple(search.skipped),
            changes_again=self._differs(search.bad, bad),
        )

    def _differs(self, first: str, bad: str) -> bool:
        later = self.compare(first, bad) if first != bad else None
        return later is not None and self._is_bad(later, later)

    def _within_merged_branch(self, good: str, suspects: Sequence[str]) -> FirstBadCommits | None:
        """The commits of a branch that one merge brought in, if the merge took the case's code from it."""
        for tip in self.history.parents_of(suspects[0]) if len(suspects) == 1 else ():
            try:
                beginning = self.history.merge_base(good, tip)
                if beginning != good and not self._differs(tip, suspects[0]):
                    return replace(self, good=beginning, bad=tip).run()
            except (UsageError, ToolchainError):  # it does not change the case, or cannot be built
                continue
        return None

    def _judge(self, good: str, commit: str, whole: Case) -> bool | None:
        try:
            case = self.compare(good, commit)
        except ToolchainError as error:
            self.report(f"bisect: {short(commit)} is skipped: {error.what.splitlines()[0]}")
            return None
        if case is None:  # the case came later: without it a commit is as GOOD is
            return False
        if case.verdict in _WITHOUT_CODE and case.verdict is not whole.verdict:
            self.report(f"bisect: {short(commit)} is skipped: since GOOD the case is {case.verdict} there")
            return None
        return self._is_bad(case, whole)

    def _is_bad(self, case: Case, whole: Case) -> bool:
        if case.verdict in _ONE_SIDED:
            return True
        if self.stage:
            return case.stages.get(self.stage) is StageStatus.CHANGED
        if whole.verdict is Verdict.FAILING:
            base, head = case.failures.base, case.failures.head
            return base is not None and head is not None and base.message != head.message
        return case.verdict is Verdict.CHANGED

    def _shown(self, search: Search, whole: Case) -> tuple[str, Case]:
        """The nearest commit before the bad one that can be compared with it, and the case between them.

        That is a parent that is known to be good, one that was not tried and differs, or a good one that was
        tried. A parent that was not tried may be of a branch that began before GOOD, and as bad.
        """
        parents = self.history.parents_of(search.bad)
        good_parents = [parent for parent in parents if parent in search.goods]
        implied = [parent for parent in parents if parent not in (*search.goods, *search.skipped)]
        for before in (*good_parents, *implied, search.goods[-1], search.goods[0]):
            try:
                case = self.compare(before, search.bad)
            except ToolchainError:  # one that was never tried, since git knew it to be good
                continue
            if case is not None and (before in search.goods or self._is_bad(case, whole)):
                return before, case
        raise AssertionError("a bad commit differs from GOOD in this case")
