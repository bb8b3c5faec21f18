"""A comparison that failed, or failed in part, as Markdown: the reason first, then what was compared."""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.report import escape
from irdiff.run.failure import PartFailure, in_words

_MAX_PARTS = 8
_SHORTEST = 400


def headline(*, has_run: bool) -> str:
    return "a part of the comparison failed" if has_run else "the comparison failed"


def markdown(parts: Sequence[PartFailure], *, has_run: bool, limit: int) -> str:
    """What failed and the last lines of each, in at most `limit` characters."""
    text = f"### irdiff: {headline(has_run=has_run)}\n\n"
    shown = 0
    for part in parts[:_MAX_PARTS]:
        for lines in (part.lines, part.lines[-5:], ()):
            block = _block(part, lines)
            if len(text) + len(block) <= limit - _SHORTEST:
                text += block
                shown += 1
                break
    if shown < len(parts):
        text += f"… and {len(parts) - shown} more parts: see the log of the job.\n\n"
    if has_run:
        text += "What follows is of the parts that were compared.\n\n"
    return text


def _block(part: PartFailure, lines: Sequence[str]) -> str:
    heading = f"**{escape.markdown(in_words(part), limit=200)}**\n\n"
    return heading + (escape.fence(lines, limit=300) + "\n\n" if lines else "")
