"""The statistics of all backends, in one order. Reports, history and the gate read it.

A new figure is a row in `STATISTICS` of its backend and a reader that gives the facts the row names. Rows
are in the order of `Resource`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from irdiff import backends
from irdiff.backends.statistic import Resource, Statistic
from irdiff.model import Fact

STATISTICS = tuple(
    sorted(
        (row for backend in backends.BACKENDS.values() for row in backend.STATISTICS),
        key=lambda row: row.resource,
    )
)
"""Sorted by resource. Those of one resource are sorted by backend, and then as the backend lists them."""
_LIMITS_OF_A_LAUNCH = {"shared_bytes": "shared_memory_bytes", "lds_bytes": "shared_memory_bytes"}
"""By a fact of a kernel, the fact of its target that it cannot exceed: the driver refuses the launch."""
COMPILE_TIME = Statistic(Resource.TIME, "compile time", "ms", (), "the history of each case")
"""Compared in a history only, where it is out of the noise of its case: it depends on the machine."""
NAMES = tuple(dict.fromkeys(row.name for row in STATISTICS))


def of_backend(backend: str) -> tuple[Statistic, ...]:
    """The statistics of a backend's targets; of one that is not known, those whose facts are of any."""
    return backends.of(backend).STATISTICS or tuple(
        {statistic.facts: statistic for statistic in STATISTICS}.values()
    )


def bound_alone(fact: str, target: Mapping[str, Fact]) -> float | None:
    """Returns the greatest value that a new kernel may have: 0 for spills and scratch memory, else what the
    target has. None if there is no such bound.
    """
    if any(fact in statistic.facts and statistic.should_be_none for statistic in STATISTICS):
        return 0.0
    limit = target.get(_LIMITS_OF_A_LAUNCH.get(fact, ""))
    return float(limit) if isinstance(limit, (int, float)) else None


def blocks(facts: Mapping[str, Fact]) -> float | None:
    """Returns how many blocks of a kernel a multiprocessor holds; 0 if the driver refuses the launch."""
    counts = [statistic.of(facts) for statistic in STATISTICS if statistic.resource is Resource.BLOCKS]
    return next((count for count in counts if count is not None), None)


def facts_of(*names: str) -> tuple[str, ...]:
    """The facts of the statistics with these names, on every backend, in the table's order."""
    rows = [statistic for statistic in STATISTICS if statistic.name in names]
    return tuple(dict.fromkeys(fact for statistic in rows for fact in statistic.facts))


FACTS = facts_of(*NAMES)
"""Every fact that a statistic is made from, in the order of the table."""
SPILLS = tuple(row for row in STATISTICS if row.should_be_none)


def named(name: str) -> tuple[Statistic, ...]:
    """One for each fact of the statistics with this name, or of the fact with this name."""
    rows = [statistic for statistic in STATISTICS if statistic.name == name]
    by_fact = {
        fact: replace(statistic, name=fact, facts=(fact,)) for statistic in rows for fact in statistic.facts
    }
    return tuple(by_fact.values()) or (Statistic(Resource.CODE, name, "", (name,), "a fact"),)
