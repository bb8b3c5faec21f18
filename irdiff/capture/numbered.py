"""Numbered launches of one kernel, matched between base and head by what they are, not by place. Pure.

A label that launches a kernel several times, as an autotuner does for its configs, numbers the launches in
their order: `matmul:fp16/kernel#2`. A config that is added, removed or moved gives others another number.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from irdiff.model import Launch

_NUMBERED = re.compile(r"#\d+$")
_AT_BASE = "-at-base"
"""Behind the id of a launch that head has no more, where head gave its id to another one."""


def names(base: Iterable[Launch], head: Iterable[Launch]) -> dict[str, str]:
    """The id that each numbered launch of base has in the comparison, by its own; of one workload and target.

    No two launches have one id. A partner's id is that of head. Matched are first launches whose input
    digests are equal, which are one launch, then those that were specialized alike, then those of one id.
    """
    ours, theirs = _by_kernel(base), _by_kernel(head)
    found: dict[str, str] = {}
    for key in ours.keys() & theirs.keys():
        rows = (*ours[key], *theirs[key])
        if any(_NUMBERED.search(row.id) for row in rows):
            found.update(_matched(ours[key], theirs[key]))
    return found


def _by_kernel(launches: Iterable[Launch]) -> Mapping[tuple[str, str], list[Launch]]:
    rows: dict[tuple[str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        rows[launch.label, launch.kernel].append(launch)
    return rows


def _matched(base: Sequence[Launch], head: Sequence[Launch]) -> dict[str, str]:
    found = greedily(
        base,
        head,
        lambda row: row.digest and (row.digest, row.id),
        lambda row: row.digest,
        lambda row: (specialization(row), row.id),
        specialization,
        lambda row: row.id,
    )
    taken = set(found.values())
    alone = (launch.id for launch in base if launch.id not in found)
    return {**found, **{name: name + _AT_BASE for name in alone if name in taken}}


def greedily(
    base: Sequence[Launch], head: Sequence[Launch], *keys: Callable[[Launch], Hashable]
) -> dict[str, str]:
    """Id at base → id at head of launches with the same key, in order; by the first key first, each once. A
    key that is false matches nothing.
    """
    found: dict[str, str] = {}
    for key in keys:
        free: dict[Hashable, list[str]] = defaultdict(list)
        taken = set(found.values())
        for launch in head:
            if launch.id not in taken:
                free[key(launch)].append(launch.id)
        for launch in base:
            same = free[key(launch)] if key(launch) and launch.id not in found else []
            if same:
                found[launch.id] = same.pop(0)
    return found


def specialization(launch: Launch) -> tuple[tuple[tuple[str, str], ...], ...]:
    """What the launch tells the compiler beside the kernel."""
    rows = (launch.signature, launch.constexprs, launch.attributes, launch.options)
    return tuple(tuple(sorted(row.items())) for row in rows)
