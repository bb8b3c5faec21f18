"""What a push changed, for the comment: the groups of this run against those that the comment had before.

The comment keeps in a hidden line which groups it showed for which commit, and for the commit before: so a
job that runs twice for one commit says the same twice. Only comments by the token's own account are read, and
of the line only what has its exact form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.model import Run
from irdiff.report import run_changes

_MOST_GROUPS = 400
"""A comment has room for this many. With more groups it keeps none, and compares nothing."""
_DIGITS = 12
_HEX = r"[0-9a-f]"
_FIRST = re.compile(r"^### .*\n", re.MULTILINE)
_PAIR = rf'"{_HEX}{{{_DIGITS}}}": ?"{_HEX}{{{_DIGITS}}}"'
_PUSHED = rf'\["{_HEX}{{40,64}}", ?\{{(?:{_PAIR}(?:, ?)?)*\}}\]'
_LINE = re.compile(rf"<!-- irdiff:groups:(\[(?:{_PUSHED}(?:, ?)?){{1,2}}\]) -->")


@dataclass(frozen=True, kw_only=True)
class Pushed:
    """What one commit's run found."""

    commit: str
    groups: Mapping[str, str]
    """A digest of its cases and edits by the digest of each group's id."""


def of_run(run: Run, commit: str | None) -> Pushed | None:
    """None where the commit is not known, or there are more groups than a comment keeps."""
    if commit is None or len(run.groups) > _MOST_GROUPS:
        return None
    return Pushed(commit=commit, groups=run_changes.short_prints(run, _DIGITS))


def appended(text: str, now: Pushed | None, former: str | None) -> str:
    """The body of a comment with what changed since the former body, below its first line."""
    if now is None:
        return text
    before = next((pushed for pushed in _read(former or "") if pushed.commit != now.commit), None)
    kept = [now, *([before] if before else [])]
    rows = json.dumps([[pushed.commit, dict(pushed.groups)] for pushed in kept])
    if before:
        sentence = run_changes.counts(before.groups, now.groups).sentence(before.commit[:7])
        text = _FIRST.sub(lambda found: f"{found[0]}\n{sentence}\n", text, count=1)
    return f"{text.rstrip()}\n<!-- irdiff:groups:{rows} -->\n"


def _read(body: str) -> list[Pushed]:
    found = _LINE.search(body)
    if not found:
        return []
    try:
        return [Pushed(commit=commit, groups=groups) for commit, groups in json.loads(found[1])]
    except ValueError:
        return []
