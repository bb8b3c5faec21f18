"""What a bump of a compiler did over all cases: distributions, then outliers. Pure.

A bump changes thousands of cases a little, so groups of equal edits say less than counts do. Each measure is
read of the facts of a case at base and head; a case whose code is the same counts as the same in all of them.
Quantiles are of the relative change over the compared cases where the measure is known, those that did not
move included.

A case is an *outlier* where registers began to spill, occupancy moved, or a measure moved by at least a tenth
and lies beyond the far fences of its target: three interquartile ranges outside the quartiles (Tukey,
"Exploratory Data Analysis", 1977).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from irdiff.findings import FindingKind
from irdiff.model import COMPARED_VERDICTS, Case, Fact, Run, Verdict
from irdiff.report import families
from irdiff.resolve import tools

MAX_TAIL = 3
_LEAST_OUTLYING = 0.10
_FENCE = 3.0


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One figure of a compiled kernel."""

    name: str
    unit: str
    more_is_better: bool
    read: Callable[[Mapping[str, Fact]], float | None]
    """None where the facts do not tell."""


def _number(*names: str) -> Callable[[Mapping[str, Fact]], float | None]:
    def read(facts: Mapping[str, Fact]) -> float | None:
        found = [value for name in names if isinstance(value := facts.get(name), (int, float))]
        return float(sum(found)) if found else None

    return read


def _registers(facts: Mapping[str, Fact]) -> float | None:
    return _number("registers" if "registers" in facts else "vgprs")(facts)


SPILLS = Measure(
    name="spills",
    unit="bytes; AMD: registers",
    more_is_better=False,
    read=_number("spill_store_bytes", "spill_load_bytes", "vgpr_spills", "sgpr_spills"),
)
OCCUPANCY = Measure(
    name="occupancy",
    unit="warps a multiprocessor; AMD: waves a SIMD",
    more_is_better=True,
    read=_number("warps_per_multiprocessor", "waves_per_simd"),
)
MEASURES = (
    Measure(
        name="instructions",
        unit="of PTX, of AMD's assembly",
        more_is_better=False,
        read=_number("ptx.total", "amdgcn.total"),
    ),
    Measure(name="registers", unit="a thread; AMD: VGPRs", more_is_better=False, read=_registers),
    SPILLS,
    OCCUPANCY,
    Measure(name="code size", unit="bytes", more_is_better=False, read=_number("code_bytes")),
)


@dataclass(frozen=True, kw_only=True)
class MeasuredChange:
    """One measure of one case."""

    case_id: str
    base: float
    head: float

    @property
    def relative(self) -> float:
        """Head's change as a share of base, or of head where base is 0."""
        return (self.head - self.base) / (self.base or abs(self.head) or 1.0)

    @property
    def words(self) -> str:
        percent = f" ({self.relative:+.1%})" if self.base else ""
        return f"{self.base:g} → {self.head:g}{percent}"


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """One measure over some cases."""

    measure: Measure
    better: int
    same: int
    worse: int
    unknown: int
    """Cases whose facts do not tell."""
    quantiles: tuple[float, ...]
    """Relative change: least, 5th, 50th, 95th percentile, greatest; empty where nothing is known."""
    best: tuple[MeasuredChange, ...]
    worst: tuple[MeasuredChange, ...]


@dataclass(frozen=True, kw_only=True)
class BumpPart:
    """The cases of one target, or of one family on one target."""

    name: str
    compared: int
    changed: int
    quiet: int
    """Changed cases whose instructions are the same, and all measures too: only scheduling or register names
    moved."""
    distributions: tuple[Distribution, ...]


@dataclass(frozen=True, kw_only=True)
class Outlier:
    case_id: str
    why: tuple[str, ...]
    worse: bool
    weight: float


@dataclass(frozen=True, kw_only=True)
class Bump:
    whole: BumpPart
    targets: tuple[BumpPart, ...]
    families: tuple[BumpPart, ...]
    """Those in which something moved, by family and target. Their names are like `matmul sm_90`."""
    outliers: tuple[Outlier, ...]
    """The worst first, then those that became better."""
    not_compared: Mapping[str, int]
    """Cases by verdict."""


def is_wanted(run: Run) -> bool:
    """Whether a side is a tool: then the report is that of a bump without being asked for."""
    return any(tools.is_tool(side.spec) for side in (run.base, run.head))


def of_run(run: Run) -> Bump:
    compared = [case for case in run.cases if case.verdict in COMPARED_VERDICTS]
    targets = [target.name for target in run.targets]
    by_target = {name: [case for case in compared if case.target == name] for name in targets}
    names = sorted({families.of(case.workload) for case in compared})
    rows = [
        _part(
            f"{family} {target}", [case for case in by_target[target] if families.of(case.workload) == family]
        )
        for family in names
        for target in targets
    ]
    outliers = [row for name in targets for row in _outliers(by_target[name])]
    verdicts = [case.verdict for case in run.cases if case.verdict not in COMPARED_VERDICTS]
    return Bump(
        whole=_part("all", compared),
        targets=tuple(_part(name, by_target[name]) for name in targets if by_target[name]),
        families=tuple(row for row in rows if any(d.better or d.worse for d in row.distributions)),
        outliers=tuple(sorted(outliers, key=lambda row: (not row.worse, -row.weight, row.case_id))),
        not_compared={name: verdicts.count(name) for name in Verdict if name in verdicts},
    )


def only_scheduled(case: Case) -> bool:
    """Whether only scheduling or register names moved: the same instructions, and the same resources."""
    same = any(finding.kind is FindingKind.SAME_INSTRUCTIONS for finding in case.findings)
    return same and all(
        measure.read(case.facts.base) == measure.read(case.facts.head) for measure in MEASURES
    )


def _part(name: str, cases: Sequence[Case]) -> BumpPart:
    changed = [case for case in cases if case.verdict is Verdict.CHANGED]
    return BumpPart(
        name=name,
        compared=len(cases),
        changed=len(changed),
        quiet=sum(map(only_scheduled, changed)),
        distributions=tuple(_distribution(measure, cases) for measure in MEASURES),
    )


def _distribution(measure: Measure, cases: Sequence[Case]) -> Distribution:
    changes, same, unknown = _changes(measure, cases)
    moved = [change for change in changes if change.base != change.head]
    gains = [change for change in moved if (change.head > change.base) == measure.more_is_better]
    losses = [change for change in moved if change not in gains]
    relative = sorted([*(change.relative for change in changes), *[0.0] * same])
    return Distribution(
        measure=measure,
        better=len(gains),
        same=len(changes) - len(moved) + same,
        worse=len(losses),
        unknown=unknown,
        quantiles=tuple(quantile(relative, q) for q in (0, 0.05, 0.5, 0.95, 1)) if relative else (),
        best=_tail(gains),
        worst=_tail(losses),
    )


def _changes(measure: Measure, cases: Iterable[Case]) -> tuple[list[MeasuredChange], int, int]:
    """The changes of cases whose facts tell them, the number of equal cases, and that of unknown ones."""
    changes, same, unknown = [], 0, 0
    for case in cases:
        if case.verdict is not Verdict.CHANGED:
            same += 1
            continue
        base, head = (measure.read(facts) for facts in case.facts)
        if base is None or head is None:
            unknown += 1
        else:
            changes.append(MeasuredChange(case_id=case.id, base=base, head=head))
    return changes, same, unknown


def _tail(changes: Iterable[MeasuredChange]) -> tuple[MeasuredChange, ...]:
    farthest = sorted(changes, key=lambda c: (-abs(c.relative), -abs(c.head - c.base), c.case_id))
    return tuple(farthest[:MAX_TAIL])


def quantile(ordered: Sequence[float], q: float) -> float:
    """The value at the share `q` of the ordered values, between the two nearest ones in proportion."""
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


# outliers


def _outliers(cases: Sequence[Case]) -> list[Outlier]:
    """The outliers among the cases of one target."""
    found: dict[str, list[tuple[str, bool, float]]] = {}
    for measure in MEASURES:
        changes, same, _ = _changes(measure, cases)
        ordered = sorted([*(change.relative for change in changes), *[0.0] * same])
        for change in changes:
            reason = _reason(measure, change, ordered)
            if reason:
                worse = (change.head > change.base) != measure.more_is_better
                weight = abs(change.relative) * (10 if measure in (SPILLS, OCCUPANCY) else 1)
                found.setdefault(change.case_id, []).append((reason, worse, weight))
    return [
        Outlier(
            case_id=case_id,
            why=tuple(reason for reason, _, _ in rows),
            worse=any(worse for _, worse, _ in rows),
            weight=max(weight for _, _, weight in rows),
        )
        for case_id, rows in found.items()
    ]


def _reason(measure: Measure, change: MeasuredChange, ordered: Sequence[float]) -> str:
    if change.base == change.head:
        return ""
    if measure == SPILLS and not change.base:
        return f"begins to spill: {change.words}"
    if measure == SPILLS and not change.head:
        return f"no longer spills: {change.words}"
    lower, upper = quantile(ordered, 0.25), quantile(ordered, 0.75)
    reach = _FENCE * (upper - lower)
    is_far = not lower - reach <= change.relative <= upper + reach
    if measure == OCCUPANCY or (is_far and abs(change.relative) >= _LEAST_OUTLYING):
        return f"{measure.name} {change.words}"
    return ""
