"""The effects of a changed case, by the last text that both sides have. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from irdiff import backends, effects
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.stages import ASSEMBLIES
from irdiff.effects import agreement, contraction
from irdiff.effects.contraction import Sums
from irdiff.errors import NormalizeError
from irdiff.model import Artifact, Bits, ComparedCase, Effects, HazardKind, Meaning, NotShown, Sides, Verdict
from irdiff.stages import Stage
from irdiff.texts import ir_of, title

TextOf = Callable[[str, str], Sequence[str]]
"""The canonical lines of a stage's artifact, by its digest."""


class MachineCodes(Protocol):
    """Binaries by their digests."""

    def content(self, digest: str) -> bytes: ...

    def text(self, digest: str) -> str | None:
        """As a disassembler prints it; None where none can be run."""


_STAGES = tuple(stage for stage in (*ASSEMBLIES, Stage.LLIR) if ir_of(stage).PROGRAM)

_UNREAD = NotShown(reason="LLVM IR does the same, and no assembly that is made of it was read")
"""Later steps read more of it: flags like `nsw`, alignments, ranges, attributes."""
_ORDER_OF_LLVM_IR = "of LLVM IR alone, of which no assembly was read"
"""Later steps make other instructions of fences and barriers, and buffers have no addresses yet."""


def of_case(case: ComparedCase, text_of: TextOf, machine_code: MachineCodes) -> Effects | None:
    """None where the code of both sides was not compared."""
    if case.verdict is not Verdict.CHANGED:
        return None
    texts = dict(_texts(case, text_of))
    if not texts:
        return None
    stage = next(iter(texts))
    found, sums = effects.compare_with_sums(stage, *texts[stage])
    if not found.is_read and len(texts) > 1:  # an assembly of which a part is not known
        found = _by_other_text(found, *list(texts.items())[1])
    elif stage not in ASSEMBLIES:
        found = _of_llvm_ir(found, _UNREAD)
    wrong = agreement.violations(stage, texts[stage], case.metadata)
    if wrong:
        found = _with(found, hazards=(*wrong, *found.hazards), kind=Meaning.HAZARD)
    elif doubt := agreement.doubts(case.metadata):
        found = _doubted(found, doubt)
    return _with_machine_code(case, found, machine_code, sums) if found.kind is Meaning.SAME else found


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


def _by_other_text(unread: Effects, stage: str, texts: Sides[Sequence[str]]) -> Effects:
    """What an earlier text says of a case whose assembly is not read: of that, nothing is the same."""
    return _of_llvm_ir(effects.compare(stage, *texts), unread.not_shown[0])


def _of_llvm_ir(found: Effects, doubt: NotShown) -> Effects:
    """It proves neither that effects are the same nor that accesses have lost their order."""
    if found.kind is Meaning.SAME:
        return _doubted(found, doubt)
    lost = [each for each in found.hazards if each.kind is HazardKind.ORDER]
    if not lost:
        return found
    hazards = tuple(each for each in found.hazards if each not in lost)
    unclear = (NotShown(reason=each.what, detail=_ORDER_OF_LLVM_IR) for each in lost)
    kind = Meaning.HAZARD if hazards else Meaning.NOT_SHOWN
    return _with(found, kind=kind, hazards=hazards, not_shown=(*found.not_shown, *unclear))


def _with(found: Effects, **changes: object) -> Effects:
    return replace(found, bits=Bits.UNKNOWN, **changes)  # type: ignore[arg-type]


def _doubted(found: Effects, doubt: NotShown) -> Effects:
    if found.kind is Meaning.HAZARD:
        return found
    return _with(found, kind=Meaning.NOT_SHOWN, not_shown=(*found.not_shown, doubt))


def _with_machine_code(
    case: ComparedCase, found: Effects, machine_code: MachineCodes, sums: Sums | None
) -> Effects:
    """Not every assembly is what executes: an assembler chooses which products and sums it fuses, and may be
    wrong.
    """
    backend = backends.of_assembly(found.stage)
    kind, operations = backend.BINARY, backend.MACHINE_OPERATIONS
    if kind is None or operations is None:
        return found
    binaries = [side[kind.artifact].digest for side in case.artifacts if kind.artifact in side]
    is_alike = len(binaries) < 2 or _are_of_same_kinds(binaries, operations, machine_code)
    if is_alike and (sums is None or len(binaries) < 2):
        return found
    does_the_same = f"the {title(found.stage)} does the same"
    texts = [machine_code.text(digest) for digest in binaries]
    if None in texts:
        return found if is_alike else replace(found, bits=Bits.UNKNOWN, kind=Meaning.NOT_SHOWN, not_shown=(
            NotShown(reason=f"{does_the_same}, and the machine code could not be read ({kind.made_by})"),
        ))  # fmt: skip
    ours, theirs = (operations.counted(text) for text in texts if text is not None)
    if ours == theirs:
        is_exact = sums is not None and contraction.is_same(sums, ours)
        return replace(found, bits=Bits.SAME) if is_exact else found
    doubt = NotShown(
        reason=f"{does_the_same}, and {kind.made_by} made other operations of it ({kind.made_by})",
        detail=_words(ours, theirs),
    )
    return _doubted(found, doubt)


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
