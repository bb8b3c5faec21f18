"""Adds a hazard or another rounding to the title of a case."""

from __future__ import annotations

from irdiff.model import Cause, CauseKind, Effects, Meaning


def of(effects: Effects) -> Cause | None:
    """Returns the gravest; None if neither is shown, or the edit asks for it."""
    if effects.kind is Meaning.HAZARD:
        hazard = effects.hazards[0]
        return _cause(hazard.what, hazard.detail, len(effects.hazards))
    if effects.kind is Meaning.ROUNDING:
        rounding = effects.roundings[0]
        detail = rounding.operations if rounding.base != rounding.head else ""
        alike = [each for each in effects.roundings if each.kind is rounding.kind]
        return _cause(str(rounding.kind), detail, len(alike))
    return None


def _cause(subject: str, detail: str, count: int) -> Cause:
    return Cause(kind=CauseKind.EFFECT, subject=subject, count=count, in_loops=0, ahead="", detail=detail)
