"""The Markdown report: a comment, the summary of a job, a document; never longer than it may be.

The template is `reports/report.md.j2`. Where the whole does not fit, every list becomes shorter and says so.
"""

from __future__ import annotations

from pathlib import Path

from irdiff.diffs.group_diff import GroupDiffs
from irdiff.errors import UsageError
from irdiff.model import Run
from irdiff.report import escape, templates, view
from irdiff.report.shown import PLAIN, Shown
from irdiff.report.timing_summary import TimingSummary
from irdiff.report.view import RunView

COMMENT = 8_000
"""Characters that people read in a thread."""
LIMIT = 60_000
"""GitHub refuses comments of more than 65,536 characters; some are left to whoever wraps this text."""
_SMALLEST_LIMIT = 1_000
_SHORT_NOTE = 160
_MOST_TRIES = 16


def render(
    run: Run, folder: Path, timing: TimingSummary | None = None, limit: int = LIMIT, *, as_: Shown = PLAIN
) -> str:
    """The report in at most `limit` characters. Raises UsageError for a limit that holds no report."""
    if limit < _SMALLEST_LIMIT:
        raise UsageError(f"a Markdown report needs at least {_SMALLEST_LIMIT} characters, not {limit}")
    template = templates.markdown().get_template("report.md.j2")
    diffs = GroupDiffs(folder, run)
    limits = view.WHOLE if limit > COMMENT else view.LISTED
    for _ in range(_MOST_TRIES):
        shown = view.of(run, diffs, timing, limits, as_=as_)
        text = template.render(view=shown, limits=limits)
        if len(text) <= limit:
            return text
        limits = limits.tighter()
    return _headline_only(shown, run, limit)


def _headline_only(shown: RunView, run: Run, limit: int) -> str:
    """The headline, with as many notes as there is room for: they say what was not compared."""
    text = f"### irdiff: {escape.markdown(shown.headline)}\n\n"
    end = "The report is too long to be shown here: see the HTML report.\n"
    for note in run.notes:
        quoted = f"- {escape.markdown(note, limit=_SHORT_NOTE)}\n"
        text += quoted if len(text) + len(quoted) + len(end) + 1 <= limit else ""
    return f"{text}\n{end}"
