"""How much a change matters: one table and its reasons. Pure.

Every row of `TABLE` is tried on a change; the rows that hold are its reasons and their weights add up. The
class of a change is the class of its first row that holds. Weights are ordinal: a class outweighs
all classes below it together, and inside a class the size of the movement counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial

from irdiff.compare import cases, loops, statistics
from irdiff.compare.edits import Edit, EditLine
from irdiff.compare.line_forms import operation, typeless
from irdiff.findings import FindingKind
from irdiff.group import synchronization
from irdiff.model import Case, CaseSummary, Fact, Verdict


class Severity(StrEnum):
    """Classes of change, the gravest first."""

    BROKEN = "broken"
    WRONG_RESULT = "wrong-result risk"
    RESOURCES = "resources"
    LOOP = "instruction mix in loops"
    OTHER = "other"
    MOTION = "code motion only"
    ABSORBED = "absorbed"


@dataclass(frozen=True, kw_only=True)
class Ranked:
    severity: Severity
    score: float
    reasons: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Change:
    case: Case
    edit: Edit | None


Measure = Callable[[_Change], float]


@dataclass(frozen=True, kw_only=True)
class _SeverityRow:
    name: str
    severity: Severity
    weight: float
    reason: str
    measure: Measure
    """How far the row holds: above 0 and at most 1; 0 where it does not hold."""


_ATOMIC = re.compile(r"atomic|cmpxchg|\batom\b|\bred\.")
_ROUNDING = re.compile(
    r"fast\b|nnan|ninf|nsz|arcp|contract|afn|reassoc|fastmath|rounding|\.r[nzmp]i?\b|\.ftz|\.approx|denormal|fp-?fusion"
    r"|inputPrecision|max_?[nN]um_?[iI]mprecise|allow.?tf32|fpmath"
)
_REDUCE = re.compile(r"tt\.(?:reduce|scan)\b|shfl\.bfly|redux|v_permlane|row_(?:shr|bcast|ror)|update\.dpp")
_MATMUL = re.compile(r"dot\b|mma\b|mfma|wgmma|tcgen05\.mma|warp_group_dot")
_MOVE_OVERHEAD = ("convert_layout", "local_load", "local_store", "shuffle")


def _touched(pattern: re.Pattern[str], change: _Change) -> float:
    """How much weight matching lines have of which one side has more, by the deepest loop; 0 for none."""
    if change.edit is None:
        return 0.0
    lines = [line for line in change.edit.lines if pattern.search(line.text)]
    added = sum(line.sign == "+" for line in lines)
    unequal = added * 2 != len(lines) or any(_differs(line, pattern) for line in lines)
    return loops.weight(line.depth for line in lines) if lines and unequal else 0.0


def _taken(pattern: re.Pattern[str], change: _Change) -> float:
    return synchronization.taken(pattern, change.edit.lines) if change.edit else 0.0


def _added(change: _Change) -> float:
    return synchronization.added(change.edit.lines) if change.edit else 0.0


def _differs(line: EditLine, pattern: re.Pattern[str]) -> bool:
    """Whether the line says something else than its partner about what the pattern finds."""
    if line.partner is None:
        return False
    if pattern in (synchronization.SIGNAL, _ATOMIC):  # counts, scopes and orderings matter here
        return typeless(line.text) != typeless(line.partner)
    return pattern.findall(line.text) != pattern.findall(line.partner)


def _grew(names: Sequence[str], change: _Change) -> float:
    return max(_growth(change, name) for name in names)


def _growth(change: _Change, name: str) -> float:
    before, after = _number(change.case.facts.base, name), _number(change.case.facts.head, name)
    return 0.0 if after <= before else 0.2 + 0.8 * (after - before) / after


def _fell(names: Sequence[str], change: _Change) -> float:
    rows = [(_number(change.case.facts.base, name), _number(change.case.facts.head, name)) for name in names]
    return max(((b - h) / b for b, h in rows if b > h), default=0.0)


def _number(facts: Mapping[str, Fact], name: str) -> float:
    value = facts.get(name, 0)
    return float(value) if isinstance(value, (int, float)) else 0.0


def _occupancy_fell(change: _Change) -> float:
    both = change.case.facts.base.keys() & change.case.facts.head.keys()
    return _fell([name for name in statistics.facts_of("occupancy") if name in both], change)


def _in_loops(pattern: re.Pattern[str], change: _Change) -> float:
    if change.edit is None:
        return 0.0
    lines = [line for line in change.edit.lines if line.depth and pattern.search(line.text)]
    return loops.weight(line.depth for line in lines) if lines else 0.0


def _mix(change: _Change) -> float:
    """Share of instructions by which the classes counted in assembly moved."""
    names = {
        name
        for name in {**change.case.facts.base, **change.case.facts.head}
        if name.startswith(("ptx.", "amdgcn.")) and not name.endswith(".total")
    }
    moved = sum(abs(_number(change.case.facts.head, n) - _number(change.case.facts.base, n)) for n in names)
    moved = max(
        moved,
        *(abs(_number(change.case.facts.head, n) - _number(change.case.facts.base, n)) for n in _TOTALS),
    )
    total = max(
        _number(change.case.facts.head, "ptx.total"), _number(change.case.facts.head, "amdgcn.total"), 1.0
    )
    return min(moved / total, 1.0)


def _same_multiset(change: _Change) -> float:
    if change.edit is None or not change.edit.lines or _mix(change):
        return 0.0
    rows: dict[str, int] = {}
    for line in change.edit.lines:
        name = operation(change.edit.stage, line.text)
        rows[name] = rows.get(name, 0) + (1 if line.sign == "+" else -1)
    return 1.0 if not any(rows.values()) else 0.0


_TOTALS = statistics.facts_of("instructions")
_ANY = re.compile(r"")
TABLE: tuple[_SeverityRow, ...] = (
    _SeverityRow(
        name="broken",
        severity=Severity.BROKEN,
        weight=1e6,
        reason="base gives code for it, and head does not",
        measure=lambda change: float(change.case.verdict is Verdict.BROKEN),
    ),
    _SeverityRow(
        name="nondeterministic",
        severity=Severity.WRONG_RESULT,
        weight=6e4,
        reason="head disagrees with itself: one of its results may be wrong",
        measure=lambda change: float("head" in change.case.nondeterministic),
    ),
    _SeverityRow(
        name="not-compared",
        severity=Severity.WRONG_RESULT,
        weight=6e4,
        reason="the code was not compared: anything may have changed in it",
        measure=lambda change: float(cases.not_compared(change.case)),
    ),
    _SeverityRow(
        name="fence",
        severity=Severity.WRONG_RESULT,
        weight=5e4,
        reason="a fence was removed, or orders less: a missing one is a race",
        measure=partial(_taken, synchronization.FENCE),
    ),
    _SeverityRow(
        name="barrier",
        severity=Severity.WRONG_RESULT,
        weight=4e4,
        reason="a barrier was removed, or synchronizes less: a missing one is a race",
        measure=partial(_taken, synchronization.BARRIER),
    ),
    _SeverityRow(
        name="signal",
        severity=Severity.WRONG_RESULT,
        weight=4e4,
        reason="arrivals are counted otherwise: a wait may end too early, or never",
        measure=partial(_touched, synchronization.SIGNAL),
    ),
    _SeverityRow(
        name="wait",
        severity=Severity.WRONG_RESULT,
        weight=4e4,
        reason="a wait was removed, or leaves more unfinished: what it waits for may not be there",
        measure=partial(_taken, synchronization.WAIT),
    ),
    _SeverityRow(
        name="atomic",
        severity=Severity.WRONG_RESULT,
        weight=4e4,
        reason="an atomic operation changed: ordering and results hang on it",
        measure=partial(_touched, _ATOMIC),
    ),
    _SeverityRow(
        name="rounding",
        severity=Severity.WRONG_RESULT,
        weight=3e4,
        reason="rounding or fast-math differs: results differ in the last bits or worse",
        measure=partial(_touched, _ROUNDING),
    ),
    _SeverityRow(
        name="reduction-order",
        severity=Severity.WRONG_RESULT,
        weight=2e4,
        reason="a reduction combines in another order: floating-point results differ",
        measure=partial(_touched, _REDUCE),
    ),
    _SeverityRow(
        name="spills",
        severity=Severity.RESOURCES,
        weight=4e3,
        reason="registers spill to memory, paid for at each use",
        measure=partial(_grew, statistics.facts_of("spills", "scratch memory")),
    ),
    _SeverityRow(
        name="occupancy",
        severity=Severity.RESOURCES,
        weight=3e3,
        reason="fewer warps fit on a multiprocessor: less latency is hidden",
        measure=_occupancy_fell,
    ),
    _SeverityRow(
        name="shared-memory",
        severity=Severity.RESOURCES,
        weight=2e3,
        reason="more shared memory: fewer blocks fit, or the launch is refused",
        measure=partial(_grew, statistics.facts_of("shared memory", "TMEM columns")),
    ),
    _SeverityRow(
        name="registers",
        severity=Severity.RESOURCES,
        weight=1e3,
        reason="more registers: nearer to spills and lower occupancy",
        measure=partial(_grew, statistics.facts_of("registers", "VGPRs", "AGPRs")),
    ),
    _SeverityRow(
        name="pipeline",
        severity=Severity.RESOURCES,
        weight=1.5e3,
        reason="fewer asynchronous copies or a shallower pipeline: loads are waited for",
        measure=partial(
            _fell, ("pipeline_stages", "ptx.async_copy", "ptx.tma", "ttgir.async_copy", "amdgcn.async_copy")
        ),
    ),
    _SeverityRow(
        name="matrix-unit",
        severity=Severity.LOOP,
        weight=800,
        reason="matrix instructions differ: most of the time of a matmul is there",
        measure=partial(_in_loops, _MATMUL),
    ),
    _SeverityRow(
        name="loop-layouts",
        severity=Severity.LOOP,
        weight=500,
        reason="data is moved between layouts inside a loop",
        measure=partial(_in_loops, re.compile("|".join(_MOVE_OVERHEAD))),
    ),
    _SeverityRow(
        name="narrower-access",
        severity=Severity.LOOP,
        weight=400,
        reason="fewer wide memory accesses: more instructions for the same bytes",
        measure=partial(
            _fell,
            (
                "ptx.load_global_128",
                "ptx.store_global_128",
                "ptx.load_shared_128",
                "ptx.store_shared_128",
                "amdgcn.load_global_128",
                "amdgcn.store_global_128",
                "amdgcn.load_shared_128",
            ),
        ),
    ),
    _SeverityRow(
        name="loop-edit",
        severity=Severity.LOOP,
        weight=200,
        reason="the edit is inside a loop, whose lines run most often",
        measure=partial(_in_loops, _ANY),
    ),
    _SeverityRow(
        name="synchronization",
        severity=Severity.OTHER,
        weight=45,
        reason="a fence, a barrier or a wait was added: it costs time",
        measure=_added,
    ),
    _SeverityRow(
        name="instruction-mix",
        severity=Severity.OTHER,
        weight=100,
        reason="the assembly has other numbers of instructions by class",
        measure=_mix,
    ),
    _SeverityRow(
        name="launch",
        severity=Severity.OTHER,
        weight=50,
        reason="the launch passes something else to the same code",
        measure=lambda change: float(any(f.kind is FindingKind.LAUNCH_DIFFERS for f in change.case.findings)),
    ),
    _SeverityRow(
        name="motion",
        severity=Severity.MOTION,
        weight=1,
        reason="the same operations in another order or with other operands",
        measure=_same_multiset,
    ),
)
"""The order is that of the classes. Reasons are shown with each group."""


def gravity(ranked: Ranked | CaseSummary) -> tuple[int, float]:
    """The graver of two is the larger: by its class, then by its score."""
    return class_gravity(ranked.severity), ranked.score


def class_gravity(name: str) -> int:
    """The number of a class of severity, by its name."""
    return -list(Severity).index(Severity(name))


def rank(case: Case, edit: Edit | None) -> Ranked:
    """Severity of one case by its own edit and facts."""
    if case.verdict is Verdict.ABSORBED:
        return Ranked(
            severity=Severity.ABSORBED, score=0.0, reasons=("IR differs, the machine code is the same",)
        )
    found = measures(case, edit)
    held = [(row, found[row.name]) for row in TABLE if row.name in found]
    real = [(row, measure) for row, measure in held if row.severity is not Severity.MOTION]
    if (
        real
        and held[-1][0].severity is Severity.MOTION
        and real[0][0].severity in (Severity.LOOP, Severity.OTHER)
    ):
        real = [(row, measure) for row, measure in real if row.name != "loop-edit"]
    used = real or held
    return Ranked(
        severity=used[0][0].severity if used else Severity.OTHER,
        score=round(sum(row.weight * measure for row, measure in used), 3),
        reasons=tuple(f"{row.name}: {row.reason}" for row, _ in used),
    )


def measures(case: Case, edit: Edit | None) -> dict[str, float]:
    """The rows of the table that hold for one case, with how far: above 0 and at most 1."""
    change = _Change(case=case, edit=edit)
    return {row.name: measure for row in TABLE if (measure := row.measure(change)) > 0}
