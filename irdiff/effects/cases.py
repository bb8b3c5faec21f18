"""The effects of a changed case, by the last text that both sides have. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from irdiff import effects
from irdiff.backends.stages import ASSEMBLIES
from irdiff.effects.wording import detail_of
from irdiff.errors import NormalizeError
from irdiff.model import Cause, CauseKind, ComparedCase, EffectClass, Effects, Verdict
from irdiff.stages import Stage
from irdiff.texts import ir_of

TextOf = Callable[[str, str], Sequence[str]]
"""The canonical lines of a stage's artifact, by its digest."""
RISKS = (EffectClass.SYNCHRONIZATION, EffectClass.MEMORY, EffectClass.CONTROL, EffectClass.FLOAT)
_MAX_SAID = 8


def of_case(case: ComparedCase, text_of: TextOf) -> tuple[Effects, Cause] | None:
    """With the gravest difference as a cause. None where no last text of both sides can be read."""
    if case.verdict is not Verdict.CHANGED:
        return None
    base, head = case.artifacts
    stages = (stage for stage in (*ASSEMBLIES, Stage.LLIR) if ir_of(stage).PROGRAM)
    stage = next((stage for stage in stages if stage in base and stage in head), None)
    if stage is None:
        return None
    try:
        found = effects.compare(stage, text_of(stage, base[stage].digest), text_of(stage, head[stage].digest))
    except NormalizeError:
        return None
    said = tuple(f"{words} ({count}×)" if count > 1 else words for _, words, count in found.said[:_MAX_SAID])
    _, words, count = found.said[0] if found.said else (found.kind, "", 0)
    subject, detail = detail_of(words)
    cause = Cause(kind=CauseKind.EFFECT, subject=subject, count=count, in_loops=0, ahead="", detail=detail)
    return Effects(kind=found.kind, stage=stage, said=said, bits=found.bits), cause
