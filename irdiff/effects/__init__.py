"""What two texts of a kernel do, and how that differs. See README.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from irdiff.effects import blocks, difference
from irdiff.effects.difference import EffectDiffers
from irdiff.effects.numbering import NumberedFunction, number
from irdiff.effects.values import Values
from irdiff.ir.program import CACHE_POLICY, Function, Program, ProgramReader, ReadError
from irdiff.model import Bits, EffectClass
from irdiff.texts import ir_of


class Compared(NamedTuple):
    """How what two texts do differs: a class, a sentence and how often it holds each, the gravest first."""

    said: tuple[tuple[EffectClass, str, int], ...]
    bits: Bits

    @property
    def kind(self) -> EffectClass:
        return self.said[0][0] if self.said else EffectClass.MOTION


def compare(stage: str, base: Sequence[str], head: Sequence[str]) -> Compared:
    """Of canonical lines. Whatever is in doubt is `not understood`."""
    values = Values()
    try:
        reader = _reader(stage)
        ours, theirs = _read(stage, reader, base), _read(stage, reader, head)
        found = list(_between(reader, values, ours, theirs))
    except ReadError as error:
        found = [_unknown(f"the text is not read: {error}")]
    else:
        if not found:
            found = [_unknown(f"{name} not understood") for name in sorted({*ours.unknown, *theirs.unknown})]
    said = difference.said(found)
    return Compared(said, _bits(_reader(stage), values, said))


def _reader(stage: str) -> ProgramReader:
    reader = ir_of(stage).PROGRAM
    assert reader is not None, f"nothing reads {stage} as a program"
    return reader


def _read(stage: str, reader: ProgramReader, lines: Sequence[str]) -> Program:
    try:
        return reader.read(lines)
    except (IndexError, ValueError, TypeError) as error:  # a line is not of the form that a reader expects
        raise ReadError(f"{stage}: {error}") from error


def _unknown(subject: str) -> EffectDiffers:
    return EffectDiffers(EffectClass.UNKNOWN, subject, subject)


def _between(reader: ProgramReader, values: Values, base: Program, head: Program) -> Iterator[EffectDiffers]:
    if base.threads != head.threads:
        yield _unknown("the kernel runs with another number of threads")
        return
    values.threads = base.threads
    ours, theirs = Counter(base.declarations), Counter(head.declarations)
    for place, each in enumerate(max(ours - theirs, theirs - ours, key=Counter.total).elements()):
        is_hint = each.startswith(CACHE_POLICY)
        subject = "an access has another cache policy" if is_hint else "a declaration differs"
        yield EffectDiffers(EffectClass.UNKNOWN, subject, place)
    if base.functions.keys() != head.functions.keys():
        yield _unknown("the text has other functions")
        return
    for name, function in base.functions.items():
        yield from _of_functions(reader, values, function, head.functions[name])


def _of_functions(
    reader: ProgramReader, values: Values, base: Function, head: Function
) -> list[EffectDiffers]:
    graphs = blocks.graphs(base, head)
    if not blocks.same_shape(*graphs):
        return list(difference.of_shapes(*graphs))
    ours, theirs = (
        NumberedFunction(values, reader.marked(graph) if reader.marked else graph, function)
        for graph, function in zip(graphs, (base, head), strict=True)
    )
    number(ours, theirs)
    return difference.Differences(ours, theirs).all()


def _bits(reader: ProgramReader, values: Values, said: Sequence[tuple[EffectClass, str, int]]) -> Bits:
    kinds = {kind for kind, _, _ in said}
    if EffectClass.FLOAT in kinds:
        return Bits.MAY_DIFFER
    if not kinds <= {EffectClass.COST}:
        return Bits.UNKNOWN
    is_final = reader.is_final and not (reader.may_contract and _may_be_contracted(values))
    has_order = not any(operation.sums_up for operation in values.made_by.values())
    return Bits.SAME if is_final and has_order else Bits.UNKNOWN


def _may_be_contracted(values: Values) -> bool:
    """Whether a later step may make one `fma` of a product and a sum that do not say how they round."""
    for key in values.keys:
        if isinstance(key[0], str) and key[0].startswith(("add.", "sub.")) and ".r" not in key[0]:
            for made in (values.keys[each] for each in key[1:] if isinstance(each, int)):
                if isinstance(made[0], str) and made[0].startswith("mul.") and ".r" not in made[0]:
                    return True
    return False
