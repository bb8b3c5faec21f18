"""A diff on a terminal: unified or side by side, raw line numbers at the margin, changed parts marked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, zip_longest

from rich.console import Console
from rich.text import Text

from irdiff.diffs.renumbering import Kind
from irdiff.diffs.stage_diff import DiffLine, StageDiff
from irdiff.words import counted

_STYLE = {Kind.REMOVED: "red", Kind.ADDED: "green", Kind.RENAMED: "yellow", Kind.SAME: ""}
_LAYOUT = Console()
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


def color_of(line: str) -> str:
    """Of one line of a unified diff."""
    return {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")


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
    """Runs of removed and added lines stand next to each other."""
    for is_edit, run in groupby(found, lambda line: line.kind in (Kind.REMOVED, Kind.ADDED)):
        rows = list(run)
        if not is_edit:
            pairs: Iterable[tuple[DiffLine | None, DiffLine | None]] = zip(rows, rows, strict=True)
        else:
            removed = [row for row in rows if row.kind is Kind.REMOVED]
            pairs = zip_longest(removed, [row for row in rows if row.kind is Kind.ADDED])
        for left, right in pairs:
            yield from _pair(left, right, view)


def _pair(left: DiffLine | None, right: DiffLine | None, view: View) -> Iterator[Text]:
    """Both lines whole: one that is longer than its half goes on below."""
    width = max(20, (view.width - 3) // 2 - 6)
    texts = [_content(line, view) if line else Text() for line in (left, right)]
    halves = [text.wrap(_LAYOUT, width, overflow="fold") for text in texts]
    numbers = [_number(left.base_number if left else 0), _number(right.head_number if right else 0)]
    for ours, theirs in zip_longest(*halves, fillvalue=Text()):
        text = Text.assemble((f"{numbers[0]} ", "dim"), ours, " " * (width - ours.cell_len), (" │ ", "dim"))
        yield text.append(f"{numbers[1]} ", style="dim").append_text(theirs)
        numbers = [_number(0)] * 2


def _legend(diff: StageDiff, text: str) -> Iterator[Text]:
    used = [(short, full) for short, full in diff.legend if short in text]
    if used:
        yield Text("\nshort names", style="dim")
    for short, full in used:
        yield Text(f"  {short} = {full}", style="dim")
