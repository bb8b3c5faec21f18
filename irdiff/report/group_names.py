"""Names the change groups of a run: by a number in the order of reports, and by a short id that other runs
share.

The short id, `g:b140`, is the beginning of the group's id, a digest of what its cases have in common.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irdiff.errors import UsageError
from irdiff.group import report_classes, short_titles
from irdiff.group.report_classes import ReportClass
from irdiff.group.short_titles import ShortTitle
from irdiff.model import ChangeGroup, Run
from irdiff.report import distinct_edits, escape
from irdiff.report.distinct_edits import DistinctEdit

PREFIX = "g:"
_SHORTEST = 4
_SHORTEST_WITHOUT_PREFIX = 8
"""Characters by which an id is recognized without `g:`."""
_LINE = 100
_PLAIN = re.compile(r"[0-9A-Za-z]+")


@dataclass(frozen=True, kw_only=True)
class NamedGroup:
    number: int
    short: str
    """`g:b140`."""
    group: ChangeGroup
    short_title: ShortTitle

    @property
    def title(self) -> str:
        return self.short_title.cut(_LINE)

    @property
    def is_partly_risky(self) -> bool:
        return 0 < self.short_title.risky < len(self.group.members)

    @property
    def risk(self) -> str:
        """`hazard in 1 of 4 cases`."""
        some = f" in {self.short_title.risky} of {len(self.group.members)} cases"
        return self.report_class + (some if self.is_partly_risky else "")

    @property
    def report_class(self) -> ReportClass:
        return report_classes.shown_class(self.group)


def named(run: Run, edits: Sequence[DistinctEdit] | None = None) -> list[NamedGroup]:
    """Keeps the order of reports."""
    short, cases = short_ids(run), {case.id: case for case in run.cases}
    groups = (group for edit in edits or distinct_edits.of(run) for group in edit.groups)
    return [
        NamedGroup(
            number=number,
            short=short[group.id],
            group=group,
            short_title=short_titles.of(group, cases),
        )
        for number, group in enumerate(groups, 1)
    ]


def short_ids(run: Run) -> Mapping[str, str]:
    """An id that no irdiff creates (of a forged run) is not shortened."""
    ids = sorted(group.id for group in run.groups)
    neighbours = zip(["", *ids], ids, [*ids[1:], ""], strict=False)
    return {name: PREFIX + _cut(before, name, after) for before, name, after in neighbours}


def _cut(before: str, name: str, after: str) -> str:
    if not _PLAIN.fullmatch(name):
        return name
    length = _SHORTEST
    while length < len(name) and name[:length] in (before[:length], after[:length]):
        length += 1
    return name[:length]


def find(run: Run, text: str) -> ChangeGroup | None:
    """Finds by number, short id or a longer part of an id. Raises UsageError if several groups match."""
    groups = named(run)
    if text.isascii() and text.isdigit() and 1 <= int(text) <= len(groups):
        return groups[int(text) - 1].group
    wanted = text.removeprefix(PREFIX)
    exact = [each for each in groups if each.group.id == wanted]
    if not exact and (text.startswith(PREFIX) or len(wanted) >= _SHORTEST_WITHOUT_PREFIX):
        exact = [each for each in groups if wanted and each.group.id.startswith(wanted)]
    if len(exact) > 1:
        raise UsageError(f"{len(exact)} groups begin with {wanted[:80]!a}", hint=f"one of {_listed(exact)}")
    return exact[0].group if exact else None


def unknown(run: Run, text: str) -> UsageError:
    groups = named(run)
    hint = f"1 to {len(groups)}, or an id: {_listed(groups)}" if groups else "it has none"
    return UsageError(f"the run has no change group {text[:80]!a}", hint=hint)


def _listed(groups: Sequence[NamedGroup], limit: int = 8) -> str:
    return ", ".join(escape.terminal(each.short, limit=80) for each in groups[:limit]) + (
        ", …" if len(groups) > limit else ""
    )
