"""Adds a hazard or another rounding to the title of a case."""

from __future__ import annotations

from collections.abc import Sequence

from irdiff.model import Cause, CauseKind, Effects, Meaning, Rounding


def of(effects: Effects) -> Cause | None:
    """Returns the gravest; None if neither is shown, or the edit asks for it."""
    if effects.kind is Meaning.HAZARD:
        subject = effects.hazards[0].what
        return _cause(subject, [each.detail for each in effects.hazards if each.what == subject])
    if effects.kind is Meaning.ROUNDING:
        kind = effects.roundings[0].kind
        return _cause(str(kind), [_detail(each) for each in effects.roundings if each.kind is kind])
    return None


def _detail(rounding: Rounding) -> str:
    return rounding.operations if rounding.base != rounding.head else ""


def _cause(subject: str, details: Sequence[str]) -> Cause:
    """details: one for each occurrence of the subject. `, …` behind the first one stands for others."""
    others = ", …" if details[0] and len({*details}) > 1 else ""
    detail = f"{details[0]}{others}"
    return Cause(
        kind=CauseKind.EFFECT, subject=subject, count=len(details), in_loops=0, ahead="", detail=detail
    )
