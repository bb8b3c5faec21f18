"""Compares the effects of a changed case in the last text that both sides have. Pure.

The assembly is compared if irdiff can read it, and LLVM IR otherwise. LLVM IR alone never proves `same`,
because later steps use flags like `nsw`, alignments, ranges and attributes, which are not compared. It shows
no hazard of the kind order either: later steps replace fences and barriers by other instructions, and buffers
of shared memory have no addresses yet.

If the PTX of both sides does the same, the machine code is looked at, too: ptxas may have compiled the same
PTX in different ways. If the numbers of operations that round floats or access memory differ, the case is
`not shown`, and the reason lists the numbers. The order of SASS operations, and the numbers of all other
kinds, are ptxas's choice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from irdiff import backends
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.stages import ASSEMBLIES
from irdiff.effects import agreement, compare, compare_with_sums, contraction
from irdiff.effects.contraction import Sums
from irdiff.errors import NormalizeError
from irdiff.model import (
    Artifact,
    Bits,
    ComparedCase,
    Effects,
    HazardKind,
    Meaning,
    NotShown,
    Sides,
    StageStatus,
    Verdict,
)
from irdiff.stages import Stage
from irdiff.texts import ir_of, title

TextOf = Callable[[str, str], Sequence[str]]
"""The canonical lines of a stage's artifact, by its digest."""


class MachineCodes(Protocol):
    """Binaries by their digests."""

    def content(self, digest: str) -> bytes: ...

    def operations(self, digests: Sequence[str]) -> list[Counter[str]] | None:
        """Counts of each binary's operations by name; None where no disassembler can read them."""


_STAGES = tuple(stage for stage in (*ASSEMBLIES, Stage.LLIR) if ir_of(stage).PROGRAM)

_UNREAD = NotShown(reason="LLVM IR does the same, and no assembly that is made of it was read")
_LAUNCHED_OTHERWISE = NotShown(reason="the code does the same, and what is launched with it differs")
_PROVED = frozenset({Meaning.SAME, Meaning.ROUNDING})
_ORDER_OF_LLVM_IR = "of LLVM IR alone, of which no assembly was read"


def of_case(case: ComparedCase, text_of: TextOf, machine_code: MachineCodes) -> Effects | None:
    """None where the code of both sides was not compared, or where the launch alone differs."""
    changed = {stage for stage, status in case.stages.items() if status is StageStatus.CHANGED}
    if case.verdict is not Verdict.CHANGED or changed == {Stage.LAUNCH}:
        return None
    texts_of_stages = _texts(case, text_of)
    stage, texts = next(texts_of_stages, ("", None))
    if texts is None:
        return None
    effects, sums = compare_with_sums(stage, *texts)
    earlier = None if effects.is_read else next(texts_of_stages, None)
    if earlier:  # a part of the assembly is not known
        effects = _of_llvm_ir(compare(earlier[0], *earlier[1]), effects.not_shown[0])
    elif stage not in ASSEMBLIES:
        effects = _of_llvm_ir(effects, _UNREAD)
    violations = agreement.violations(stage, texts, case.metadata)
    if violations:
        effects = _with(effects, hazards=(*violations, *effects.hazards), kind=Meaning.HAZARD)
    elif doubt := agreement.doubts(case.metadata):
        effects = _doubted(effects, doubt)
    elif case.stages.get(Stage.LAUNCH) is StageStatus.CHANGED and effects.kind in _PROVED:
        effects = _doubted(effects, _LAUNCHED_OTHERWISE)
    return _with_machine_code(case, effects, machine_code, sums) if effects.kind is Meaning.SAME else effects


def _texts(case: ComparedCase, text_of: TextOf) -> Iterator[tuple[str, Sides[Sequence[str]]]]:
    base, head = case.artifacts
    for stage in _STAGES:
        if stage in base and stage in head:
            try:
                yield stage, Sides(base=base[stage], head=head[stage]).map(lambda each: _lines(each, text_of))
            except NormalizeError:
                continue


def _lines(artifact: Artifact, text_of: TextOf) -> Sequence[str]:
    return text_of(artifact.stage, artifact.digest)


def _of_llvm_ir(effects: Effects, doubt: NotShown) -> Effects:
    """It proves neither that effects are the same nor that accesses have lost their order."""
    if effects.kind is Meaning.SAME:
        return _doubted(effects, doubt)
    lost = [each for each in effects.hazards if each.kind is HazardKind.ORDER]
    if not lost:
        return effects
    hazards = tuple(each for each in effects.hazards if each not in lost)
    unclear = (NotShown(reason=each.what, detail=_ORDER_OF_LLVM_IR) for each in lost)
    kind = Meaning.HAZARD if hazards else Meaning.NOT_SHOWN
    return _with(effects, kind=kind, hazards=hazards, not_shown=(*effects.not_shown, *unclear))


def _with(effects: Effects, **changes: object) -> Effects:
    return replace(effects, bits=Bits.UNKNOWN, **changes)  # type: ignore[arg-type]


def _doubted(effects: Effects, doubt: NotShown) -> Effects:
    if effects.kind is Meaning.HAZARD:
        return effects
    return _with(effects, kind=Meaning.NOT_SHOWN, not_shown=(*effects.not_shown, doubt))


def _with_machine_code(
    case: ComparedCase, effects: Effects, machine_code: MachineCodes, sums: Sums | None
) -> Effects:
    """Not every assembly is what executes: an assembler chooses which products and sums it fuses, and may be
    wrong.
    """
    backend = backends.of_assembly(effects.stage)
    kind, operations = backend.BINARY, backend.MACHINE_OPERATIONS
    if kind is None or operations is None:
        return effects
    binaries = [side[kind.artifact].digest for side in case.artifacts if kind.artifact in side]
    is_alike = len(binaries) < 2 or _are_of_same_kinds(binaries, operations, machine_code)
    if is_alike and (sums is None or not sums.is_certain or len(binaries) < 2):
        return effects
    does_the_same = f"the {title(effects.stage)} does the same"
    counts = machine_code.operations(binaries)
    if counts is None:
        unread = f"{does_the_same}, and the machine code could not be read ({kind.made_by})"
        return effects if is_alike else _doubted(effects, NotShown(reason=unread))
    ours, theirs = counts
    if ours == theirs:
        is_exact = sums is not None and contraction.is_same(sums, ours)
        return replace(effects, bits=Bits.SAME) if is_exact else effects
    doubt = NotShown(
        reason=f"{does_the_same}, and {kind.made_by} made other operations of it ({kind.made_by})",
        detail=_words(ours, theirs),
    )
    return _doubted(effects, doubt)


def _are_of_same_kinds(
    binaries: Sequence[str], operations: MachineOperations, machine_code: MachineCodes
) -> bool:
    try:
        base, head = (operations.kinds(machine_code.content(digest)) for digest in binaries)
    except NormalizeError:
        return False
    return base == head


def _words(ours: Counter[str], theirs: Counter[str]) -> str:
    names = [name for name in sorted({*ours, *theirs}) if ours[name] != theirs[name]]
    return ", ".join(f"{ours[name]} → {theirs[name]} {name}" for name in names[:4])
