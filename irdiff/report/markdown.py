"""The Markdown report: a comment, the summary of a job, or a document. If the whole does not fit, every list
becomes shorter and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.errors import UsageError
from irdiff.model import Run
from irdiff.report import escape, lists, templates, view
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingSummary
from irdiff.report.view import RunView
from irdiff.run.failure import PartFailure, in_words

COMMENT = 8_000
"""Characters that people read in a thread."""
LIMIT = 60_000
"""GitHub refuses comments of more than 65,536 characters; the rest is for the caller's own text."""
_SMALLEST_LIMIT = 1_000
_SHORT_NOTE = 160
_MOST_TRIES = 16
_MOST_FAILURES = 8
_AROUND_HEADLINE = 30
"""Characters of its heading's marks."""
_LEFT_FREE = 400
"""Characters of a report on failures that no failure uses."""


def render(
    run: Run, folder: Path, timing: TimingSummary | None = None, limit: int = LIMIT, *, as_: Shown = PLAIN
) -> str:
    """Raises UsageError if `limit` is too small for any report."""
    if limit < _SMALLEST_LIMIT:
        raise UsageError(
            f"a Markdown report needs at least {_SMALLEST_LIMIT:,} characters, not {limit:,}",
            hint=f"give it {_SMALLEST_LIMIT} or more",
        )
    template = templates.markdown().get_template("report.md.j2")
    diffs = GroupDiffs(folder, run)
    limits = lists.WHOLE if limit > COMMENT else lists.LISTED
    for _ in range(_MOST_TRIES):
        shown = view.of(run, diffs, timing, limits, as_=as_)
        text = template.render(view=shown, limits=limits, is_comment=limit <= COMMENT)
        if len(text) <= limit:
            return text
        limits = limits.tighter()
    return _headline_only(shown, run, limit)


def _headline_only(shown: RunView, run: Run, limit: int) -> str:
    """Adds as many notes as fit: they say what was not compared."""
    end = "The report is too long to be shown here: see the HTML report.\n"
    characters = room = limit - len(end) - _AROUND_HEADLINE
    while len(headline := escape.markdown(shown.headline, limit=characters)) > room:
        characters -= len(headline) - room
    text = f"### {shown.sign} irdiff: {headline}\n\n"
    for note in run.notes:
        quoted = f"- {escape.markdown(note, limit=_SHORT_NOTE)}\n"
        text += quoted if len(text) + len(quoted) + len(end) + 1 <= limit else ""
    return f"{text}\n{end}"


# a comparison that failed, or failed in part: the reason first, then what was compared


def failure_headline(*, has_run: bool) -> str:
    return "a part of the comparison failed" if has_run else "the comparison failed"


def of_failures(parts: Sequence[PartFailure], *, has_run: bool, limit: int) -> str:
    text = f"### ❌ irdiff: {failure_headline(has_run=has_run)}\n\n"
    shown = 0
    for part in parts[:_MOST_FAILURES]:
        for lines in (part.lines, part.lines[-5:], ()):
            block = _failure(part, lines)
            if len(text) + len(block) <= limit - _LEFT_FREE:
                text += block
                shown += 1
                break
    if shown < len(parts):
        text += f"… and {len(parts) - shown} more parts: see the log of the job.\n\n"
    if has_run:
        text += "What follows is of the parts that were compared.\n\n"
    return text


def _failure(part: PartFailure, lines: Sequence[str]) -> str:
    heading = f"**{escape.markdown(in_words(part), limit=200)}**\n\n"
    return heading + (escape.fence(lines, limit=300) + "\n\n" if lines else "")
