"""Commands that a report prints, to be copied as they stand: every word is quoted for a shell."""

from __future__ import annotations

import shlex

from irdiff.model import Case, Run
from irdiff.report import escape

UNNAMED = "RUN"
"""What a run is called where the writer of a report does not know how its reader reaches it."""


def command(*words: str) -> str:
    """`irdiff` with words, quoted. What cannot be seen in a word is spelled out: nobody pastes it unseen."""
    return shlex.join(["irdiff", *(escape.clean(word) for word in words)])


def explain(call: str, name: str) -> str:
    """The whole story of a group or a case of the run that `call` names."""
    return command("explain", call, name)


def diff(call: str, name: str, *options: str) -> str:
    return command("diff", call, name, *options)


def page(call: str) -> str:
    return command("report", call, "--html", "report.html")


def again(run: Run, case: Case) -> str:
    """Compares one case of the run again, on any machine that can have both sides."""
    return command("compare", run.base.spec, run.head.spec, "--case", case.id, "--target", case.target)
