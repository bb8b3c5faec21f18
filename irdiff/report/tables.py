"""Tables of text that never cut a cell: columns if there is room, else one field below another. The first
cell of a row is an id that readers copy. A pipe has no width.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.text import Text

_GAP = "  "
_INDENT = " " * 4


def heading(text: str) -> Iterator[Text]:
    """Puts a blank line above the title."""
    yield Text()
    yield Text(text, style="bold underline")


@dataclass(frozen=True, kw_only=True)
class Column:
    name: str
    right: bool = False
    """Aligned to the right, for figures."""


def fits(columns: Sequence[Column], table: Sequence[Sequence[Text]], width: int | None) -> bool:
    """None is any width."""
    widths = _widths(columns, table)
    return width is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= width


def _widths(columns: Sequence[Column], table: Sequence[Sequence[Text]]) -> list[int]:
    heading = [Text(column.name) for column in columns]
    return [max(cell.cell_len for cell in cells) for cells in zip(heading, *table, strict=True)]


def lines(columns: Sequence[Column], table: Sequence[Sequence[Text]], width: int | None) -> Iterator[Text]:
    """Keeps to `width` if the longest cell allows that; None is any width."""
    heading = [Text(column.name, style="dim") for column in columns]
    if width is None or fits(columns, table, width):
        widths = _widths(columns, table)
        named = [heading] if any(heading) else []
        yield from (_beside(columns, cells, widths) for cells in (*named, *table))
        return
    for cells in table:
        yield cells[0]
        yield from _below(columns, cells, width)


def _beside(columns: Sequence[Column], cells: Sequence[Text], widths: Sequence[int]) -> Text:
    parts: list[Text | str] = []
    for column, cell, width in zip(columns, cells, widths, strict=True):
        blank = " " * (width - cell.cell_len)
        parts += (blank, cell, _GAP) if column.right else (cell, blank, _GAP)
    line = Text.assemble(*parts)
    line.rstrip()
    return line


def _below(columns: Sequence[Column], cells: Sequence[Text], width: int) -> Iterator[Text]:
    """Puts as many cells on a line as fit, each with its column's name."""
    line = Text(_INDENT)
    for column, cell in list(zip(columns, cells, strict=True))[1:]:
        if not cell.plain.strip():
            continue
        part = Text.assemble((f"{column.name} " if column.name else "", "dim"), cell)
        if line.plain.strip() and line.cell_len + len(_GAP) + part.cell_len > width:
            yield line
            line = Text(_INDENT)
        line = Text.assemble(line, _GAP if line.plain.strip() else "", part)
    if line.plain.strip():
        yield line
