"""Compares the effects of a kernel on both sides: its memory accesses, synchronization and branches. Pure.

README.md says what the answers mean. Each module begins with its own rules.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from irdiff.effects import agreement, blocks, buffers, few_operations, whole_functions
from irdiff.effects.contraction import Sums, sums
from irdiff.effects.difference import Differences
from irdiff.effects.doubts import Difference
from irdiff.effects.numbering import Move, NumberedFunction, number
from irdiff.effects.values import Values
from irdiff.effects.witnesses import Witnesses
from irdiff.ir.program import CACHE_POLICY, Act, Function, Graph, Program, ProgramReader, ReadError
from irdiff.model import Bits, Effects, Harmless, Hazard, Meaning, NotShown, Rounding, Sides
from irdiff.texts import ir_of

_MAX_EACH = 8
"""As many differences of each kind are kept."""


class EffectsWithSums(NamedTuple):
    effects: Effects
    sums: Sums | None = None
    """Where only the sums that an assembler may fuse keep equal effects from having equal bits."""


def compare(stage: str, base: Sequence[str], head: Sequence[str]) -> Effects:
    """Compares canonical lines. Whatever is in doubt is `not shown`."""
    return compare_with_sums(stage, base, head).effects


def compare_with_sums(stage: str, base: Sequence[str], head: Sequence[str]) -> EffectsWithSums:
    values, reader = Values(), _reader(stage)
    try:
        ours, theirs = _read(stage, reader, base), _read(stage, reader, head)
        differences = list(
            _between(stage, values, Sides(base=ours, head=theirs), Sides(base=base, head=head))
        )
    except ReadError as error:
        differences = [NotShown(reason="the text is not read", detail=str(error), is_unread=True)]
        return EffectsWithSums(_effects(stage, differences, may_round=True))
    if not any(isinstance(each, Hazard | Rounding | NotShown) for each in differences):
        unknown = sorted({*ours.unknown, *theirs.unknown})
        differences += [NotShown(reason="an instruction is not known", detail=name) for name in unknown]
    may_be_equal = reader.is_final and _has_one_order(values)
    own = sums(values, (ours, theirs)) if may_be_equal and reader.may_contract else None
    is_fusible = own is not None and own.fusible > 0
    effects = _effects(stage, differences, may_round=is_fusible or not may_be_equal)
    return EffectsWithSums(effects, own if is_fusible and effects.kind is Meaning.SAME else None)


def _reader(stage: str) -> ProgramReader:
    reader = ir_of(stage).PROGRAM
    assert reader is not None, f"nothing reads {stage} as a program"
    return reader


def _read(stage: str, reader: ProgramReader, lines: Sequence[str]) -> Program:
    try:
        return reader.read(lines)
    except (IndexError, ValueError, TypeError) as error:  # a line is not of the form that a reader expects
        raise ReadError(f"{stage}: {error}") from error


def _between(
    stage: str, values: Values, programs: Sides[Program], texts: Sides[Sequence[str]]
) -> Iterator[Difference]:
    reader = _reader(stage)
    base, head = programs
    yield from agreement.of_code(stage, texts)
    if base.threads != head.threads:
        yield NotShown(reason="the kernel runs with another number of threads")
        return
    values.threads = base.threads
    ours, theirs = Counter(base.declarations), Counter(head.declarations)
    alone = Sides(base=ours - theirs, head=theirs - ours)
    if any(each.startswith(CACHE_POLICY) for side in alone for each in side):
        yield Harmless(what="an access has another cache hint")
    for name, side in alone.items():
        for each in side.elements():
            if not each.startswith(CACHE_POLICY):
                yield NotShown(
                    reason=f"only {name} has this declaration, or uses this parameter", detail=each[:120]
                )
    if base.functions.keys() != head.functions.keys():
        yield NotShown(reason="the text has other functions")
        return
    yield from whole_functions.of_spacings(programs, texts)
    for name, function in base.functions.items():
        yield from _of_functions(reader, values, Sides(base=function, head=head.functions[name]), texts)


def _of_functions(
    reader: ProgramReader, values: Values, functions: Sides[Function], texts: Sides[Sequence[str]]
) -> list[Difference]:
    graphs = blocks.graphs(*functions)
    if not blocks.same_shape(*graphs):
        return list(_of_shapes(*graphs))
    if not reader.marked:
        return _of_graphs(values, functions, graphs, texts)
    marked = reader.marked(graphs[0]), reader.marked(graphs[1])
    differences = _of_graphs(values, functions, marked, texts)
    if not any(isinstance(each, Hazard | NotShown) for each in differences):
        differences += whole_functions.of_waits(reader.unfinished(graphs, marked[0]))
    return differences


def _of_graphs(
    values: Values, functions: Sides[Function], graphs: tuple[Graph, Graph], texts: Sides[Sequence[str]]
) -> list[Difference]:
    """Compares two functions whose blocks correspond."""

    def numbered(
        taken: few_operations.Taken, move: Move | None = None
    ) -> tuple[NumberedFunction, NumberedFunction]:
        graph = few_operations.with_operations(graphs[1], taken) if taken else graphs[1]
        ours = NumberedFunction(values, graphs[0], functions.base)
        theirs = NumberedFunction(values, graph, functions.head, move)
        number(ours, theirs)
        return ours, theirs

    def compared(sides: tuple[NumberedFunction, NumberedFunction]) -> Differences:
        return Differences(*sides, Witnesses(*sides, texts))

    sides = numbered({})
    first = compared(sides)
    found = first.all()
    kinds = {type(each) for each in found}
    if not kinds.isdisjoint((Hazard, NotShown)) and (move := buffers.move(*sides)):
        with contextlib.suppress(ReadError):
            moved = compared(numbered({}, move)).all()
            if not any(isinstance(each, Hazard) for each in moved):
                return [Harmless(what="buffers of shared memory are in other places"), *moved]
    if Hazard in kinds or NotShown not in kinds:
        return found
    few = few_operations.shown(
        *sides, first, Witnesses(*sides, texts), lambda taken: compared(numbered(taken))
    )
    return few or found


def _of_shapes(base: Graph, head: Graph) -> Iterator[NotShown]:
    """Yields what one of two functions has more of, if their blocks do not correspond."""
    yield NotShown(
        reason="the blocks of the code do not correspond", detail=f"base has {len(base)}, head {len(head)}"
    )
    ours, theirs = (
        Counter(
            each.operation.word
            for node in side
            for each in node.block.instructions
            if each.operation.effect and each.operation.effect.act in (Act.SYNC, Act.MATRIX)
        )
        for side in (base, head)
    )
    for name in {**ours, **theirs}:
        if ours[name] != theirs[name]:
            yield NotShown(reason=f"base has {ours[name]} `{name}`, head {theirs[name]}")


def _effects(stage: str, differences: Sequence[Difference], *, may_round: bool) -> Effects:
    hazards = tuple(each for each in differences if isinstance(each, Hazard))
    roundings = tuple(each for each in differences if isinstance(each, Rounding))
    not_shown = tuple(each for each in differences if isinstance(each, NotShown))
    harmless = tuple(each for each in differences if isinstance(each, Harmless))
    kind = (
        Meaning.HAZARD if hazards else Meaning.NOT_SHOWN if not_shown
        else Meaning.ROUNDING if roundings else Meaning.SAME
    )  # fmt: skip
    bits = Bits.UNKNOWN if kind is not Meaning.SAME or may_round else Bits.SAME
    return Effects(
        kind=kind, stage=stage, bits=Bits.MAY_DIFFER if roundings else bits,
        hazards=hazards[:_MAX_EACH], roundings=roundings[:_MAX_EACH],
        not_shown=not_shown[:_MAX_EACH], harmless=tuple(dict.fromkeys(harmless))[:_MAX_EACH],
    )  # fmt: skip


def _has_one_order(values: Values) -> bool:
    """True if no operation gives results that depend on the order or the place in which threads run.

    Threads that exchange values through memory (by atomic operations whose result is read, or accesses that
    keep order or read anew) may come in any order, and so may floats that are added in memory. A clock, and
    the place where a warp runs, have another value in each run.
    """
    if any(
        _OF_A_RUN.search(f"{key[0]} {key[1] if key[0] in ('text', 'event') else ''}") for key in values.keys
    ):
        return False
    has_results = {key[1] for key in values.keys if key[0] == "part"}
    effects = ((n, made, made.effect.act) for n, made in values.made_by.items() if made.effect)
    return not any(
        each.sums_up
        or each.keeps_order
        or (act is Act.ATOMIC and (number in has_results or _EXCHANGES.search(each.name)))
        or (act is Act.LOAD and each.reads_anew)
        for number, each, act in effects
    )


_OF_A_RUN = re.compile(r"clock|timer|%pm\d|smid|warpid|gridid|activemask|s_mem(?:real)?time|s_getreg")
_EXCHANGES = re.compile(r"cas|exch|cmpswap|cmpst|swap")
"""Matches atomic operations after which memory holds what the last thread wrote."""
