"""The one table of statistics: what is counted of a compiled kernel, in which unit, and which way is better.

Reports, history, the gate and the ranking read it. A new figure is a row here and a reader that gives the
facts the row names. What costs most comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from irdiff.model import Fact


class Better(StrEnum):
    MORE = "more"
    LESS = "less"
    NEITHER = "neither"
    """It describes: a reader sees that it moved, and it makes nothing worse."""


@dataclass(frozen=True)
class Statistic:
    name: str
    """As reports say it. Two backends may measure the same thing in different units."""
    unit: str
    better: Better
    backend: str
    """Of the targets that have it, as Triton names it."""
    facts: tuple[str, ...]
    """The facts that add up to it."""
    source: str
    """Where its facts are read from."""
    grave: bool = False
    """Whether getting worse is worth an issue without being timed."""

    def of(self, facts: Mapping[str, Fact]) -> float | None:
        """Its value on one side; None where the facts do not say."""
        found = [value for name in self.facts if isinstance(value := facts.get(name), (int, float))]
        return float(sum(found)) if found else None

    def worsened(self, base: float, head: float) -> bool:
        return head > base if self.better is Better.LESS else self.better is Better.MORE and head < base


_NVIDIA, _AMD = "cuda", "hip"
_LOG, _CUBIN, _NOTES = "ptxas -v", "attributes of the cubin", "notes of the code object"
_LIMITS, _TEXT = "resources and the limits of the target", "the text of the stage"
_METADATA, _ELF = "Triton's metadata", "sections that execute"
_LESS, _MORE, _NEITHER = Better.LESS, Better.MORE, Better.NEITHER
# fmt: off
STATISTICS: tuple[Statistic, ...] = (
    Statistic("spills", "B", _LESS, _NVIDIA, ("spill_store_bytes", "spill_load_bytes"), _LOG, grave=True),
    Statistic("spills", "registers", _LESS, _AMD, ("vgpr_spills", "sgpr_spills"), _NOTES, grave=True),
    Statistic("scratch memory", "B", _LESS, _AMD, ("scratch_bytes",), _NOTES, grave=True),
    Statistic("stack", "B", _LESS, _NVIDIA, ("stack_bytes",), _LOG, grave=True),
    Statistic("occupancy", "warps an SM", _MORE, _NVIDIA, ("warps_per_multiprocessor",), _LIMITS, grave=True),
    Statistic("occupancy", "waves a SIMD", _MORE, _AMD, ("waves_per_simd",), _LIMITS, grave=True),
    Statistic("blocks an SM", "", _NEITHER, _NVIDIA, ("blocks_per_multiprocessor",), _LIMITS),
    Statistic("work-groups a compute unit", "", _NEITHER, _AMD, ("workgroups_per_compute_unit",), _LIMITS),
    Statistic("shared memory", "B", _LESS, _NVIDIA, ("shared_bytes",), _METADATA),
    Statistic("shared memory", "B", _LESS, _AMD, ("shared_bytes", "lds_bytes"), _METADATA),
    Statistic("registers", "", _LESS, _NVIDIA, ("registers",), _CUBIN),
    Statistic("VGPRs", "", _LESS, _AMD, ("vgprs",), _NOTES),
    Statistic("AGPRs", "", _NEITHER, _AMD, ("agprs",), _NOTES),
    Statistic("SGPRs", "", _NEITHER, _AMD, ("sgprs",), _NOTES),
    Statistic("TMEM columns", "", _LESS, _NVIDIA, ("tmem_columns",), _METADATA),
    Statistic("barriers", "", _NEITHER, _NVIDIA, ("barriers",), _CUBIN),
    Statistic("instructions", "", _LESS, _NVIDIA, ("ptx.total",), _TEXT),
    Statistic("instructions", "", _LESS, _AMD, ("amdgcn.total",), _TEXT),
    Statistic("code size", "B", _LESS, _NVIDIA, ("code_bytes",), _ELF),
    Statistic("code size", "B", _LESS, _AMD, ("code_bytes",), _ELF),
)
# fmt: on
_LIMITS_OF_A_LAUNCH = {"shared_bytes": "shared_memory_bytes", "lds_bytes": "shared_memory_bytes"}
"""By a fact of a kernel, the fact of its target that it cannot exceed: the driver refuses the launch."""
COMPILE_TIME = Statistic("compile time", "ms", _LESS, "", (), "the history of each case")
"""Of no single run, as it depends on the machine: a history says where it left a case's own noise."""
NAMES = tuple(dict.fromkeys(row.name for row in STATISTICS))


def of_backend(backend: str) -> tuple[Statistic, ...]:
    """The statistics of a backend's targets; of one that is not known, those whose facts are of any."""
    rows = tuple(row for row in STATISTICS if row.backend == backend)
    return rows or tuple({row.facts: row for row in STATISTICS}.values())


def bound_alone(fact: str, target: Mapping[str, Fact]) -> float | None:
    """What a kernel without a base may have of a fact at most: nothing of what costs without being of use
    (spills, scratch memory), and else what the target has; None where there is no such bound.
    """
    if any(fact in row.facts and row.grave and row.better is Better.LESS for row in STATISTICS):
        return 0.0
    limit = target.get(_LIMITS_OF_A_LAUNCH.get(fact, ""))
    return float(limit) if isinstance(limit, (int, float)) else None


def facts_of(*names: str) -> tuple[str, ...]:
    """The facts of the statistics with these names, on every backend, in the table's order."""
    rows = [row for row in STATISTICS if row.name in names]
    return tuple(dict.fromkeys(fact for row in rows for fact in row.facts))


FACTS = facts_of(*NAMES)
"""Every fact that a statistic is made from, in the order of the table."""
GRAVE = tuple(row for row in STATISTICS if row.grave)


def named(name: str) -> tuple[Statistic, ...]:
    """One for each fact of the statistics with this name, or of the fact with this name: less is better."""
    rows = [row for row in STATISTICS if row.name == name and row.better is not Better.NEITHER]
    found = [replace(row, name=fact, facts=(fact,)) for row in rows for fact in row.facts]
    return tuple(found) or (Statistic(name, "", Better.LESS, "", (name,), "a fact"),)
