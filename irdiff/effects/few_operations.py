"""Tells whether a few floating-point operations are all that differs. Pure.

There may be at most eight operations with equal operands on both sides and different results, from which all
other differences follow. These operations of head are replaced by those of base, and both sides are compared
again. If they are now the same, nothing else is arranged differently that could make up for the operations.
So each of them is judged by itself, as rounding or a hazard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from irdiff.effects import rounding
from irdiff.effects.difference import Differences
from irdiff.effects.doubts import Difference
from irdiff.effects.nearness import Likeness
from irdiff.effects.nodes import operands_of
from irdiff.effects.numbering import NumberedFunction
from irdiff.effects.witnesses import Witnesses, code
from irdiff.ir.program import Graph, Instruction, Operation, Slot
from irdiff.model import Hazard, HazardKind, NotShown, Rounding

_MOST = 8
_LEAVES = frozenset({"const", "text", "parameter", "undefined"})
_CLOSE = frozenset({Likeness.NEAR, Likeness.EQUAL})
_Pair = tuple[int, int]


Taken = Mapping[int, tuple[Operation, Operation]]
"""By line of head, the operation there, and that of base which is taken for it."""


def shown(
    base: NumberedFunction,
    head: NumberedFunction,
    first: Differences,
    witnesses: Witnesses,
    again: Callable[[Taken], Differences],
) -> list[Difference]:
    """Empty where more differs. again: numbers both sides anew, by the same table, and compares them."""
    firsts = [_first(*sides) for sides in ((base, head), (head, base))]
    if len(firsts[0]) != len(firsts[1]) or not 0 < len(firsts[0]) <= _MOST:
        return []
    pairs, made_by = list(zip(*firsts, strict=True)), base.values.made_by
    if not all(made_by[each].is_float and not made_by[each].early for pair in pairs for each in pair):
        return []
    found = [_of_pair(base, first, witnesses, pair) for pair in pairs]
    for pair in pairs:
        base.values.take(*pair)
    taken = {head.lines[other]: (made_by[other], made_by[one]) for one, other in pairs}
    for those in ({}, taken):
        left = again(those).if_harmless()
        if left is not None:
            return [*found, *left]
    return []


def with_operations(graph: Graph, taken: Taken) -> Graph:
    """Head's blocks, with operations of base in some lines."""

    def changed(each: Instruction) -> Instruction:
        before, after = taken.get(each.line, (None, None))
        if before is None or after is None or each.operation is not before:
            return each
        is_of_form = _form(before) == _form(after)
        return each._replace(operation=after) if is_of_form else each

    return tuple(
        node._replace(block=node.block._replace(instructions=tuple(map(changed, node.block.instructions))))
        for node in graph
    )


def _form(operation: Operation) -> object:
    """Which of the registers that an instruction reads it uses, and how it is guarded."""
    reads = [each.place for each in operation.operands if isinstance(each, Slot)]
    return sorted(reads), operation.is_guarded, operation.negated, operation.masked


def _first(side: NumberedFunction, other: NumberedFunction) -> list[int]:
    """Returns what one side alone computes of values that both have, in the order of the text."""
    shared = side.values_of & other.values_of
    keys, made_by = side.values.keys, side.values.made_by

    def is_of_both(number: int, depth: int = 0) -> bool:
        if number in shared or keys[number][0] in _LEAVES:
            return True
        if number in side.lines or depth > _MOST or keys[number][0] in ("event", "join"):
            return False
        return all(is_of_both(each, depth + 1) for each in operands_of(keys[number]))

    def rows() -> Iterator[tuple[int, int]]:
        for number, line in side.lines.items():
            made = made_by.get(number)
            is_own = number not in shared and made and not made.effect and keys[number][0] != "part"
            if is_own and all(map(is_of_both, operands_of(keys[number]))):
                yield line, number

    return [number for _, number in sorted(rows())]


def _of_pair(base: NumberedFunction, first: Differences, witnesses: Witnesses, pair: _Pair) -> Difference:
    values, shared = base.values, first.shared
    ours, theirs = (values.made_by[each] for each in pair)
    witness = witnesses.of_values(*pair)
    similarity, uses = first.similarity(*pair), first.uses - {Likeness.UNKNOWN}
    is_close = similarity in _CLOSE or (uses and uses <= _CLOSE)
    if is_close or rounding.differ_in_flags(ours.word, theirs.word):
        kind, before, after = rounding.kind_of(values, shared, *pair)
        return Rounding(kind=kind, base=before, head=after, witness=witness)
    words = (
        f"{code(ours)} → {code(theirs)}" if ours.word != theirs.word else f"{code(theirs)} of other operands"
    )
    if similarity is Likeness.OTHER and uses != {Likeness.EQUAL}:
        return Hazard(kind=HazardKind.VALUE, what="computes another value", detail=words, witness=witness)
    return NotShown(reason="one operation differs, and all else is equal", detail=words, witness=witness)
