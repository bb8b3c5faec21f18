"""The canonical edit of a case: the removed and added lines that a reader of its diff is shown. Pure.

Where nothing but names differs, such as registers of machine code, the edit is the lines with other ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from irdiff.compare import line_alignment
from irdiff.compare.line_alignment import DiffRow, Kind
from irdiff.ir import Ir
from irdiff.model import Sides
from irdiff.texts import ir_of

_SYNCHRONIZES = re.compile(r"fence|barrier|\bbar\b|membar")
_WORKS = re.compile(
    r"dot|mma|mfma|copy|cp\.async|local_(?:load|store)|descriptor_(?:load|store)|tt\.(?:load|store|atomic)"
    r"|(?:ld|st)\.|(?:ds|global|buffer)_(?:load|store|read|write)"
)
"""Operations that synchronization is put before: matrix units, and what moves data between threads."""
_LOOKED_AHEAD = 40


@dataclass(frozen=True, kw_only=True)
class EditSource:
    """Two texts of the store, of the same IR, that the edit is taken between.

    The IR `mlir` is that of a pass on the way to LLVM IR: what is not translated is no part of the edit.
    """

    ir: str
    base: str
    head: str


@dataclass(frozen=True, kw_only=True, slots=True)
class EditLine:
    """One removed (`-`) or added (`+`) line."""

    sign: str
    text: str
    number: int
    """Index into the canonical lines of its side."""
    depth: int
    """The number of loops around it."""
    partner: str | None
    """The line of the other side that stands in its place, where there is one with the same operation."""
    ahead: str
    """For synchronization, the next operation of its side that moves data or multiplies; else empty."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """All edit lines of one case at the stage or pass where its difference begins."""

    stage: str
    lines: tuple[EditLine, ...]

    @property
    def ir(self) -> Ir:
        return ir_of(self.stage)


@dataclass(frozen=True, kw_only=True)
class _SideLines:
    sign: str
    lines: Sequence[str]
    depths: Sequence[int]


def between(stage: str, base: Sequence[str], head: Sequence[str]) -> Edit:
    """The lines to remove and to add, to turn base's canonical lines into head's."""
    ir = ir_of(stage)
    sides = Sides(
        base=_SideLines(sign="-", lines=base, depths=ir.depths(base)),
        head=_SideLines(sign="+", lines=head, depths=ir.depths(head)),
    )
    rows = line_alignment.without_partners(stage, base, head)

    def is_edit(diff_row: DiffRow) -> bool:
        return diff_row.kind in (Kind.REMOVED, Kind.ADDED)

    def differs(diff_row: DiffRow) -> bool:
        return diff_row.base is None or diff_row.head is None or base[diff_row.base] != head[diff_row.head]

    is_shown = is_edit if any(map(is_edit, rows)) else differs
    hunks = (list(hunk) for shown, hunk in groupby(rows, key=is_shown) if shown)
    return Edit(stage=stage, lines=tuple(line for hunk in hunks for line in _hunk(ir, sides, hunk)))


def _hunk(ir: Ir, sides: Sides[_SideLines], rows: Sequence[DiffRow]) -> Iterator[EditLine]:
    """The lines of one place, each with the next one of the other side that has the same operation."""
    removed = [diff_row.base for diff_row in rows if diff_row.base is not None]
    added = [diff_row.head for diff_row in rows if diff_row.head is not None]
    waiting: dict[str, list[int]] = {}
    for j in added:
        waiting.setdefault(ir.parse(sides.head.lines[j]).operation, []).append(j)
    partners: dict[int, int] = {}
    for i in removed:
        if alike := waiting.get(ir.parse(sides.base.lines[i]).operation):
            partners[i] = alike.pop(0)
    back = {j: i for i, j in partners.items()}
    for side, other, numbers, partner_of in (
        (sides.base, sides.head, removed, partners),
        (sides.head, sides.base, added, back),
    ):
        for number in numbers:
            yield EditLine(
                sign=side.sign,
                text=side.lines[number],
                number=number,
                depth=side.depths[number],
                partner=other.lines[partner_of[number]] if number in partner_of else None,
                ahead=_ahead(ir, side.lines, number),
            )


def _ahead(ir: Ir, lines: Sequence[str], number: int) -> str:
    if not _SYNCHRONIZES.search(ir.parse(lines[number]).operation):
        return ""
    names = (ir.parse(line).operation for line in lines[number + 1 : number + 1 + _LOOKED_AHEAD])
    return next((name for name in names if _WORKS.search(name)), "")
