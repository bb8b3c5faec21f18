"""Operations that stayed in their place and changed: attributes, layouts, operands."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from irdiff.compare import abstraction, alignment
from irdiff.compare.edits import Edit, EditLine
from irdiff.group import operation_names
from irdiff.ir import Ir
from irdiff.ir.mlir.lines import layout_parameters
from irdiff.ir.parsed_line import LineKind, ParsedLine, inline_assembly
from irdiff.model import Cause, CauseKind
from irdiff.words import shortened

_MAX_VALUES = 12
_TOKEN = re.compile(r"->|-?\d[\d.]*e[+-]\d+|[\w.@#!%-]+|\S")
_FLOAT = re.compile(r"-?\d+\.\d+e[+-]\d+")
_MAX_PART = 60
_DEFAULTS = ("none", "normal")
_UNMASKED_OPERANDS = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}
"""How many operands an access to memory has without a mask."""
_PARAMETERS_OF = r"{} = #[\w.]+<([^<>]*)>"


# operations that say something else in their place


def of_edit(edit: Edit) -> Iterator[Cause]:
    """Finds operations with other attributes, and inline assembly that lost or gained the moves before it."""
    counts: Counter[tuple[str, str]] = Counter()
    in_loops: Counter[tuple[str, str]] = Counter()
    for line in edit.lines:
        detail = _detail(edit.ir, line)
        name = operation_names.name_of(edit.ir.parse(line.text))
        if name and detail:
            counts[name, detail] += 1
            in_loops[name, detail] += bool(line.depth)
    for (name, detail), count in counts.most_common(_MAX_VALUES):
        yield Cause(
            kind=CauseKind.VALUE,
            subject=name,
            count=count,
            in_loops=in_loops[name, detail],
            ahead="",
            detail=_FLOAT.sub(lambda counts: str(float(counts[0])), detail.replace(" ,", ",")),
        )


def _detail(ir: Ir, line: EditLine) -> str:
    """Empty if no attribute differs."""
    if line.sign != "-" or line.partner is None:
        return ""
    ours, theirs = inline_assembly(line.text), inline_assembly(line.partner)
    if ours or theirs:
        return _moves(ours, theirs) or _side_effects(line.text, line.partner)
    mine, other = ir.parse(line.text), ir.parse(line.partner)
    if mine.kind is LineKind.INSTRUCTION:
        return ""
    return _masks(mine, other) or _attributes(*_difference(mine.typeless, other.typeless), line)


def _attributes(before: str, after: str, line: EditLine) -> str:
    if not before and not after:
        return ""
    if not before or not after:
        return _one_sided(before, after, line)
    return _step(before, after)


def _masks(mine: ParsedLine, other: ParsedLine) -> str:
    """A mask is an additional operand after the required ones."""
    least = _UNMASKED_OPERANDS.get(mine.operation)
    if least is None or mine.operation != other.operation:
        return ""
    operands = (
        each.text.partition(f"{mine.operation} ")[2].partition(" : ")[0].count("%") for each in (mine, other)
    )
    before, after = (count > least for count in operands)
    if before == after:
        return ""
    return "now without a mask" if before else "now with a mask"


def _one_sided(before: str, after: str, line: EditLine) -> str:
    only = before or after
    if "->" in only:  # a signature
        return "with other types"
    return f"now {'with' if after else 'without'} `{_with_parameters(only, line)}`"


def _step(before: str, after: str) -> str:
    """Formats `num` 2 → 1, or both texts if no single attribute differs."""
    (name, one, ours), (other, _, theirs) = before.partition(" = "), after.partition(" = ")
    return f"`{name}` {ours} → {theirs}" if one and name == other else f"`{before}` → `{after}`"


def _with_parameters(attribute: str, line: EditLine) -> str:
    """Adds the parameters of a dialect's attribute, because its type says little."""
    name, _, value = attribute.rpartition(" = ")  # of several attributes nothing is found: they stay
    match = re.search(_PARAMETERS_OF.format(re.escape(name)), line.text + (line.partner or ""))
    if not match or not value.startswith("#"):
        return attribute
    values = [part.rpartition(" = ")[2] for part in match.group(1).split(", ")]
    parameters = " ".join(each for each in values if each not in _DEFAULTS) or value
    return shortened(f"{name} = {parameters}", _MAX_PART)


def _moves(ours: Sequence[str], theirs: Sequence[str]) -> str:
    """Describes inline assembly that differs only in moves of operands."""
    before, after = ([name for name in side if name.startswith("mov.")] for side in (ours, theirs))
    if len(before) == len(after) or [n for n in ours if n not in before] != [
        n for n in theirs if n not in after
    ]:
        return ""
    move = (before or after)[0]
    return f"now {'without' if len(before) > len(after) else 'with'} a `{move}` before it"


def _side_effects(mine: str, other: str) -> str:
    ours, theirs = ("has_side_effects" in text or "sideeffect" in text for text in (mine, other))
    if ours == theirs:
        return ""
    return "no longer marked as having side effects" if ours else "marked as having side effects"


def _difference(mine: str, other: str) -> tuple[str, str]:
    """Returns the tokens that differ, with the attribute's name if its value does."""
    left, right = _TOKEN.findall(mine.replace("`", "'")), _TOKEN.findall(other.replace("`", "'"))
    start, end = alignment.equal_ends(left, right)
    if start >= 2 and left[start - 1] == "=":
        start -= 2
    before, after = (" ".join(side[start : len(side) - end]).strip("{}, ") for side in (left, right))
    return shortened(before, _MAX_PART), shortened(after, _MAX_PART)


# layouts


def layouts(edit: Edit) -> Iterator[Cause]:
    """Yields nothing unless most lines differ in layouts alone."""
    parse = edit.ir.parse
    pairs = [(line.sign, parse(line.text), parse(line.partner)) for line in edit.lines if line.partner]
    lines = [pair for pair in pairs if abstraction.differs_in_layout(*pair[1:])]
    if not lines or 2 * len(lines) < len(edit.lines):
        return
    kinds: dict[str, Counter[str]] = {"-": Counter(), "+": Counter()}
    for sign, mine, other in lines:
        only = mine.layouts - other.layouts or mine.layouts
        kinds[sign].update(kind for kind in only if kind != "ttg.slice")
    before, after = most_frequent(kinds["-"]), most_frequent(kinds["+"])
    if before == after:
        removed = [(mine, other) for sign, mine, other in lines if sign == "-"]
        if detail := _parameter(after, removed):
            yield Cause.uncounted(CauseKind.VALUE, f"`#{after}` layout", detail)
    elif before and after:
        yield Cause.uncounted(CauseKind.STATE, f"layouts `#{before}` → `#{after}`")
    else:
        yield Cause.uncounted(
            CauseKind.STATE, f"{'no longer ' if before else ''}layouts `#{before or after}`"
        )


def _parameter(kind: str, pairs: Iterable[tuple[ParsedLine, ParsedLine]]) -> str:
    """Returns nothing if no parameter differs in most lines."""
    counts: Counter[str] = Counter()
    for mine, other in pairs:
        ours, theirs = (layout_parameters(kind, each.text) for each in (mine, other))
        counts.update(f"now without `{name}`" for name in ours.keys() - theirs.keys())
        counts.update(f"now with `{name}`" for name in theirs.keys() - ours.keys())
        for name in ours.keys() & theirs.keys():
            before, after = (shortened(side[name], _MAX_PART) for side in (ours, theirs))
            if before != after:
                counts[f"`{name}` {before} → {after}"] += 1
    return most_frequent(counts)


def most_frequent(counts: Counter[str]) -> str:
    return min(counts, key=lambda name: (-counts[name], name), default="")
