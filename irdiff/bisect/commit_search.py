"""The search for the first bad commit between two revisions, or in a list of sides.

Git says which commit to try next (`rev-list --bisect-all`), so merges are right. Only descendants of GOOD are
tried: a branch that began before GOOD lacks what GOOD has, so its commits differ from GOOD whatever they do.
A commit that cannot be judged is skipped, as git does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from irdiff.errors import UsageError
from irdiff.resolve.toolchains import repository
from irdiff.words import counted


class History(Protocol):
    """The commits of a repository, or a list of sides in their place."""

    def commit_of(self, revision: str) -> str: ...

    def merge_base(self, one: str, other: str) -> str: ...

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        """The commits between the first good one and BAD that are in no good one, those that halve them best
        first.
        """
        ...

    def parents_of(self, commit: str) -> list[str]: ...


class GitHistory:
    def __init__(self, store: repository.GitStore) -> None:
        self._store = store

    def commit_of(self, revision: str) -> str:
        return repository.commit_of(self._store, revision)

    def merge_base(self, one: str, other: str) -> str:
        return repository.merge_base(self._store, one, other)

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        # `--ancestry-path` beside several goods would lose what branched off behind a later one of them.
        after_good = {*self._store.git("rev-list", "--ancestry-path", bad, "--not", goods[0]).split()}
        left = self._store.git("rev-list", "--bisect-all", bad, "--not", *goods).splitlines()
        names = [line.split()[0] for line in left if line]
        return [name.decode() for name in names if name in after_good]

    def parents_of(self, commit: str) -> list[str]:
        return self._store.git("rev-list", "--parents", "-n", "1", commit).decode().split()[1:]


class SideList:
    """Releases, LLVMs or assemblers in the order that a user gave, as a line of commits."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)

    def commit_of(self, revision: str) -> str:
        return revision

    def merge_base(self, one: str, other: str) -> str:
        return min(one, other, key=self._names.index)

    def order(self, bad: str, goods: Sequence[str]) -> list[str]:
        first = max(map(self._names.index, goods)) + 1
        left = self._names[first : self._names.index(bad) + 1]
        return sorted(left, key=lambda name: abs(2 * left.index(name) - len(left) + 2))

    def parents_of(self, commit: str) -> list[str]:
        place = self._names.index(commit)
        return self._names[max(0, place - 1) : place]


def ends(history: History, good: str, bad: str) -> tuple[str, str]:
    """Both as commits. Raises UsageError where GOOD is no ancestor of BAD."""
    first, last = history.commit_of(good), history.commit_of(bad)
    if history.merge_base(first, last) != first:
        raise UsageError(
            f"{good} is no ancestor of {bad}", hint=f"as GOOD, take `git merge-base {good} {bad}`"
        )
    return first, last


def short(name: str) -> str:
    """A commit as git shortens it, anything else as it is."""
    return name[:10] if re.fullmatch(r"[0-9a-f]{40}", name) else name


@dataclass(kw_only=True)
class Search:
    history: History
    goods: list[str]
    """The first of them is GOOD."""
    bad: str
    judge: Callable[[str], bool | None]
    """Returns True for a bad commit, and None if it cannot be told."""
    report: Callable[[str], None]
    tried: list[str] = field(default_factory=list, init=False)
    skipped: list[str] = field(default_factory=list, init=False)

    def run(self) -> tuple[str, ...]:
        """The first bad commit, or those of which one is: the others were skipped."""
        while left := [name for name in self._suspects() if name not in (self.bad, *self.skipped)]:
            commit = left[0]
            steps = counted(len(left).bit_length(), "step")
            self.report(
                f"bisect: {counted(len(left), 'commit')} left (about {steps}), trying {short(commit)}"
            )
            self.tried.append(commit)
            is_bad = self.judge(commit)
            if is_bad is None:
                self.skipped.append(commit)
            elif is_bad:
                self.bad = commit
            else:
                self.goods.append(commit)
        return tuple(self._suspects())

    def _suspects(self) -> list[str]:
        return self.history.order(self.bad, self.goods)
