"""Short titles of change groups, for a line of a list. Figures, and how often and where it holds, are left to
the group's title; in how many cases it holds is not.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.group import titles
from irdiff.group.report_classes import ReportClass
from irdiff.model import Case, Cause, CauseKind, ChangeGroup
from irdiff.words import shortened

_PART = re.compile(
    r"(?=, | or (?!\d)| before )(?![^\[]*\])(?![^,]* and \w+(?: (?:or|to) \d+)? (?:more|fewer) )"
)
"""Where a line may end: not inside a list of values, of `1 or 2 more`, or of `one more X and one fewer Y`."""


@dataclass(frozen=True, kw_only=True)
class ShortTitle:
    clauses: tuple[str, ...]
    """A hazard comes first. Rounding of some cases comes after the edit: nearly every edit rounds differently
    somewhere.
    """
    risky: int
    """Cases with the hazard or rounding that a clause names."""

    def within(self, room: int) -> str:
        """Cuts where a clause or a part of one ends, or leaves out that the first is in a loop. Backticks
        take no room.
        """
        first, *others = self.clauses
        for clauses in (self.clauses, (first.removesuffix(" in the loop"), *others)):
            parts = _PART.split(", ".join(clauses))
            for count in range(len(parts), 0, -1):
                text = "".join(parts[:count])
                text += ("`" if text.count("`") % 2 else "") + (", …" if count < len(parts) else "")
                if len(text.replace("`", "")) <= room:
                    return text
        return ""

    def cut(self, room: int) -> str:
        """Cuts between two words if nothing fits."""
        return self.within(room) or shortened(self.clauses[0].replace("`", ""), room)


def of(group: ChangeGroup, cases: Mapping[str, Case]) -> ShortTitle:
    summarized = [
        (case, case.summary) for name in group.members if (case := cases.get(name)) and case.summary
    ]
    if not summarized:
        return ShortTitle(clauses=(group.title.partition(";")[0],), risky=0)
    edits = [
        (case, tuple(cause for cause in summary.causes if not _is_effect(cause)))
        for case, summary in summarized
    ]
    risks = [
        (case, tuple(filter(_is_effect, summary.causes)))
        for case, summary in summarized
        if group.severity in (ReportClass.HAZARD, ReportClass.ROUNDING) and summary.severity == group.severity
    ]
    subjects = {case.id: effects[0].subject for case, effects in risks if effects}
    shown = subjects.get(group.representative) or next(iter(subjects.values()), "")
    risks = [member for member in risks if subjects.get(member[0].id) == shown]
    risk, clauses = _clauses(risks), _clauses(edits)
    is_in_some = group.severity == ReportClass.ROUNDING and len(risks) < len(summarized)
    ahead = 1 if is_in_some else 0
    return ShortTitle(clauses=(*clauses[:ahead], *risk, *clauses[ahead:]), risky=len(risks))


def _is_effect(cause: Cause) -> bool:
    return cause.kind is CauseKind.EFFECT


def _clauses(members: Sequence[titles.CaseCauses]) -> list[str]:
    return [titles.without_place(clause) for clause in titles.clauses(members)]
