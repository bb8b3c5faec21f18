"""The effects of a changed case, by the texts that show them best. Pure.

The last text decides: PTX, which `ptxas` assembles, or AMD's assembly. Where it is not proved to do the same,
LLVM IR may say better what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irdiff import effects
from irdiff.effects.difference import detail_of, in_words
from irdiff.errors import NormalizeError
from irdiff.model import Case, Cause, CauseKind, EffectClass, Effects, StageStatus, Verdict
from irdiff.stages import Stage

TextOf = Callable[[str, str], Sequence[str]]
"""The canonical lines of a stage's artifact, by its digest."""
RISKS = (EffectClass.SYNCHRONIZATION, EffectClass.MEMORY, EffectClass.CONTROL, EffectClass.FLOAT)
_MAX_SAID = 8


def of_case(case: Case, text_of: TextOf) -> tuple[Effects, Cause] | None:
    """With the gravest difference as a cause. None where no last text of both sides can be read."""
    if case.verdict is not Verdict.CHANGED:
        return None
    stages = (stage for stage in (Stage.PTX, Stage.AMDGCN) if all(stage in side for side in case.artifacts))
    stage = next(stages, None)
    found = _between(case, stage, text_of) if stage else None
    if found is None or stage is None:
        return None
    said = found.said
    if found.kind is EffectClass.UNKNOWN and case.stages.get(Stage.LLIR) is StageStatus.CHANGED:
        above = _between(case, Stage.LLIR, text_of)
        if above and above.kind in RISKS:
            said = (*above.said, *said)
    kind = said[0][0] if said else EffectClass.MOTION
    sentences = tuple(in_words(subject, count, count) for _, subject, count in said[:_MAX_SAID])
    subject, detail = detail_of(said[0][1]) if said else ("", "")
    cause = Cause(
        kind=CauseKind.EFFECT,
        subject=subject,
        count=said[0][2] if said else 0,
        in_loops=0,
        ahead="",
        detail=detail,
    )
    return Effects(kind=kind, stage=stage, said=sentences, bits=found.bits), cause


def _between(case: Case, stage: str, text_of: TextOf) -> effects.Compared | None:
    base, head = (side.get(stage) for side in case.artifacts)
    if base is None or head is None:
        return None
    try:
        return effects.compare(stage, text_of(stage, base.digest), text_of(stage, head.digest))
    except NormalizeError:
        return None
