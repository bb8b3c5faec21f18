"""The canonical edit of a case: removed and added lines. Pure.

Lines are aligned with value and register numbers blanked, for a new line renumbers all that follow. Where
nothing but numbers differs, the edit is the lines whose operands differ.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from irdiff.compare import alignment
from irdiff.ir import Ir
from irdiff.texts import ir_of

_BLANKED_TOGETHER = 1000
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
    """How many loops enclose it."""
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
        """What parses its lines."""
        return ir_of(self.stage)


@dataclass(frozen=True, kw_only=True)
class _SideLines:
    sign: str
    lines: Sequence[str]
    depths: Sequence[int]


def between(stage: str, base: Sequence[str], head: Sequence[str]) -> Edit:
    """The edit that turns the canonical lines of base into those of head."""
    ir = ir_of(stage)
    pairs = alignment.matching(_blanked_all(ir, base), _blanked_all(ir, head))
    ours = _SideLines(sign="-", lines=base, depths=ir.depths(base))
    theirs = _SideLines(sign="+", lines=head, depths=ir.depths(head))
    lines: list[EditLine] = []
    if len(pairs) == len(base) == len(head):
        for i, (one, other) in enumerate(zip(base, head, strict=True)):
            if one != other:
                lines += _hunk(ir, ours, theirs, range(i, i + 1), range(i, i + 1))
    i = j = 0
    for a, b in [*pairs, (len(base), len(head))]:
        if i < a or j < b:
            lines += _hunk(ir, ours, theirs, range(i, a), range(j, b))
        i, j = a + 1, b + 1
    return Edit(stage=stage, lines=tuple(lines))


def _hunk(ir: Ir, base: _SideLines, head: _SideLines, removed: range, added: range) -> Iterator[EditLine]:
    """The lines of one place, each with the next one of the other side that has the same operation."""
    waiting: dict[str, list[int]] = {}
    for j in added:
        waiting.setdefault(ir.parse(head.lines[j]).operation, []).append(j)
    partners: dict[int, int] = {}
    for i in removed:
        if rows := waiting.get(ir.parse(base.lines[i]).operation):
            partners[i] = rows.pop(0)
    back = {j: i for i, j in partners.items()}
    for side, other, numbers, found in ((base, head, removed, partners), (head, base, added, back)):
        for number in numbers:
            yield EditLine(
                sign=side.sign,
                text=side.lines[number],
                number=number,
                depth=side.depths[number],
                partner=other.lines[found[number]] if number in found else None,
                ahead=_ahead(ir, side.lines, number),
            )


def _ahead(ir: Ir, lines: Sequence[str], number: int) -> str:
    if not _SYNCHRONIZES.search(ir.parse(lines[number]).operation):
        return ""
    names = (ir.parse(line).operation for line in lines[number + 1 : number + 1 + _LOOKED_AHEAD])
    return next((name for name in names if _WORKS.search(name)), "")


def _blanked_all(ir: Ir, lines: Iterable[str]) -> Iterator[str]:
    """Every line blanked. Many lines are blanked at once: no pattern crosses the end of a line."""
    rest = iter(lines)
    while some := list(islice(rest, _BLANKED_TOGETHER)):
        together = ir.blank("\n".join(some)).split("\n")
        yield from together if len(together) == len(some) else map(ir.blank, some)
