"""How much a change matters: one table and its reasons. Pure.

Every row of `TABLE` is tried on a change; the rows that hold are its reasons and their weights add up. The
class of a change is the class of its first row that holds. Weights are ordinal: a class outweighs
all classes below it together, and inside a class the size of the movement counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import NamedTuple, TypeVar

from irdiff.backends.stages import ASSEMBLIES
from irdiff.compare import cases, statistics
from irdiff.compare.edits import Edit
from irdiff.effects.cases import RISKS
from irdiff.findings import FindingKind
from irdiff.ir import loops
from irdiff.model import (
    CaseSummary,
    ChangeGroup,
    ComparedCase,
    EffectClass,
    Effects,
    Fact,
    StageStatus,
    Verdict,
)
from irdiff.stages import Stage
from irdiff.texts import ir_of


class Severity(StrEnum):
    """Classes of change, the gravest first."""

    BROKEN = "broken"
    WRONG_RESULT = "wrong-result risk"
    OTHER_RESULT = "may give other results"
    """As the edited kernels or their launches ask for: no error of a compiler."""
    RESOURCES = "resources"
    LOOP = "instruction mix in loops"
    UNKNOWN = "not understood"
    OTHER = "other"
    MOTION = "code motion only"
    ABSORBED = "absorbed"


@dataclass(frozen=True, kw_only=True)
class Ranked:
    severity: Severity
    score: float
    reasons: tuple[str, ...]


class _Change(NamedTuple):
    case: ComparedCase
    edit: Edit
    effects: Effects | None


Measure = Callable[[_Change], float]
_NO_EDIT = Edit(stage="", lines=())


class SeverityRow(NamedTuple):
    name: str
    severity: Severity
    weight: float
    measure: Measure
    """How far the row holds: above 0 and at most 1; 0 where it does not hold."""
    reason: str
    """Empty where the first sentence on the effects says it."""


_MATMUL = re.compile(r"dot\b|mma\b|mfma|wgmma|tcgen05\.mma|warp_group_dot")
_MOVE_OVERHEAD = re.compile("convert_layout|local_load|local_store|shuffle")
_ANY = re.compile(r"")


def _in_loops(pattern: re.Pattern[str], change: _Change) -> float:
    lines = [line for line in change.edit.lines if line.depth and pattern.search(line.text)]
    return loops.weight(line.depth for line in lines) if lines else 0.0


def _grew(names: Sequence[str], change: _Change) -> float:
    return max(_growth(change.case, name) for name in names)


def _growth(case: ComparedCase, name: str) -> float:
    before, after = _values(case, name)
    return 0.0 if after <= before else 0.2 + 0.8 * (after - before) / after


def _fell(names: Sequence[str], change: _Change) -> float:
    rows = [_values(change.case, name) for name in names]
    return max(((b - h) / b for b, h in rows if b > h), default=0.0)


def _occupancy_fell(change: _Change) -> float:
    both = change.case.facts.base.keys() & change.case.facts.head.keys()
    return _fell([name for name in statistics.facts_of("occupancy") if name in both], change)


def _values(case: ComparedCase, name: str) -> tuple[float, float]:
    """At base and at head; 0 for what is no number."""
    return _number(case.facts.base, name), _number(case.facts.head, name)


def _number(facts: Mapping[str, Fact], name: str) -> float:
    value = facts.get(name, 0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _mix(change: _Change) -> float:
    """Share of instructions by which the classes counted in assembly moved."""
    names = {
        name
        for name in {**change.case.facts.base, **change.case.facts.head}
        if name.startswith(_COUNTED) and not name.endswith(".total")
    }
    moved = sum(_step(change.case, name) for name in names)
    moved = max(moved, *(_step(change.case, name) for name in statistics.facts_of("instructions")))
    total = max(*(_number(change.case.facts.head, f"{name}total") for name in _COUNTED), 1.0)
    return min(moved / total, 1.0)


def _step(case: ComparedCase, name: str) -> float:
    before, after = _values(case, name)
    return abs(after - before)


def _is(kinds: Collection[EffectClass], change: _Change) -> float:
    return float(change.effects is not None and change.effects.kind in kinds)


def _is_unread(change: _Change) -> float:
    return float(
        change.effects is None
        and change.case.verdict is Verdict.CHANGED
        and {name for name, status in change.case.stages.items() if status is StageStatus.CHANGED}
        != {Stage.LAUNCH}
        and not cases.not_compared(change.case)
    )


def _launch_differs(change: _Change) -> float:
    return float(any(found.kind is FindingKind.LAUNCH_DIFFERS for found in change.case.findings))


_SPILL_FACTS = statistics.facts_of("spills", "scratch memory")
_MEMORY_FACTS = statistics.facts_of("shared memory", "TMEM columns")
_REGISTER_FACTS = statistics.facts_of("registers", "VGPRs", "AGPRs")
_COUNTED = tuple(f"{stage}." for stage in ASSEMBLIES)
_COPIES = tuple(f"{name}{kind}" for name in _COUNTED for kind in ("async_copy", "tma"))
_PIPELINE_FACTS = ("pipeline_stages", f"{Stage.TTGIR}.async_copy", *_COPIES)
_WIDE_ACCESSES = tuple(f"{stage}.{kind}" for stage in ASSEMBLIES for kind in ir_of(stage).WIDE_ACCESSES)
_BROKEN, _WRONG, _RESOURCES = Severity.BROKEN, Severity.WRONG_RESULT, Severity.RESOURCES
_LOOP, _OTHER = Severity.LOOP, Severity.OTHER
# fmt: off
TABLE: tuple[SeverityRow, ...] = (
    SeverityRow("broken", _BROKEN, 1e6, lambda change: float(change.case.verdict is Verdict.BROKEN),
                "base gives code for it, and head does not"),
    SeverityRow("not-compared", _WRONG, 6e4, lambda change: float(cases.not_compared(change.case)),
                "the code was not compared: anything may have changed in it"),
    *(
        SeverityRow(str(kind), _WRONG, weight, partial(_is, (kind,)), "")
        for kind, weight in zip(RISKS, (5e4, 4.5e4, 4e4, 3e4), strict=True)
    ),
    SeverityRow("spills", _RESOURCES, 4e3, partial(_grew, _SPILL_FACTS),
                "registers spill to memory, paid for at each use"),
    SeverityRow("occupancy", _RESOURCES, 3e3, _occupancy_fell,
                "fewer warps fit on a multiprocessor: less latency is hidden"),
    SeverityRow("shared-memory", _RESOURCES, 2e3, partial(_grew, _MEMORY_FACTS),
                "more shared memory: fewer blocks fit, or the launch is refused"),
    SeverityRow("registers", _RESOURCES, 1e3, partial(_grew, _REGISTER_FACTS),
                "more registers: nearer to spills and lower occupancy"),
    SeverityRow("pipeline", _RESOURCES, 1.5e3, partial(_fell, _PIPELINE_FACTS),
                "fewer asynchronous copies or a shallower pipeline: loads are waited for"),
    SeverityRow("matrix-unit", _LOOP, 800, partial(_in_loops, _MATMUL),
                "matrix instructions differ: most of the time of a matmul is there"),
    SeverityRow("loop-layouts", _LOOP, 500, partial(_in_loops, _MOVE_OVERHEAD),
                "data is moved between layouts inside a loop"),
    SeverityRow("narrower-access", _LOOP, 400, partial(_fell, _WIDE_ACCESSES),
                "fewer wide memory accesses: more instructions for the same bytes"),
    SeverityRow("loop-edit", _LOOP, 200, partial(_in_loops, _ANY),
                "the edit is inside a loop, whose lines run most often"),
    SeverityRow("not understood", Severity.UNKNOWN, 150, partial(_is, (EffectClass.UNKNOWN,)), ""),
    SeverityRow("not read", Severity.UNKNOWN, 150, _is_unread, "no last text of both sides could be read"),
    SeverityRow("synchronization added", _OTHER, 45, partial(_is, (EffectClass.COST,)), ""),
    SeverityRow("instruction-mix", _OTHER, 100, _mix,
                "the assembly has other numbers of instructions by class"),
    SeverityRow("launch", _OTHER, 50, _launch_differs,
                "the launch passes something else to the same code"),
    SeverityRow("motion", Severity.MOTION, 1, partial(_is, (EffectClass.MOTION,)),
                "proved: only order, registers or how addresses are computed differ"),
)
# fmt: on
"""The order is that of the classes. Reasons are shown with each group."""


R = TypeVar("R", Ranked, CaseSummary)
_NOISE = "nondeterministic: head disagrees with itself: one of its results may be wrong"
_NOISE_WEIGHT = 6e4


def with_noise(ranked: R, disagreeing: Collection[str]) -> R:
    """As the determinism check leaves it: a head that disagrees with itself is grave."""
    if "head" not in disagreeing or ranked.severity == Severity.ABSORBED:
        return ranked
    is_broken = ranked.severity == Severity.BROKEN
    reasons = list(ranked.reasons)
    reasons.insert(int(is_broken), _NOISE)
    return replace(
        ranked,
        severity=Severity.BROKEN if is_broken else Severity.WRONG_RESULT,
        score=ranked.score + _NOISE_WEIGHT,
        reasons=tuple(reasons),
    )


def gravity(ranked: Ranked | CaseSummary | ChangeGroup) -> tuple[int, float]:
    """The graver of two is the larger: by its class, then by its score."""
    return class_gravity(ranked.severity), ranked.score


def order(group: ChangeGroup) -> tuple[int, float, int, str]:
    """The order of groups, the gravest first."""
    return -class_gravity(group.severity), -group.score, -len(group.members), group.id


def why(ranked: Ranked | CaseSummary | ChangeGroup) -> tuple[str, str]:
    """Its class, and the row of the table that gave it that; empty where none holds."""
    return ranked.severity, ranked.reasons[0].partition(":")[0] if ranked.reasons else ""


def sentences(ranked: CaseSummary | ChangeGroup) -> list[str]:
    """The reasons without the names of their rows."""
    return [text or name for name, _, text in (reason.partition(": ") for reason in ranked.reasons)]


def class_gravity(name: str) -> int:
    """The number of a class of severity, by its name."""
    return -list(Severity).index(Severity(name))


def rank(
    case: ComparedCase, edit: Edit | None, effects: Effects | None = None, *, is_asked_for: bool = False
) -> Ranked:
    """Severity of one case by its own edit, effects and facts; whether its source or program asks for it."""
    if case.verdict is Verdict.ABSORBED:
        return Ranked(
            severity=Severity.ABSORBED, score=0.0, reasons=("IR differs, the machine code is the same",)
        )
    found = measures(case, edit, effects)
    held = [(row, found[row.name]) for row in TABLE if row.name in found]
    if held and held[-1][0].severity is Severity.MOTION:  # what moves in a loop does what it did
        held = [(row, measure) for row, measure in held if row.name not in _MOVES]
    said = effects.said[0] if effects and effects.said else ""
    severity = held[0][0].severity if held else Severity.OTHER
    if is_asked_for and held and held[0][0].name in RISKS:
        severity = Severity.OTHER_RESULT
        said = f"the edited source or program asks for something else: {said}"
    return Ranked(
        severity=severity,
        score=round(sum(row.weight * measure for row, measure in held), 3),
        reasons=tuple(f"{row.name}: {row.reason or said}" for row, _ in held),
    )


_MOVES = ("matrix-unit", "loop-layouts", "loop-edit", "instruction-mix")


def measures(case: ComparedCase, edit: Edit | None, effects: Effects | None = None) -> dict[str, float]:
    """The rows of the table that hold for one case, with how far: above 0 and at most 1."""
    change = _Change(case, edit or _NO_EDIT, effects)
    return {row.name: measure for row in TABLE if (measure := row.measure(change)) > 0}
