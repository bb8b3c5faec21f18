"""An objection is one reason why a rule does not hold for a case, a target or a file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Certainty(StrEnum):
    VIOLATED = "violated"
    UNKNOWN = "unknown"
    """The run lacks the data to decide it."""


@dataclass(frozen=True, kw_only=True)
class Objection:
    certainty: Certainty
    detail: str
    """The deciding figures."""
    needs_gpu: bool
    """No GPU has run the case. One command cures all cases that have it."""
    equal_outputs_on: tuple[str, ...]
    """GPUs whose bitwise equal outputs settle it."""
    is_measured: bool
    """A GPU measured it: who has read the code alone has not seen it."""


BUT = ", but "
"""Stands between the figures of a measurement and the reason why they do not decide."""


def violated(
    detail: str,
    *,
    needs_gpu: bool = False,
    equal_outputs_on: tuple[str, ...] = (),
    is_measured: bool = False,
) -> Objection:
    return Objection(
        certainty=Certainty.VIOLATED,
        detail=detail,
        needs_gpu=needs_gpu,
        equal_outputs_on=equal_outputs_on,
        is_measured=is_measured,
    )


def unknown(detail: str, *, needs_gpu: bool = False) -> Objection:
    return Objection(
        certainty=Certainty.UNKNOWN,
        detail=detail,
        needs_gpu=needs_gpu,
        equal_outputs_on=(),
        is_measured=False,
    )


def worst(objections: Iterable[Objection | None]) -> Objection | None:
    """Returns the first violation, else the first unknown."""
    raised = [objection for objection in objections if objection]
    return min(raised, key=lambda each: each.certainty is Certainty.UNKNOWN, default=None)
