"""Tables that stand after the groups: folded in Markdown and on the page.

Terminal, Markdown and page print every table in the same way, so a new one is one more `DetailTable` here.
"""

from __future__ import annotations

from dataclasses import dataclass

from irdiff.diffs import launch_changes
from irdiff.model import Run
from irdiff.report.lists import Listed, listed


@dataclass(frozen=True, kw_only=True)
class DetailTable:
    title: str
    noun: str
    """The word for a row, to say how many are left out."""
    columns: tuple[str, ...]
    rows: Listed[tuple[str, ...]]
    """Each row has a cell for each column. The first is a name, which Markdown and the page set as code."""


def of(run: Run, most: int) -> tuple[DetailTable, ...]:
    tables = (
        DetailTable(
            title="what changed cases are launched with, where it differs",
            noun="setting",
            columns=("", "base", "head", "cases"),
            rows=listed(
                [
                    (change.path, change.base, change.head, str(count))
                    for change, count in launch_changes.of_run(run)
                ],
                most,
            ),
        ),
    )
    return tuple(table for table in tables if table.rows)
