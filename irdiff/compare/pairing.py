"""Which launches of both sides are one case, a failure standing for what it kept from being launched. Pure.

A workload that does not load (`workload:*`) stands for everything that the other side launches of it, and a
label that the frontend does not take for each of the kernels that the other side launches under it: those are
launched on one side and fail on the other. Taken as missing they would read as removed or added.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from irdiff.model import CaptureFailure, Launch

Row = Launch | CaptureFailure


@dataclass(frozen=True, kw_only=True)
class Matched:
    """What each side has under one id; None where it neither launches it nor fails to."""

    id: str
    base: Row | None
    head: Row | None


def match(base: Iterable[Row], head: Iterable[Row]) -> list[Matched]:
    """The launches and failures of one workload for one target, each id once."""
    ours, theirs = _by_id(base), _by_id(head)
    standing = {*_standing_for(theirs, ours), *_standing_for(ours, theirs)}
    return [
        Matched(id=name, base=_row(name, ours, theirs), head=_row(name, theirs, ours))
        for name in dict.fromkeys([*ours, *theirs])
        if name not in standing
    ]


def _by_id(rows: Iterable[Row]) -> dict[str, Row]:
    """A failure hides a launch of the same id: the label did not get to its end."""
    found = {row.id: row for row in rows}
    return {**found, **{name: row for name, row in found.items() if isinstance(row, CaptureFailure)}}


def _standing_for(others: Mapping[str, Row], rows: Mapping[str, Row]) -> set[str]:
    """Ids of failures among `rows` whose place the ids of the other side take."""
    failures = (_failure_over(name, rows) for name in others if name not in rows)
    return {failure.id for failure in failures if failure}


def _row(name: str, rows: Mapping[str, Row], others: Mapping[str, Row]) -> Row | None:
    """Whether it was expected to compile is for the side to say that got as far as the launch."""
    failure = None if name in rows else _failure_over(name, rows)
    return replace(failure, id=name, expected=others[name].expected) if failure else rows.get(name)


def _failure_over(name: str, rows: Mapping[str, Row]) -> CaptureFailure | None:
    """Of one side, the nearest."""
    whole = f"{name.partition(':')[0]}:*"
    failures = [row for row in rows.values() if isinstance(row, CaptureFailure)]
    over = [row for row in failures if name.startswith(f"{row.id}/") or (row.id == whole and name != whole)]
    return max(over, key=lambda row: len(row.id) if row.id != whole else 0, default=None)
