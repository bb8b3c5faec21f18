"""The commit after which a case is slower, or faster, by times that are noisy.

Each commit's binary is timed against GOOD's, in processes of their own. A commit lies on one side of the
middle between GOOD and BAD; it is timed again until its interval is clear of that, and skipped where it never
is. Nothing rests on one such answer alone:

- between GOOD and BAD there must be a difference beyond noise, else the answer is `noise`;
- equal machine code is equal time, so a commit that does not change the code is never named;
- the commit that the search ends with is timed against the one before it until their difference is clear, and
  has to make at least half of the whole one. Where it does not (several commits share it, or an answer was
  wrong on the way) the answer is `unclear`, with the commits that are left.

Pure: what builds, compiles and times is handed in. `python -m tests.programs.bench_timed_bisect` counts right
and wrong answers over simulated histories.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, stdev
from typing import Protocol

from irdiff.attribute.commit_search import History, Search

LEAST_SHARE = 0.01
"""Smaller differences than this are of placement and clocks."""
_ROUNDS = 6
"""How often a commit is timed at most."""
_LEAST_TIMES = 6
_SURE = 4.5
"""Standard errors from an interval's middle to its end: 99.9 % of Student's t with 11 degrees of freedom."""
_PART = 0.5
"""The share of the whole difference that a commit has to make to be named."""


class TimedAnswer(StrEnum):
    FOUND = "found"
    NOISE = "not found between: noise"
    UNCLEAR = "unclear"


class Clock(Protocol):
    """Builds, compiles and times commits."""

    def code(self, commit: str) -> str | None:
        """A digest of the case's machine code; None where the commit cannot be built or does not have it."""
        ...

    def logs(self, commit: str, attempt: int) -> Sequence[float]:
        """Log ratios to GOOD's time, one of each of several new processes."""
        ...

    def is_ready(self, commit: str) -> bool:
        """Whether its toolchain is at hand, so that nothing need be built."""
        ...


@dataclass(frozen=True, kw_only=True)
class TimedFinding:
    """What the times say."""

    answer: TimedAnswer
    commits: tuple[str, ...]
    """The one that was found, or those that are left; none where there is only noise."""
    share: float
    """BAD ÷ GOOD - 1."""
    error: float
    """Half of its interval's width."""
    tried: tuple[str, ...]
    skipped: tuple[str, ...]
    why: str
    """Why nothing was found, where nothing was."""


@dataclass(frozen=True, kw_only=True)
class _Level:
    """The log ratio of a machine code to GOOD's."""

    value: float
    reach: float
    """Half of the interval's width."""


@dataclass(kw_only=True)
class TimedBisection:
    """One search. Keeps the times of each machine code."""

    good: str
    bad: str
    history: History
    clock: Clock
    report: Callable[[str], None]
    _times: dict[str, list[float]] = field(default_factory=dict, init=False)
    _attempts: Counter[str] = field(default_factory=Counter, init=False)

    def run(self) -> TimedFinding:
        search = Search(
            history=self.history,
            goods=[self.good],
            bad=self.bad,
            judge=lambda commit: self._is_bad(commit, whole),
            report=self.report,
            is_ready=self.clock.is_ready,
        )
        least = math.log1p(LEAST_SHARE)
        whole = self._until(self.bad, lambda level: abs(level.value) > max(least, 4 * level.reach))
        commits: tuple[str, ...] = ()
        answer, why = TimedAnswer.UNCLEAR, "the others could not be built, or told apart"
        if whole is None or abs(whole.value) <= max(least, whole.reach):
            answer = TimedAnswer.NOISE
            why = "GOOD and BAD have the same machine code, or times that do not differ beyond noise"
        else:
            commits = search.run()
            if len(commits) == 1:
                why = self._doubt(commits[0], whole)
                answer = TimedAnswer.UNCLEAR if why else TimedAnswer.FOUND
        return TimedFinding(
            answer=answer,
            commits=commits,
            share=math.expm1(whole.value) if whole else 0.0,
            error=whole.reach if whole else 0.0,
            tried=tuple(search.tried),
            skipped=tuple(search.skipped),
            why=why,
        )

    def _is_bad(self, commit: str, whole: _Level | None) -> bool | None:
        """None where it cannot be told."""
        assert whole is not None
        code = self.clock.code(commit)
        if code is not None and code in (self.clock.code(self.good), self.clock.code(self.bad)):
            return code == self.clock.code(self.bad)
        middle = whole.value / 2
        level = self._until(commit, lambda level: abs(level.value - middle) > level.reach)
        if level is None or abs(level.value - middle) <= level.reach:
            return None
        return (level.value > middle) == (whole.value > 0)

    def _doubt(self, commit: str, whole: _Level) -> str:
        """Why the commit is not named; empty where it is, against the one before it, each timed anew until
        their difference is clear.
        """
        parents = (row for row in self.history.parents_of(commit) if self.clock.code(row) is not None)
        before = next(parents, None)
        if before is None:
            return "the commit before it cannot be built"
        if self.clock.code(before) == self.clock.code(commit):
            return "it does not change the machine code"
        least = _PART * abs(whole.value)
        for _ in range(_ROUNDS):
            after, start = self._timed_again(commit), self._timed_again(before)
            if after is None or start is None:
                break
            step, reach = after.value - start.value, math.hypot(after.reach, start.reach)
            same_way = (step > 0) == (whole.value > 0)
            if same_way and abs(step) - reach > least - whole.reach and abs(step) > reach:
                return ""
            if abs(step) + reach < least:
                break
        return "it makes less than half of the difference: other commits have part in it, or only noise"

    # times

    def _until(self, commit: str, is_clear: Callable[[_Level], bool]) -> _Level | None:
        """Times a commit until its level is clear, at most _ROUNDS times; None where it cannot be timed."""
        level = self._level(commit)
        for _ in range(_ROUNDS):
            if level is not None and is_clear(level):
                break
            level = self._timed_again(commit)
            if level is None:
                break
        return level

    def _timed_again(self, commit: str) -> _Level | None:
        code = self.clock.code(commit)
        if code is not None and code != self.clock.code(self.good):
            self._attempts[code] += 1
            self._times.setdefault(code, []).extend(self.clock.logs(commit, self._attempts[code]))
        return self._level(commit)

    def _level(self, commit: str) -> _Level | None:
        code = self.clock.code(commit)
        if code == self.clock.code(self.good):
            return _Level(value=0.0, reach=0.0)
        times = self._times.get(code or "", [])
        if len(times) < _LEAST_TIMES:
            return None
        return _Level(value=fmean(times), reach=_SURE * stdev(times) / math.sqrt(len(times)))
