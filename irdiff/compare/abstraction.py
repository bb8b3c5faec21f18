"""The abstracted edit: what an edit is without the things that a kernel has, and its essence. Pure.

Abstraction keeps what belongs to a change of the compiler and drops what belongs to a kernel. Types, shapes,
parameters of layouts, constants and numbers go; operations, names of attributes, flags, and kinds of layout
that became others stay. Of two aligned lines with the same operation only the part that differs is kept.
Below MLIR, arithmetic and the like become classes of instructions, for an optimizer never moves just one of
them. The *essence* is the abstracted edit without what depends on the kernel: cases that share it have
the same change.
"""

from __future__ import annotations

import re
from collections import Counter

from irdiff.compare import alignment, instructions, line_forms
from irdiff.compare.edits import Edit, EditLine
from irdiff.compare.line_forms import MLIR_STAGES, layout_kinds, operation, without_parameters
from irdiff.stages import Stage

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
    shorten = _mlir_key if edit.stage in MLIR_STAGES else _instruction_key
    counts: Counter[str] = Counter()
    for line in edit.lines:
        key = shorten(edit.stage, line)
        if key[1:] in instructions.UNTELLING:
            # an optimizer moves all of them at once: which ones moved does not show the cause
            counts.update([f"-{instructions.OTHERS}", f"+{instructions.OTHERS}"])
        else:
            counts[key] += 1
    return counts


def essence(counts: Counter[str]) -> tuple[str, ...]:
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


def differs_in_layout(line: EditLine) -> bool:
    """Whether nothing but types differs from the partner's line, and these have layouts."""
    if line.partner is None or not layout_kinds(line.text + line.partner):
        return False
    return without_parameters(line.text) == without_parameters(line.partner)


def _mlir_key(stage: str, line: EditLine) -> str:
    name = operation(stage, line.text)
    if name.startswith(("llvm.", "nvvm.", "rocdl.")):
        return f"{line.sign}{instructions.llvm_dialect(name, line.text)}"
    if line.partner is None:
        return f"{line.sign}{name}"
    mine, other = without_parameters(line.text), without_parameters(line.partner)
    if mine == other:
        return f"{line.sign}{_parameters(line)}"
    return f"{line.sign}{name}: {_differing_part(mine, other)}"


def _parameters(line: EditLine) -> str:
    """What kind of parameter differs between two lines of the same form."""
    assert line.partner is not None
    mark = SAME_FORM if line.sign == "+" else ""
    kinds, others = sorted(layout_kinds(line.text)), sorted(layout_kinds(line.partner))
    if kinds != others:
        only = [kind for kind in kinds if kind not in others and kind != "ttg.slice"]
        return "layout " + (" ".join(f"#{kind}" for kind in only) or "(fewer kinds)")
    if line_forms.types(line.text) != line_forms.types(line.partner):
        return ("layout parameters" if kinds else "type") + mark
    blank = line_forms.blanking("mlir")
    what = "operands" if blank(line.text) == blank(line.partner) else "value"
    return f"{operation('mlir', line.text)}: {what}{mark}"


def _differing_part(mine: str, other: str) -> str:
    left, right = _WORD.findall(mine), _WORD.findall(other)
    start, end = alignment.equal_ends(left, right)
    while start < len(left) - end and left[start] in "{,":
        start += 1
    while start < len(left) - end and left[-1 - end] in "},":
        end += 1
    return " ".join(left[start : len(left) - end])[:160] or "…"


def _instruction_key(stage: str, line: EditLine) -> str:
    name = instructions.opcode(stage, line.text)
    blank = line_forms.blanking(stage)
    if line.partner is not None and blank(line.text) == blank(line.partner):
        return f"{line.sign}operands" if stage in (Stage.LLIR, Stage.PTX) else f"{line.sign}registers"
    if line.partner is not None:
        flags = instructions.flags(stage, line.text), instructions.flags(stage, line.partner)
        if flags[0] != flags[1]:
            return f"{line.sign}flags: {' '.join(sorted(flags[0] - flags[1])) or '(none)'}"
    return f"{line.sign}{instructions.klass(stage, name, line.text)}"
