"""The canonical edit of a case: removed and added lines, and the same with kernel-specific things taken out.

Lines are aligned with value and register numbers blanked, for a new line renumbers all that follow. Where
nothing but numbers differs, the edit is the lines whose operands differ.

Abstraction keeps what belongs to a change of the compiler and drops what belongs to a kernel. Types, shapes,
parameters of layouts, constants and numbers go; operations, names of attributes, flags, and kinds of layout
that became others stay. Of two aligned lines with the same operation only the part that differs is kept.
Below MLIR, arithmetic and the like are told as classes of instructions, for an optimizer never moves just one
of them. The *essence* is the abstracted edit without what depends on the kernel: cases that share it have
the same change.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from irdiff import stages
from irdiff.compare import alignment, instructions, loops
from irdiff.stages import Stage

MLIR_STAGES = stages.MLIR | {"mlir"}
INDEX_ARITHMETIC = frozenset(
    {
        "tt.make_range",
        "tt.expand_dims",
        "tt.splat",
        "tt.broadcast",
        "arith.addi",
        "arith.muli",
        "arith.extsi",
        "arith.constant",
    }
)
_BLANKED_TOGETHER = 1000
_SYNCHRONIZES = re.compile(r"fence|barrier|\bbar\b|membar")
_WORKS = re.compile(
    r"dot|mma|mfma|copy|cp\.async|local_(?:load|store)|descriptor_(?:load|store)|tt\.(?:load|store|atomic)"
    r"|(?:ld|st)\.|(?:ds|global|buffer)_(?:load|store|read|write)"
)
"""Operations that synchronization is put before: matrix units, and what moves data between threads."""
_LOOKED_AHEAD = 40
SAME_FORM = " (other)"
"""Marks the head's spelling where only a type, shape or constant of the same form differs."""


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


def between(stage: str, base: Sequence[str], head: Sequence[str]) -> Edit:
    """The edit that turns the canonical lines of base into those of head."""
    pairs = alignment.matching(_blanked_all(stage, base), _blanked_all(stage, head))
    depths = loops.depths(base), loops.depths(head)
    lines: list[EditLine] = []
    if len(pairs) == len(base) == len(head):
        for i, (one, other) in enumerate(zip(base, head, strict=True)):
            if one != other:
                lines += _hunk(stage, base, head, (i, i + 1, i, i + 1), depths)
    i = j = 0
    for a, b in [*pairs, (len(base), len(head))]:
        if i < a or j < b:
            lines += _hunk(stage, base, head, (i, a, j, b), depths)
        i, j = a + 1, b + 1
    return Edit(stage=stage, lines=tuple(lines))


def abstract(edit: Edit) -> Counter[str]:
    """Abstracted edit lines with how often each occurs."""
    shorten = _mlir_key if edit.stage in MLIR_STAGES else _instruction_key
    counts: Counter[str] = Counter()
    for line in edit.lines:
        key = shorten(edit.stage, line)
        if key[1:] in instructions.UNTELLING:
            # an optimizer moves all of them at once: which ones moved tells nothing of the cause
            counts.update([f"-{instructions.OTHERS}", f"+{instructions.OTHERS}"])
        else:
            counts[key] += 1
    return counts


def essence(counts: Counter[str]) -> tuple[str, ...]:
    """The sorted abstracted lines that make an edit this change, without what depends on the kernel alone:

    - how many lines of an operation move beside those that became more or fewer;
    - what only moves, where something else happens too;
    - index arithmetic where layouts differ, for index vectors are there once for each layout.
    """
    net = {key: counts[key] - counts[_opposite(key)] for key in counts}
    gained = {key for key, more in net.items() if more > 0}
    moved = {key for key, more in net.items() if more == 0}
    if any(key[1:].startswith("layout ") for key in counts):
        others = {key for key in gained if key[1:] not in INDEX_ARITHMETIC}
        gained = others or gained
    return tuple(sorted(gained or moved))


def _opposite(key: str) -> str:
    return ("-" if key[0] == "+" else "+") + key[1:]


def _hunk(
    stage: str,
    base: Sequence[str],
    head: Sequence[str],
    bounds: tuple[int, int, int, int],
    depths: tuple[Sequence[int], Sequence[int]],
) -> list[EditLine]:
    a, b, c, d = bounds
    ours, theirs = dict(enumerate(base[a:b], a)), dict(enumerate(head[c:d], c))
    waiting: dict[str, list[int]] = {}
    for j in range(c, d):
        waiting.setdefault(operation(stage, theirs[j]), []).append(j)
    partner_of: dict[int, int] = {}
    for i in range(a, b):
        rows = waiting.get(operation(stage, ours[i]))
        if rows:
            partner_of[i] = rows.pop(0)
    back = {j: i for i, j in partner_of.items()}
    removed = [
        EditLine(
            sign="-",
            text=ours[i],
            number=i,
            depth=depths[0][i],
            partner=theirs[partner_of[i]] if i in partner_of else None,
            ahead=_ahead(stage, base, i),
        )
        for i in range(a, b)
    ]
    added = [
        EditLine(
            sign="+",
            text=theirs[j],
            number=j,
            depth=depths[1][j],
            partner=ours[back[j]] if j in back else None,
            ahead=_ahead(stage, head, j),
        )
        for j in range(c, d)
    ]
    return removed + added


def _ahead(stage: str, lines: Sequence[str], number: int) -> str:
    if not _SYNCHRONIZES.search(operation(stage, lines[number])):
        return ""
    names = (operation(stage, line) for line in lines[number + 1 : number + 1 + _LOOKED_AHEAD])
    return next((name for name in names if _WORKS.search(name)), "")


def _blanked_all(stage: str, lines: Iterable[str]) -> Iterator[str]:
    """Every line blanked. Many lines are blanked at once: no pattern crosses the end of a line."""
    blank, rest = _blanking(stage), iter(lines)
    while some := list(islice(rest, _BLANKED_TOGETHER)):
        together = blank("\n".join(some)).split("\n")
        yield from together if len(together) == len(some) else map(blank, some)


def blanked(stage: str, line: str) -> str:
    """The line without the numbers of values or registers."""
    return _blanking(stage)(line)


# blanking of numbers

_SSA = re.compile(r"[%^][\w.$-]+(?:#\d+)?|![0-9]+\b")
_PTX_NAMES = re.compile(r"%(?:[a-z]+)\d+|\$L\d+")
_REGISTERS = re.compile(r"\b([avs]|R|UR|P|UP|B)\d+\b|\b([avs])\[\d+:\d+\]|\.L\d+")


def _blanking(stage: str) -> Callable[[str], str]:
    if stage in (Stage.AMDGCN, Stage.SASS):
        return lambda line: _REGISTERS.sub(r"\1\2", line)
    if stage == Stage.PTX:
        return lambda line: _PTX_NAMES.sub("%", line)
    return lambda line: _SSA.sub("%", line)


# MLIR

_OPERATION = re.compile(
    r'(?:%[^="]*= )?"?((?:[a-z_]\w*\.)+[a-z_]\w*|module\b|module attribute [^ =]+|return\b)'
)
_LAYOUT_KIND = re.compile(r"#(\w+\.\w+)<")
_TYPE_HEAD = re.compile(r"(?:tensor|memref|vector|![\w.]+)<|#[\w.]+<")
_NUMBER = re.compile(r"(?<![\w.#])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w])")
_SCALAR = re.compile(r"(?<![\w.#])(?:b?f\d+|tf32|i\d+|index|f8E\w+)\b")
_WORD = re.compile(r"[\w.@#!%]+|->|\S")


def operation(stage: str, line: str) -> str:
    """The operation or opcode of one canonical line."""
    if stage in MLIR_STAGES:
        found = _OPERATION.match(line)
        return found.group(1) if found else "block" if line.startswith("^") else line.partition(" ")[0]
    return instructions.opcode(stage, line)


def _mlir_key(stage: str, line: EditLine) -> str:
    name = operation(stage, line.text)
    if name.startswith(("llvm.", "nvvm.", "rocdl.")):
        return f"{line.sign}{instructions.llvm_dialect(name, line.text)}"
    if line.partner is None:
        return f"{line.sign}{name}"
    mine, other = _without_parameters(line.text), _without_parameters(line.partner)
    if mine == other:
        return f"{line.sign}{_parameters(line)}"
    return f"{line.sign}{name}: {_differing_part(mine, other)}"


def _without_parameters(line: str) -> str:
    """Types without shape and layout, and no numbers."""
    return _SCALAR.sub("T", _NUMBER.sub("N", typeless(line)))


def typeless(line: str) -> str:
    """The line without the parameters of types and without value numbers."""
    parts, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() < position:
            continue
        parts.append(line[position : match.start()] + line[match.start() : match.end() - 1])
        position = _closing(line, match.end())
    parts.append(line[position:])
    return _SSA.sub("%", "".join(parts))


def _closing(line: str, start: int) -> int:
    depth = 1
    for index in range(start, len(line)):
        if line[index] == "<":
            depth += 1
        elif line[index] == ">" and line[index - 1] != "-":
            depth -= 1
            if depth == 0:
                return index + 1
    return len(line)


def _parameters(line: EditLine) -> str:
    """What kind of parameter differs between two lines of the same form."""
    assert line.partner is not None
    mark = SAME_FORM if line.sign == "+" else ""
    kinds = sorted(set(_LAYOUT_KIND.findall(line.text)))
    others = sorted(set(_LAYOUT_KIND.findall(line.partner)))
    if kinds != others:
        only = [kind for kind in kinds if kind not in others and kind != "ttg.slice"]
        return "layout " + (" ".join(f"#{kind}" for kind in only) or "(fewer kinds)")
    types = [_SSA.sub("%", part) for part in _types(line.text)]
    if types != [_SSA.sub("%", part) for part in _types(line.partner)]:
        return ("layout parameters" if kinds else "type") + mark
    name = operation("mlir", line.text)
    what = "operands" if _SSA.sub("%", line.text) == _SSA.sub("%", line.partner) else "value"
    return f"{name}: {what}{mark}"


def layout_kinds(line: str) -> frozenset[str]:
    """`ttg.blocked`, `ttg.nvidia_mma`, …: of the types in one canonical line."""
    return frozenset(_LAYOUT_KIND.findall(line))


def differs_in_layout(line: EditLine) -> bool:
    """Whether nothing but types differs from the partner's line, and these have layouts."""
    if line.partner is None or not layout_kinds(line.text + line.partner):
        return False
    return _without_parameters(line.text) == _without_parameters(line.partner)


def _types(line: str) -> list[str]:
    found, position = [], 0
    for match in _TYPE_HEAD.finditer(line):
        if match.start() >= position:
            position = _closing(line, match.end())
            found.append(line[match.start() : position])
    return found


def _differing_part(mine: str, other: str) -> str:
    left, right = _WORD.findall(mine), _WORD.findall(other)
    start, end = alignment.equal_ends(left, right)
    while start < len(left) - end and left[start] in "{,":
        start += 1
    while start < len(left) - end and left[-1 - end] in "},":
        end += 1
    return " ".join(left[start : len(left) - end])[:160] or "…"


# below MLIR


def _instruction_key(stage: str, line: EditLine) -> str:
    name = instructions.opcode(stage, line.text)
    blank = _blanking(stage)
    if line.partner is not None and blank(line.text) == blank(line.partner):
        return f"{line.sign}operands" if stage in (Stage.LLIR, Stage.PTX) else f"{line.sign}registers"
    if line.partner is not None:
        flags = instructions.flags(stage, line.text), instructions.flags(stage, line.partner)
        if flags[0] != flags[1]:
            return f"{line.sign}flags: {' '.join(sorted(flags[0] - flags[1])) or '(none)'}"
    return f"{line.sign}{instructions.klass(stage, name, line.text)}"
