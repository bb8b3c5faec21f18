"""Joins cases with the same error, and nondeterministic cases, to show each reason once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from irdiff.backends.stages import COMPONENTS
from irdiff.group.titles import VARYING
from irdiff.model import Case, Verdict
from irdiff.report.phrases import PARTS
from irdiff.stages import Stage

_ANOTHER = "different outputs for the same input"


@dataclass(frozen=True, kw_only=True)
class SharedError:
    words: str
    """Numbers, names and paths that differ between the cases are left out."""
    cases: tuple[Case, ...]

    @property
    def names(self) -> str:
        more = len(self.cases) - 1
        return self.cases[0].id + (f" and {more} more" if more else "")


def errors(cases: Iterable[Case]) -> list[SharedError]:
    """Puts the most frequent first."""
    by_error: dict[str, list[Case]] = {}
    for case in cases:
        by_error.setdefault(VARYING.sub("…", _error(case)), []).append(case)
    shared = [
        SharedError(words=_error(same[0]) if len(set(map(_error, same))) == 1 else words, cases=tuple(same))
        for words, same in by_error.items()
    ]
    return sorted(shared, key=lambda error: (-len(error.cases), error.cases[0].id))


def _error(case: Case) -> str:
    return case.error or ("no message" if case.verdict in (Verdict.BROKEN, Verdict.FAILING) else "")


def unstable_words(case: Case) -> str:
    """Returns nothing for a deterministic case."""
    match sorted({*case.nondeterministic}):
        case []:
            return ""
        case [one]:
            other = "head" if one == "base" else "base"
            program = _unsteady(case, one)
            return f"{program} of {one} gave {_ANOTHER}, and {program} of {other} did not"
        case [one, other]:
            programs = _unsteady(case, one), _unsteady(case, other)
            if programs[0] == programs[1]:
                return f"{programs[0]} of both sides gave {_ANOTHER}"
            return f"{programs[0]} of {one} and {programs[1]} of {other} gave {_ANOTHER}"
        case _:
            return f"both sides gave {_ANOTHER}"


def _unsteady(case: Case, side: str) -> str:
    """Names the program that gave another output for the same input, such as `ptxas`."""
    stage = case.unsteady_stages.get(side, "")
    if stage == Stage.LAUNCH:
        return "the program"
    component = COMPONENTS.get(stage)
    return PARTS[component] if component else "the compiler"


def unstable(cases: Iterable[Case]) -> list[tuple[str, list[Case]]]:
    """Puts cases unstable at head first: if only base is, head has fixed it."""
    by_words: dict[str, list[Case]] = {}
    for case in cases:
        if case.nondeterministic:
            by_words.setdefault(unstable_words(case), []).append(case)
    return sorted(by_words.items(), key=lambda kind: ("head" not in kind[1][0].nondeterministic, kind[0]))
