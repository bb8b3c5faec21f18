from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
_FEWEST_LINES = 6
"""The fewest lines of a diff that show anything."""


@dataclass(frozen=True, kw_only=True)
class ListLimits:
    groups: int
    unfolded: int
    lines: int
    notes: int
    others: int
    """Entries of every other list."""

    def tighter(self) -> ListLimits:
        """Shortens the first screen only when little else is left."""
        scarce = not self.unfolded

        def less(count: int, least: int = 0) -> int:
            return max(least, count * 3 // 4)

        return ListLimits(
            groups=less(self.groups, 1) if scarce else self.groups,
            unfolded=less(self.unfolded) if self.lines <= _FEWEST_LINES else self.unfolded,
            lines=less(self.lines, _FEWEST_LINES),
            notes=less(self.notes, 2) if scarce else self.notes,
            others=less(self.others, 1 if scarce else 3),
        )


LISTED = ListLimits(groups=8, unfolded=8, lines=12, notes=8, others=8)
"""For a comment and a terminal."""
WHOLE = ListLimits(groups=40, unfolded=40, lines=24, notes=60, others=60)
"""For a document that is opened on purpose."""


@dataclass(frozen=True)
class Listed(Generic[T]):
    entries: tuple[T, ...]
    more: int

    def __iter__(self) -> Iterator[T]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def total(self) -> int:
        return len(self.entries) + self.more


def listed(entries: Sequence[T], most: int) -> Listed[T]:
    return Listed(tuple(entries[:most]), max(0, len(entries) - most))
