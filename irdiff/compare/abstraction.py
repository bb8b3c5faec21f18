"""The abstracted edit: what an edit is without the things that a kernel has, and its signature. Pure.

Abstraction keeps what belongs to a change of the compiler and drops what belongs to a kernel. Types, shapes,
parameters of layouts, constants and numbers go; operations, names of attributes, flags, and kinds of layout
that became others stay. Of two aligned lines with the same operation only the part that differs is kept.
Below MLIR, arithmetic and the like become classes of instructions, for an optimizer never moves just one of
them. The *signature* is the abstracted edit without what depends on the kernel: cases that share it have
the same change.
"""

from __future__ import annotations

import re
from collections import Counter

from irdiff.compare import alignment
from irdiff.compare.edits import Edit, EditLine
from irdiff.ir import Ir
from irdiff.ir.opcode_classes import OTHERS, UNTELLING
from irdiff.ir.parsed_line import LineKind, ParsedLine

# fmt: off
INDEX_ARITHMETIC = frozenset({
    "tt.make_range", "tt.expand_dims", "tt.splat", "tt.broadcast",
    "arith.addi", "arith.muli", "arith.extsi", "arith.constant",
})
# fmt: on
SAME_FORM = " (other)"
"""Marks the head's spelling where only a type, shape or constant of the same form differs."""
_WORD = re.compile(r"[\w.@#!%]+|->|\S")


def abstract(edit: Edit) -> Counter[str]:
    """Abstracted edit lines with how often each occurs."""
    counts: Counter[str] = Counter()
    for line in edit.lines:
        key = _key(edit.ir, line)
        if key in UNTELLING:
            # an optimizer moves all of them at once: which ones moved does not show the cause
            counts.update([f"-{OTHERS}", f"+{OTHERS}"])
        else:
            counts[f"{line.sign}{key}"] += 1
    return counts


def signature(counts: Counter[str]) -> tuple[str, ...]:
    """The sorted abstracted lines that make an edit this change, without what depends on the kernel alone:

    - how many lines of an operation move besides those that became more or fewer;
    - what only moves, where something else happens too, other than attributes that LLVM infers;
    - index arithmetic where layouts differ, for index vectors are there once for each layout.
    """
    net = {key: counts[key] - counts[_opposite(key)] for key in counts}
    gained = {key for key, more in net.items() if more > 0}
    moved = {key for key, more in net.items() if more == 0}
    if any(key[1:].startswith("layout ") for key in counts):
        others = {key for key in gained if key[1:] not in INDEX_ARITHMETIC}
        gained = others or gained
    if all(key[1:].startswith("flags: ") for key in gained):
        gained |= moved
    return tuple(sorted(gained))


def _opposite(key: str) -> str:
    return ("-" if key[0] == "+" else "+") + key[1:]


def differs_in_layout(mine: ParsedLine, other: ParsedLine) -> bool:
    """Returns True if only types differ between two operations, and these have layouts."""
    return bool(mine.layouts or other.layouts) and mine.form == other.form


def _key(ir: Ir, line: EditLine) -> str:
    mine, other = ir.parse(line.text), ir.parse(line.partner) if line.partner is not None else None
    if mine.kind is LineKind.INSTRUCTION:
        return _instruction_key(ir, mine, other)
    if mine.kind is LineKind.TRANSLATED or other is None:
        return mine.klass
    if mine.form != other.form:
        return f"{mine.operation}: {_differing_part(mine.form, other.form)}"
    return _parameters(mine, other, SAME_FORM if line.sign == "+" else "")


def _parameters(mine: ParsedLine, other: ParsedLine, mark: str) -> str:
    """The kind of parameter that differs between two operations of the same form."""
    if mine.layouts != other.layouts:
        only = sorted(mine.layouts - other.layouts - {"ttg.slice"})
        return "layout " + (" ".join(f"#{kind}" for kind in only) or "(fewer kinds)")
    if mine.types != other.types:
        return ("layout parameters" if mine.layouts else "type") + mark
    what = "operands" if mine.blank == other.blank else "value"
    return f"{mine.operation}: {what}{mark}"


def _differing_part(mine: str, other: str) -> str:
    left, right = _WORD.findall(mine), _WORD.findall(other)
    start, end = alignment.equal_ends(left, right)
    while start < len(left) - end and left[start] in "{,":
        start += 1
    while start < len(left) - end and left[-1 - end] in "},":
        end += 1
    return " ".join(left[start : len(left) - end])[:160] or "…"


def _instruction_key(ir: Ir, mine: ParsedLine, other: ParsedLine | None) -> str:
    if other is not None and mine.blank == other.blank:
        return "registers" if ir.HAS_REGISTERS else "operands"
    if other is not None and mine.flags != other.flags:
        return f"flags: {' '.join(sorted(mine.flags - other.flags)) or '(none)'}"
    return mine.klass
