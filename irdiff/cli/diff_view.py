"""A diff on a terminal: unified or side by side, raw line numbers at the margin, changed parts marked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

from irdiff.diffs.renumbering import Kind
from irdiff.diffs.stage_diff import DiffLine, StageDiff
from irdiff.words import counted

_STYLE = {Kind.REMOVED: "red", Kind.ADDED: "green", Kind.RENAMED: "yellow", Kind.SAME: ""}
_MARK = {Kind.REMOVED: "bold reverse", Kind.ADDED: "bold reverse", Kind.RENAMED: "underline", Kind.SAME: ""}


@dataclass(frozen=True, kw_only=True)
class View:
    """How a diff is shown."""

    context: int
    raw: bool
    side_by_side: bool
    width: int


def lines(diff: StageDiff, view: View) -> Iterator[Text]:
    """The lines to print. There are none where nothing differs."""
    position = 0
    shown: list[str] = []
    for hunk in diff.hunks(view.context):
        if hunk.start > position:
            yield _gap(hunk.start - position)
        found = [diff.line(index) for index in hunk]
        shown += [line.text for line in found]
        yield from _side_by_side(found, view) if view.side_by_side else _unified(found, view)
        position = hunk.stop
    if 0 < position < len(diff.rows):
        yield _gap(len(diff.rows) - position)
    if not view.raw:
        yield from _legend(diff, "\n".join(shown))


def counts(diff: StageDiff) -> str:
    """`13 lines removed, 9 added; 227 in other registers`."""
    removed = diff.count(Kind.REMOVED)
    words = f"{counted(removed, 'line')} removed, {diff.count(Kind.ADDED)} added"
    renamed = diff.count(Kind.RENAMED)
    return words + (f"; {renamed} in other registers" if renamed else "")


def _gap(count: int) -> Text:
    return Text(f"{'':13}… {counted(count, 'line')} without a change", style="dim")


def _unified(found: Sequence[DiffLine], view: View) -> Iterator[Text]:
    for line in found:
        text = Text(f"{_number(line.base_number)} {_number(line.head_number)} ", style="dim")
        text.append(f"{line.kind.value} ", style=_STYLE[line.kind])
        yield text.append_text(_content(line, view))


def _number(number: int) -> str:
    return f"{number:>5}" if number else " " * 5


def _content(line: DiffLine, view: View) -> Text:
    if view.raw and line.raw:
        return Text(line.raw, style=_STYLE[line.kind])
    text = Text(line.text, style=_STYLE[line.kind])
    for start, end in line.marks:
        text.stylize(_MARK[line.kind], start, end)
    return text


def _side_by_side(found: Sequence[DiffLine], view: View) -> Iterator[Text]:
    """Runs of removed and added lines stand beside each other."""
    removed: list[DiffLine] = []
    added: list[DiffLine] = []
    for line in found:
        if line.kind is Kind.REMOVED:
            removed.append(line)
        elif line.kind is Kind.ADDED:
            added.append(line)
        else:
            yield from _beside(removed, added, view)
            removed, added = [], []
            yield from _pair(line, line, view)
    yield from _beside(removed, added, view)


def _beside(removed: Sequence[DiffLine], added: Sequence[DiffLine], view: View) -> Iterator[Text]:
    for index in range(max(len(removed), len(added))):
        left = removed[index] if index < len(removed) else None
        right = added[index] if index < len(added) else None
        yield from _pair(left, right, view)


def _pair(left: DiffLine | None, right: DiffLine | None, view: View) -> Iterator[Text]:
    """Both lines whole: one that is longer than its half goes on below."""
    width = max(20, (view.width - 3) // 2 - 6)
    halves = [_folded(Text() if line is None else _content(line, view), width) for line in (left, right)]
    numbers = (left.base_number if left else 0, right.head_number if right else 0)
    for index in range(max(map(len, halves))):
        text = Text()
        for place, half in enumerate(halves):
            text.append(" │ " if place else "", style="dim")
            text.append(f"{_number(0 if index else numbers[place])} ", style="dim")
            part = half[index] if index < len(half) else Text()
            text.append_text(part)
            text.append("" if place else " " * (width - part.cell_len))
        yield text


def _folded(text: Text, width: int) -> list[Text]:
    """Cut behind a blank where the last third of a line has one, else where the line is full."""
    parts = []
    while text.cell_len > width:
        cut = width
        while cut > 1 and text[:cut].cell_len > width:  # characters that are two columns wide
            cut -= 1
        blank = text.plain.rfind(" ", width * 2 // 3, cut)
        head, text = text.divide([blank + 1 if blank > 0 else cut])
        parts.append(head)
    return [*parts, text]


def _legend(diff: StageDiff, text: str) -> Iterator[Text]:
    used = [(short, full) for short, full in diff.legend if short in text]
    if used:
        yield Text("\nshort names", style="dim")
    for short, full in used:
        yield Text(f"  {short} = {full}", style="dim")
