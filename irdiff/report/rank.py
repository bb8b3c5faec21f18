"""Which changed cases a reader should see first. Pure.

Cases are ordered by the one table of severities (`group.severity`), the facts of one case by what they say of
its resources: spills, occupancy limits (registers, shared memory), barriers, instruction mix, size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from irdiff.group import severity
from irdiff.model import Case, Fact, Verdict

_FIRST = (
    "spill_store_bytes",
    "spill_load_bytes",
    "vgpr_spills",
    "sgpr_spills",
    "scratch_bytes",
    "stack_bytes",
    "blocks_per_multiprocessor",
    "workgroups_per_compute_unit",
    "warps_per_multiprocessor",
    "waves_per_simd",
    "shared_bytes",
    "lds_bytes",
    "registers",
    "vgprs",
    "agprs",
    "sgprs",
    "tmem_columns",
    "barriers",
)
_WEIGHTS = {name: 1000.0 / (index + 1) for index, name in enumerate(_FIRST)}
_NOT_SHOWN = ("binary_bytes", "code_bytes")


def moved_facts(base: Mapping[str, Fact], head: Mapping[str, Fact]) -> dict[str, tuple[Fact, Fact]]:
    """The facts that differ, the most telling first, as name → (base, head). A count that is missing is 0."""
    names = [name for name in {**base, **head} if base.get(name, 0) != head.get(name, 0)]
    names.sort(key=lambda name: (-_weight(name, base, head), name))
    return {name: (base.get(name, 0), head.get(name, 0)) for name in names}


def rank(cases: Sequence[Case]) -> list[Case]:
    """The changed cases, the gravest first by the severity of what moved, as groups are ranked."""
    changed = [case for case in cases if case.verdict is Verdict.CHANGED]
    by_name = sorted(changed, key=lambda case: case.id)
    return sorted(by_name, key=lambda case: severity.gravity(severity.rank(case, None)), reverse=True)


def _weight(name: str, base: Mapping[str, Fact], head: Mapping[str, Fact]) -> float:
    before, after = base.get(name, 0), head.get(name, 0)
    if not isinstance(before, (int, float)) or not isinstance(after, (int, float)):
        return 0.5
    relative = abs(after - before) / max(abs(before), abs(after), 1)
    if name in _WEIGHTS:
        return _WEIGHTS[name] * (0.2 + relative)
    return (0.1 if name in _NOT_SHOWN else 10.0) * relative
