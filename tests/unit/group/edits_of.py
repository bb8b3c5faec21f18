"""Edits written down line by line: `edit("ttgir", added("tt.load"), removed("tt.store", partner="…"))`."""

from __future__ import annotations

from irdiff.compare.edits import Edit, EditLine


def removed(text: str, *, partner: str | None = None, depth: int = 0, ahead: str = "") -> EditLine:
    return EditLine(sign="-", text=text, number=0, depth=depth, partner=partner, ahead=ahead)


def added(text: str, *, partner: str | None = None, depth: int = 0, ahead: str = "") -> EditLine:
    return EditLine(sign="+", text=text, number=0, depth=depth, partner=partner, ahead=ahead)


def replaced(before: str, after: str, *, depth: int = 0) -> tuple[EditLine, EditLine]:
    """One line that says something else on the other side."""
    return removed(before, partner=after, depth=depth), added(after, partner=before, depth=depth)


def edit(stage: str, *lines: EditLine) -> Edit:
    return Edit(stage=stage, lines=lines)
