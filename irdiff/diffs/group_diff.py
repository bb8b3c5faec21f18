"""A few real lines of a change, which a reviewer can judge without another tool."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from irdiff.backends.stages import ASSEMBLIES, WITHOUT_TEXT
from irdiff.compare.line_alignment import MARK_LEGEND, Kind
from irdiff.diffs import disassembly, launch_changes, stage_diff
from irdiff.diffs.stage_diff import DiffLine, StageDiff
from irdiff.model import Case, Run, StageStatus

_CONTEXT = 1
_MAX_LAUNCH = 6
_MOST = 40
_ONLY_AT_BASE = re.compile(r"\w'")
"""As `line_alignment.in_numbering_of_head` marks a name."""


class GroupDiffs:
    """The diffs of a run's cases, each made once."""

    def __init__(self, folder: Path, run: Run) -> None:
        self._folder, self._run = folder, run
        self._made: dict[str, tuple[str, ...]] = {}

    def of(self, case: Case, edit: Sequence[str], most: int) -> tuple[str, ...]:
        """At most so many lines: what is launched with another value, then the first stage that differs.

        Of a run without its texts, the abstracted `edit` of the group.
        """
        if most and case.id not in self._made:
            self._made[case.id] = tuple(islice(self._all(case, edit), _MOST))
        return self._made.get(case.id, ())[:most]

    def machine_code(self, case: Case, most: int) -> tuple[str, ...]:
        """At most so many lines of the last text that differs. The kernel and the stage, and a legend if the
        lines need one, stand above them.
        """
        stage = next((name for name in ASSEMBLIES if case.stages.get(name) is StageStatus.CHANGED), "")
        diff = stage_diff.read(self._folder, case, stage) if stage and most else ""
        if not isinstance(diff, StageDiff):
            return ()
        lines = tuple(islice((line for line in _lines(diff) if line != "@@"), most))
        is_marked = any(_ONLY_AT_BASE.search(line) for line in lines if line.startswith("-"))
        legend = (f"@@ {MARK_LEGEND} @@",) if is_marked else ()
        return (f"@@ {case.kernel}: {stage} of {case.id} @@", *legend, *lines)

    def _all(self, case: Case, edit: Sequence[str]) -> Iterator[str]:
        changes = launch_changes.of_case(case, self._run)[:_MAX_LAUNCH]
        launched = list(filter(launch_changes.chosen, changes))
        for change in launched:
            yield f"-{change.path} = {change.base}"
            yield f"+{change.path} = {change.head}"
        diff = stage_diff.read(self._folder, case, case.origin.stage) if case.origin else ""
        if isinstance(diff, StageDiff):
            yield from _lines(diff)
        elif case.origin and case.origin.stage in WITHOUT_TEXT and self._has_same_instructions(case):
            yield f" {disassembly.CONTROL_BITS}"
        elif not launched:
            yield from _without_equal(edit)

    def _has_same_instructions(self, case: Case) -> bool:
        return disassembly.has_same_instructions(self._folder, case)


def _without_equal(edit: Sequence[str]) -> Iterator[str]:
    """Abstracted lines, each that is both removed and added once: only its operands or its place differ."""
    lines = frozenset(edit)
    for line in edit:
        if f"{'+' if line.startswith('-') else '-'}{line[1:]}" not in lines:
            yield line
        elif line.startswith("-"):
            yield f"~{line[1:]} (other operands, or another place)"


def _lines(diff: StageDiff) -> Iterator[str]:
    """Removed and added lines with one line around them, the telling ones first; then the short names."""
    shown = []
    for hunk in itertools.chain(*diff.telling_first(_CONTEXT)):
        for index in hunk:
            line = diff.line(index)
            sign = _SIGNS.get(line.kind, " ")
            shown.append(f"{sign}{_near_its_mark(line)}")
            yield shown[-1]
        yield "@@"
    for short, full in diff.legend:
        if any(short in text for text in shown):
            yield f" {short} = {full}"


_SIGNS = {Kind.REMOVED: "-", Kind.ADDED: "+", Kind.RENAMED: "~"}
_LINE = 140
_BEFORE_MARK = 50


def _near_its_mark(line: DiffLine) -> str:
    """A long line from shortly before the first part of it that differs."""
    start = line.marks[0][0] - _BEFORE_MARK if line.marks and len(line.text) > _LINE else 0
    return f"… {line.text[start:]}" if start > 0 else line.text
