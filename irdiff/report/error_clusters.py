"""What many cases have in common, shown once: the same error, sides that disagree with themselves. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irdiff.group.titles import VARYING
from irdiff.model import Case, Verdict


@dataclass(frozen=True, kw_only=True)
class SharedError:
    """One error with the cases that have it."""

    words: str
    """Numbers, names and paths are left open where they differ between the cases."""
    cases: tuple[Case, ...]

    @property
    def names(self) -> str:
        """The first case, and how many more there are."""
        more = len(self.cases) - 1
        return self.cases[0].id + (f" and {more} more" if more else "")


def errors(cases: Iterable[Case]) -> list[SharedError]:
    """By error, the most frequent first; cases in their order."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        found.setdefault(VARYING.sub("…", _error(case)), []).append(case)
    rows = [
        SharedError(words=_error(same[0]) if len(set(map(_error, same))) == 1 else words, cases=tuple(same))
        for words, same in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row.cases), row.cases[0].id))


def _error(case: Case) -> str:
    return case.error or ("no message" if case.verdict in (Verdict.BROKEN, Verdict.FAILING) else "")


def unstable_words(case: Case) -> str:
    """Which sides gave other code when they were compiled again; empty where none did."""
    match sorted({*case.nondeterministic}):
        case []:
            return ""
        case [one]:
            return f"{one} disagrees with itself, {'head' if one == 'base' else 'base'} does not"
        case _:
            return "both sides disagree with themselves"


def unstable(cases: Iterable[Case]) -> list[tuple[str, list[Case]]]:
    """The cases of each kind: those of head first, for where base alone disagrees head has mended it."""
    found: dict[str, list[Case]] = {}
    for case in cases:
        if case.nondeterministic:
            found.setdefault(unstable_words(case), []).append(case)
    return sorted(found.items(), key=lambda row: ("head" not in row[1][0].nondeterministic, row[0]))
