"""What is attributed, and what is found: a case to run again; its origin, edit and responsible pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from irdiff.compare import cases
from irdiff.compare.edits import Edit, EditSource
from irdiff.model import Case, Origin, Sides, Target, Verdict
from irdiff.stages import MACHINE_STAGES, TEXTS, Stage

ATTRIBUTED = frozenset({Verdict.CHANGED, Verdict.ABSORBED})
FAILED = frozenset({Verdict.BROKEN, Verdict.FIXED})
_ORDER = tuple(stage for stage in Stage if stage in TEXTS or stage in MACHINE_STAGES)


@dataclass(frozen=True, kw_only=True)
class ResponsiblePass:
    """The responsible pass with what enters and leaves it, for a test of that pass alone. Digests."""

    name: str
    argument: str
    options: str | None
    entering: Sides[str]
    leaving: Sides[str]


@dataclass(frozen=True, kw_only=True)
class Attribution:
    case_id: str
    origin: Origin
    edit: EditSource | None
    """The edit between the outputs of the responsible pass. None where the stage's artifacts show it best."""
    step: ResponsiblePass | None
    again: Sides[Mapping[str, bool]]
    """By stage that a side ran again on its own text, with addresses and hashes randomized: whether it made
    what was compared."""
    made: Edit | None = None
    """What lies between the texts of `edit`, where it was made on the way; not kept in the store."""
    may_be_cured: bool = False
    """Whether another attempt may find more, so that this is not to be kept."""


NOT_AGAIN: Sides[Mapping[str, bool]] = Sides(base={}, head={})
"""For a case of which no stage was run again."""


@dataclass(frozen=True, kw_only=True)
class AttributionInput:
    """One case with what is needed to run it again."""

    case: Case
    target: Target
    launch_ids: Sides[str]


def attributed(case: Case, found: Attribution) -> Case:
    """The case with its origin; one that broke or was fixed says in its error which pass failed."""
    name = found.origin.pass_name
    if case.verdict not in FAILED or name is None or case.error is None or name in case.error:
        return replace(case, origin=found.origin)
    side = "head" if case.verdict is Verdict.BROKEN else "base"
    error = case.error.replace(f"{side}: ", f"{side}: {name}: ", 1)
    return replace(case, origin=found.origin, error=error)


def stages_of(case: Case) -> list[str]:
    """The stages of which both sides have an artifact, in the order they are made."""
    common = case.artifacts.base.keys() & case.artifacts.head.keys()
    return [name for name in _ORDER if name in common]


def is_attributed(case: Case) -> bool:
    """Not where nothing changed, or its code was not compared."""
    known = case.verdict in (ATTRIBUTED | FAILED) and case.origin is not None
    return known and not cases.not_compared(case)


def attribution_input(case: Case, target: Target) -> AttributionInput | None:
    """None for a case that is not attributed."""
    if not is_attributed(case):
        return None
    ids = [case_id.rpartition("@")[0] for case_id in (case.renamed_from or case.id, case.id)]
    return AttributionInput(case=case, target=target, launch_ids=Sides(base=ids[0], head=ids[1]))
