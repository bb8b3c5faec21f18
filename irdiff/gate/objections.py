"""An objection: one reason why a rule does not hold for a case, a target or a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """It cannot be decided from the run: data is missing."""


@dataclass(frozen=True, kw_only=True)
class Objection:
    certainty: Certainty
    detail: str
    """The figures that decided it."""
    needs_gpu: bool
    """A GPU has not run the case; one command cures all that have it."""
    equal_outputs_on: tuple[str, ...]
    """GPUs whose bitwise equal outputs settle it."""


def violated(detail: str, *, needs_gpu: bool = False, equal_outputs_on: tuple[str, ...] = ()) -> Objection:
    return Objection(
        certainty=Certainty.VIOLATED, detail=detail, needs_gpu=needs_gpu, equal_outputs_on=equal_outputs_on
    )


def unknown(detail: str, *, needs_gpu: bool = False) -> Objection:
    return Objection(certainty=Certainty.UNKNOWN, detail=detail, needs_gpu=needs_gpu, equal_outputs_on=())


def worst(objections: Iterable[Objection | None]) -> Objection | None:
    """The first that is violated, else the first that is unknown."""
    raised = [objection for objection in objections if objection]
    return min(raised, key=lambda each: each.certainty is Certainty.UNKNOWN, default=None)
