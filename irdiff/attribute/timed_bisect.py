"""The commit after which a case is slower, or faster, by times that are noisy.

Each commit's binary is timed against GOOD's, in processes of their own. What is asked of a commit is on which
side of the middle between GOOD and BAD it lies; it is timed again until its interval is clear of that, and
skipped where it never is. Nothing is said on the strength of one such answer alone:

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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import fmean, stdev
from typing import Protocol

from irdiff.attribute.bisect import History
from irdiff.words import counted

LEAST_SHARE = 0.01
"""Smaller differences than this are of placement and clocks."""
_ROUNDS = 6
"""How often a commit is timed at most."""
_LEAST_TIMES = 6
_SURE = 4.5
"""Standard errors from an interval's middle to its end: 99.9 % of Student's t with 11 degrees of freedom."""
_PART = 0.5
"""The share of the whole difference that a commit has to make to be named."""
_NEAR_BEST = 0.25
"""Among this many of the commits that halve best, one that need not be built is tried first."""


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

    def minus(self, other: _Level) -> _Level:
        return _Level(value=self.value - other.value, reach=math.hypot(self.reach, other.reach))

    @property
    def is_apart(self) -> bool:
        return abs(self.value) > self.reach


@dataclass(kw_only=True)
class TimedBisection:
    """One search. Keeps the times of each machine code."""

    good: str
    bad: str
    history: History
    clock: Clock
    tell: Callable[[str], None]
    tried: list[str] = field(default_factory=list, init=False)
    skipped: list[str] = field(default_factory=list, init=False)
    _times: dict[str, list[float]] = field(default_factory=dict, init=False)
    _attempts: dict[str, int] = field(default_factory=dict, init=False)

    def run(self) -> TimedFinding:
        whole = self._until(
            self.bad, lambda level: abs(level.value) > max(math.log1p(LEAST_SHARE), 4 * level.reach)
        )
        if whole is None or not whole.is_apart or abs(whole.value) < math.log1p(LEAST_SHARE):
            words = "GOOD and BAD have the same machine code, or times that do not differ beyond noise"
            return self._finding(TimedAnswer.NOISE, (), whole, words)
        suspects = self._search(whole)
        if len(suspects) > 1:
            return self._finding(
                TimedAnswer.UNCLEAR, suspects, whole, "the others could not be built, or told apart"
            )
        return self._confirmed(suspects[0], whole)

    def _search(self, whole: _Level) -> tuple[str, ...]:
        goods, bad = [self.good], self.bad
        while True:
            left = [name for name in self.history.order(bad, goods) if name not in (bad, *self.skipped)]
            if not left:
                return tuple(self.history.order(bad, goods))
            commit = self._next(left)
            self.tell(f"bisect: {counted(len(left), 'commit')} left, timing {commit[:10]}")
            is_bad = self._is_bad(commit, whole)
            if is_bad is None:
                self.skipped.append(commit)
            elif is_bad:
                bad = commit
            else:
                goods.append(commit)

    def _next(self, left: Sequence[str]) -> str:
        near = left[: max(1, int(_NEAR_BEST * len(left)))]
        return next((commit for commit in near if self.clock.is_ready(commit)), left[0])

    def _is_bad(self, commit: str, whole: _Level) -> bool | None:
        """None where it cannot be told."""
        self.tried.append(commit)
        code = self.clock.code(commit)
        if code is not None and code in (self.clock.code(self.good), self.clock.code(self.bad)):
            return code == self.clock.code(self.bad)
        middle = whole.value / 2
        level = self._until(commit, lambda level: abs(level.value - middle) > level.reach)
        if level is None or abs(level.value - middle) <= level.reach:
            return None
        return (level.value > middle) == (whole.value > 0)

    def _confirmed(self, commit: str, whole: _Level) -> TimedFinding:
        """Holds the commit against the one before it, each timed anew until their difference is clear."""
        parents = [
            parent for parent in self.history.parents_of(commit) if self.clock.code(parent) is not None
        ]
        if not parents:
            return self._finding(
                TimedAnswer.UNCLEAR, (commit,), whole, "the commit before it cannot be built"
            )
        before = parents[0]
        if self.clock.code(before) == self.clock.code(commit):
            return self._finding(TimedAnswer.UNCLEAR, (commit,), whole, "it does not change the machine code")
        least = _PART * abs(whole.value)
        for _ in range(_ROUNDS):
            pair = [self._timed_again(name) for name in (commit, before)]
            if None in pair:
                break
            step = pair[0].minus(pair[1])  # type: ignore[union-attr, arg-type]
            same_way = (step.value > 0) == (whole.value > 0)
            if same_way and abs(step.value) - step.reach > least - whole.reach and step.is_apart:
                return self._finding(TimedAnswer.FOUND, (commit,), whole, "")
            if abs(step.value) + step.reach < least:
                break
        words = "it makes less than half of the difference: other commits have part in it, or only noise"
        return self._finding(TimedAnswer.UNCLEAR, (commit,), whole, words)

    # times

    def _until(self, commit: str, is_clear: Callable[[_Level], bool]) -> _Level | None:
        """Times a commit until what is asked is clear, or as often as it may be; None where it cannot be."""
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
        if code is None:
            return None
        if code != self.clock.code(self.good):
            attempt = self._attempts[code] = self._attempts.get(code, 0) + 1
            self._times.setdefault(code, []).extend(self.clock.logs(commit, attempt))
        return self._level(commit)

    def _level(self, commit: str) -> _Level | None:
        code = self.clock.code(commit)
        if code == self.clock.code(self.good):
            return _Level(value=0.0, reach=0.0)
        times = self._times.get(code or "", [])
        if len(times) < _LEAST_TIMES:
            return None
        return _Level(value=fmean(times), reach=_SURE * stdev(times) / math.sqrt(len(times)))

    def _finding(
        self, answer: TimedAnswer, commits: tuple[str, ...], whole: _Level | None, why: str
    ) -> TimedFinding:
        return TimedFinding(
            answer=answer,
            commits=commits,
            share=math.expm1(whole.value) if whole else 0.0,
            error=whole.reach if whole else 0.0,
            tried=tuple(self.tried),
            skipped=tuple(self.skipped),
            why=why,
        )
