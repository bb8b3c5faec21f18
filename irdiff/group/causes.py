"""Lists what the edit of one case does, as causes that can be counted over the cases of a group.

Causes are found in this order: operations that became more or fewer, or were replaced; other attributes;
layouts; flags; places. Integer arithmetic is named by its operations, and only if there is nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from irdiff.compare.abstraction import INDEX_ARITHMETIC
from irdiff.compare.edits import Edit
from irdiff.group import operation_names, values
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.model import Cause, CauseKind
from irdiff.texts import title

MAX_CAUSES = 12
"""The most causes of one case. A title has three."""
_FIRST = (
    re.compile(r"fence|membar|barrier|\bbar\b|wait|arrive|atom|cmpxchg"),
    re.compile(r"dot|mma|mfma|convert_layout|async|copy|load|store|alloc|reduce|scan|div|call |inline |`scf"),
)
_LAST = re.compile(r"constant`$|(?:ext|trunc|cast)\w*`$|^`llvm\.(?:mlir|insert|extract|and|or|u|s|add|mul)")
_TERMINATOR = re.compile(r"(?:yield|return|terminator|condition)`$|^`(?:llvm|cf)\.(?:cond_)?br`$")
"""Follows from the operation that the block belongs to."""
_INFERRED = re.compile(r"^LLVM |the same otherwise$")
_DECLARES = re.compile(r"define|declare|attributes")
_MATRIX_UNITS = {
    "warp_group_dot": "wgmma",
    "wgmma": "wgmma",
    "tc_gen5_mma": "tcgen05.mma",
    "tcgen05": "tcgen05.mma",
}


def of_edit(edit: Edit) -> tuple[Cause, ...]:
    """Keeps the order of a title."""
    tallies = _tallies(edit, operation_names.name_of)
    numbers = _numbers(tallies)
    layouts = list(values.layouts(edit))
    if layouts:  # there is one index vector for each layout
        numbers = [cause for cause in numbers if cause.subject.strip("`") not in INDEX_ARITHMETIC]
    hidden = _numbers(_tallies(edit, _hidden_name))
    causes = [
        *numbers,
        *_hoisted(tallies),
        *values.of_edit(edit),
        *layouts,
        *_flags(edit),
    ]
    if not causes:
        causes = [*_places(edit), *hidden] or [*_classes(edit)]
    return tuple(sorted(causes, key=order))[:MAX_CAUSES]


def order(cause: Cause) -> tuple[int, int, str]:
    """Sorts synchronization first, then what multiplies or moves data."""
    return _place(cause), -abs(cause.count), cause.subject


def _place(cause: Cause) -> int:
    if cause.kind in (CauseKind.EFFECT, CauseKind.FAILURE, CauseKind.LAUNCH):
        return -2 if cause.kind is CauseKind.EFFECT else -1
    if _TERMINATOR.search(cause.subject):
        return len(_FIRST) + 2
    for place, pattern in enumerate(_FIRST):
        if pattern.search(cause.subject):
            return place
    last = _INFERRED if cause.kind is CauseKind.STATE else _LAST
    return len(_FIRST) + bool(last.search(cause.subject))


# what became more or fewer


@dataclass(kw_only=True)
class _Tally:
    """Lines of one operation in an edit: how many more head has, and how many of these in loops."""

    more: int = 0
    more_in_loops: int = 0
    ahead: Counter[tuple[str, str]] = field(default_factory=Counter)


def _tallies(edit: Edit, name_of: operation_names.Name) -> dict[str, _Tally]:
    tallies: dict[str, _Tally] = {}
    for line in edit.lines:
        name = name_of(edit.ir.parse(line.text))
        if not name:
            continue
        tally = tallies.setdefault(name, _Tally())
        step = 1 if line.sign == "+" else -1
        tally.more += step
        tally.more_in_loops += step if line.depth else 0
        tally.ahead[line.sign, line.ahead] += 1
    return tallies


def _numbers(tallies: Mapping[str, _Tally]) -> list[Cause]:
    return [_number(name, tally) for name, tally in tallies.items() if tally.more]


def _hoisted(tallies: Mapping[str, _Tally]) -> Iterator[Cause]:
    """Finds operations that are as frequent as before, but more or less often in loops."""
    for name, tally in tallies.items():
        if not tally.more and tally.more_in_loops:
            way = "into" if tally.more_in_loops > 0 else "out of"
            moved = operation_names.plural(name, tally.more_in_loops)
            yield Cause.uncounted(CauseKind.STATE, f"{moved} moved {way} the loop")


def _number(name: str, tally: _Tally) -> Cause:
    sign = "+" if tally.more > 0 else "-"
    ahead = {_called(operation) if operation else "" for each, operation in tally.ahead if each == sign}
    return Cause(
        kind=CauseKind.NUMBER,
        subject=name,
        count=tally.more,
        in_loops=_within(tally.more_in_loops, tally.more),
        ahead=ahead.pop() if len(ahead) == 1 else "",
        detail="",
    )


def _called(operation: str) -> str:
    """All matrix instructions of Hopper are commonly called wgmma."""
    return next((words for part, words in _MATRIX_UNITS.items() if part in operation), f"`{operation}`")


def _within(in_loops: int, more: int) -> int:
    return max(0, min(in_loops, more)) if more > 0 else -min(0, max(in_loops, more))


def _hidden_name(each: ParsedLine) -> str:
    return "" if operation_names.name_of(each) else operation_names.minor_name_of(each)


# flags and places


def _flags(edit: Edit) -> Iterator[Cause]:
    """Covers flags of LLVM IR and modifiers of PTX on instructions, and what LLVM inferred for functions."""
    more: Counter[tuple[bool, str]] = Counter()
    only = bool(edit.lines)
    for line in edit.lines:
        if line.partner is None:
            only = False
            continue
        ours, theirs = (edit.ir.parse(text).flags for text in (line.text, line.partner))
        only = only and ours != theirs
        for flag in ours - theirs:
            more[bool(_DECLARES.match(line.text)), flag] += 1 if line.sign == "+" else -1
    for (declared, flag), count in more.items():
        if not count or (declared and not only):  # what LLVM inferred follows from the other edits
            continue
        if declared:
            verb = "infers" if count > 0 else "no longer infers"
            yield Cause.uncounted(CauseKind.STATE, f"LLVM {verb} `{flag}` in otherwise equal LLVM IR")
        else:
            cause = Cause.uncounted(CauseKind.NUMBER, f"`{flag}`{operation_names.FLAG}")
            yield replace(cause, count=count)
    if only and not all(declared for declared, _ in more):
        yield Cause.uncounted(CauseKind.STATE, f"the {title(edit.stage)} is the same otherwise")


def _places(edit: Edit) -> Iterator[Cause]:
    moved: Counter[str] = Counter()
    operands: Counter[str] = Counter()
    for line in edit.lines:
        name = operation_names.name_of(edit.ir.parse(line.text))
        if name and line.sign == "+":
            (moved if line.partner is None else operands)[name] += 1
    for counts, words in ((moved, "in another place"), (operands, "with other operands")):
        if counts:
            yield Cause.uncounted(
                CauseKind.STATE, f"{operation_names.plural(values.most_frequent(counts), 2)} {words}"
            )
            return


def _classes(edit: Edit) -> Iterator[Cause]:
    counts = Counter(_class(edit.ir.parse(line.text)) for line in edit.lines)
    shown = sorted(counts, key=lambda kind: (-counts[kind], kind))[:2]
    if shown:
        yield Cause.uncounted(
            CauseKind.STATE, f"{' and '.join(shown)} in another order or with other operands"
        )


def _class(each: ParsedLine) -> str:
    return f"`{each.klass}`" if each.kind is LineKind.OPERATION else each.klass
