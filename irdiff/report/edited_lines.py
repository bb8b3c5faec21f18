"""Which edited lines of the compiler ran, in words: whether a silence is one of code that ran."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from irdiff.model import EditedLine, EditedLines, EditedSource, Run
from irdiff.words import counted, first_few

_SHOWN = 4


@dataclass(frozen=True, kw_only=True)
class LinesNotRun:
    """Lines of one hunk that follow one another, comments between them aside, and that no case runs."""

    path: str
    lines: tuple[EditedLine, ...]

    @property
    def place(self) -> str:
        """`lib/Analysis/AxisInfo.cpp:120-124`."""
        first, last = self.lines[0].number, self.lines[-1].number
        return f"{self.path}:{first}" if first == last else f"{self.path}:{first}-{last}"

    @property
    def sentence(self) -> str:
        """With the text of its first line."""
        return f"{self.place}  {self.lines[0].text}"


def sentence(run: Run) -> str:
    """`edited lines executed: 31 of 40, by 12 of 96 cases`, and what was not counted; empty where nothing
    was asked.
    """
    return _sentence(run.edited_lines) if run.edited_lines else ""


def _sentence(found: EditedLines) -> str:
    code = [line for source in found.sources for line in source.lines]
    ran = sum(line.cases > 0 for line in code)
    cases = counted(found.cases, "case")
    told = f"edited lines executed: {ran} of {len(code)}, by {found.executed_by} of {cases}"
    if not code:
        told = "edited lines executed: none of them holds code that runs"
    parts = [told]
    if found.unmeasured:
        parts.append(f"{counted(found.unmeasured, 'case')} left no counts (the compiler died)")
    if found.without_lines:
        parts.append(f"not counted by line: {first_few(found.without_lines, _SHOWN)}")
    if code and not ran:
        parts.append("no case reaches the edit: that nothing changed says nothing of it")
    return "; ".join(parts)


def missed(run: Run) -> bool:
    """Whether all lines were counted, and no case runs any of them."""
    found = run.edited_lines
    code = [line for source in found.sources for line in source.lines] if found else []
    return bool(found and code and not found.unmeasured) and not any(line.cases for line in code)


def not_run(run: Run) -> list[LinesNotRun]:
    """The edited lines that hold code and that no case runs."""
    sources = run.edited_lines.sources if run.edited_lines else ()
    return [stretch for source in sources for stretch in _stretches(source)]


def _stretches(source: EditedSource) -> Iterator[LinesNotRun]:
    """A line that runs ends one, and so does the end of its hunk."""
    begins = [first for first, _ in source.hunks]

    def place(line: EditedLine) -> tuple[int, bool]:
        return bisect.bisect_right(begins, line.number), line.cases > 0

    for (_, ran), lines in itertools.groupby(source.lines, place):
        if not ran:
            yield LinesNotRun(path=source.path, lines=tuple(lines))
