"""Pairs the launches of both sides into cases. A failure stands for the launches that it prevented. Pure.

A workload that does not load (`workload:*`) stands for everything that the other side launches of it, and a
label that the frontend does not take for each of the kernels that the other side launches under it: those are
launched on one side and fail on the other. Taken as missing they would read as removed or added.

A label that launches a kernel several times, as an autotuner does for its configs, numbers the launches in
their order: `matmul:fp16/kernel#2`. A config that is added, removed or moved gives others another number, so
numbered launches are first matched by what they are.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from irdiff import case_ids
from irdiff.capture.catalog import Catalog
from irdiff.model import CaptureFailure, Launch, Options, Pair, Sides, Target

Row = Launch | CaptureFailure


@dataclass(frozen=True, kw_only=True)
class CapturedWorkload:
    """What one workload launches for one target, on both sides."""

    workload: str
    target: Target
    catalogs: Sides[Catalog]


def pairs(captured: Iterable[CapturedWorkload], options: Options) -> list[Pair]:
    """Launches of both sides with the same id and target, those of one side only, and those that failed.

    A launch that is declared as not meant for a target is no case: `irdiff corpus check` looks at those.
    """
    found = (pair for row in captured for pair in _in_order(list(_pairs(row, options))))
    return sorted(found, key=lambda pair: pair.id)


def _in_order(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Marks the fewest pairs whose moved calls explain that both sides call in different orders."""
    ours, theirs = (
        [name for _, _, name in sorted(row for pair in pairs for row in _calls(pair, side))]
        for side in ("base", "head")
    )
    moved: set[str] = set()
    for tag, *places in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            moved.update(ours[places[0] : places[1]], theirs[places[2] : places[3]])
    return (replace(pair, moved=pair.id in moved) for pair in pairs)


def _calls(pair: Pair, side: str) -> Iterator[tuple[str, int, str]]:
    """The calls of a launch that both sides have: the entry's label, the place there, the pair's id."""
    launch = pair.base if side == "base" else pair.head
    if isinstance(launch, Launch) and isinstance(pair.base, Launch) and isinstance(pair.head, Launch):
        yield from ((launch.label, place, pair.id) for place in launch.places)


def _pairs(row: CapturedWorkload, options: Options) -> Iterator[Pair]:
    base, head = row.catalogs
    supported = row.catalogs.map(lambda catalog: catalog.supported)
    ours: list[Row] = [*base.launches, *base.failures]
    for pair in match(ours, [*head.launches, *head.failures], row.target, supported):
        rows = [side for side in (pair.head, pair.base) if side]
        tier = next((side.tier for side in rows if isinstance(side, Launch)), None)
        wanted = not options.tiers or tier is None or tier in options.tiers
        if wanted and case_ids.selects(options.cases, pair.id) and any(side.expected for side in rows):
            yield pair
    if not any(supported):
        yield unsupported(row.workload, row.target)


def unsupported(workload: str, target: Target) -> Pair:
    """Stands for all launches of a workload where neither toolchain has the target's backend."""
    neither = Sides(base=False, head=False)
    return Pair(launch_id=case_ids.whole(workload), target=target, base=None, head=None, supported=neither)


def match(base: Iterable[Row], head: Iterable[Row], target: Target, supported: Sides[bool]) -> list[Pair]:
    """The launches and failures of one workload for one target, each id once: head's where it is there."""
    ours, theirs = _by_id(base), _by_id(head)
    names = names_of_numbered(_launches(ours), _launches(theirs))
    ours = {names.get(name, name): row for name, row in ours.items()}
    standing = {*_standing_for(theirs, ours), *_standing_for(ours, theirs)}
    return [
        Pair(
            launch_id=name,
            target=target,
            base=_row(name, ours, theirs),
            head=_row(name, theirs, ours),
            supported=supported,
        )
        for name in dict.fromkeys([*ours, *theirs])
        if name not in standing
    ]


def _by_id(rows: Iterable[Row]) -> dict[str, Row]:
    """A failure hides a launch of the same id: the label did not get to its end."""
    found = {row.id: row for row in rows}
    return {**found, **{name: row for name, row in found.items() if isinstance(row, CaptureFailure)}}


def _launches(rows: Mapping[str, Row]) -> list[Launch]:
    return [row for row in rows.values() if isinstance(row, Launch)]


def _standing_for(others: Mapping[str, Row], rows: Mapping[str, Row]) -> set[str]:
    """Ids of failures among `rows` whose place the ids of the other side take."""
    failures = (_failure_over(name, rows) for name in others if name not in rows)
    return {failure.id for failure in failures if failure}


def _row(name: str, rows: Mapping[str, Row], others: Mapping[str, Row]) -> Row | None:
    """The side that came to the launch says whether it was expected to compile."""
    failure = None if name in rows else _failure_over(name, rows)
    return replace(failure, id=name, expected=others[name].expected) if failure else rows.get(name)


def _failure_over(name: str, rows: Mapping[str, Row]) -> CaptureFailure | None:
    """The nearest failure of one side that stands for a name."""
    whole = case_ids.whole(name.partition(":")[0])
    failures = [row for row in rows.values() if isinstance(row, CaptureFailure)]
    over = [row for row in failures if name.startswith(f"{row.id}/") or (row.id == whole and name != whole)]
    return max(over, key=lambda row: len(row.id) if row.id != whole else 0, default=None)


_NUMBERED = re.compile(r"#\d+$")
_AT_BASE = "-at-base"
"""Behind the id of a launch that head has no more, where head gave its id to another one."""


def names_of_numbered(base: Iterable[Launch], head: Iterable[Launch]) -> dict[str, str]:
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


def without_merged(pairs: Sequence[Pair]) -> tuple[list[Pair], list[str]]:
    """The pairs, without those of launches that share the compiled kernel of another launch at head, as where
    a constant became a runtime argument; and the ids of these. They are launched still: nothing is removed.
    """
    compared = [pair for pair in pairs if isinstance(pair.base, Launch) and isinstance(pair.head, Launch)]
    merged = {pair.id for pair in pairs if any(_is_merged(pair, other) for other in compared)}
    return [pair for pair in pairs if pair.id not in merged], sorted(merged)


def compiled_kernels(pairs: Sequence[Pair]) -> Sides[int]:
    """How many distinct inputs each side compiles for the launches that both have; 0 if one is not known."""
    both = [pair for pair in pairs if isinstance(pair.base, Launch) and isinstance(pair.head, Launch)]
    merged = set(without_merged(pairs)[1])
    kept = [*both, *(pair for pair in pairs if pair.id in merged)]

    def count(launches: Iterable[Row | None]) -> int:
        digests = {row.digest for row in launches if isinstance(row, Launch)}
        return 0 if None in digests else len(digests)

    return Sides(base=count(pair.base for pair in kept), head=count(pair.head for pair in kept))


def _is_merged(pair: Pair, other: Pair) -> bool:
    """Whether the launch of one pair at head makes the calls, with the same tensors, of another's at base."""
    alone, shared = pair.base, other.head
    if pair.head is not None or not isinstance(alone, Launch) or not isinstance(shared, Launch):
        return False
    is_kin = (alone.label, alone.kernel, pair.target) == (shared.label, shared.kernel, other.target)
    return is_kin and {*alone.places} <= {*shared.places} and _tensors(alone) == _tensors(shared)


def _tensors(launch: Launch) -> list[tuple[str, str | None, tuple[int, ...] | None]]:
    tensors = (each for each in launch.arguments if each.shape is not None)
    return [(each.name, each.dtype, each.shape) for each in tensors]


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
    """What the launch gives the compiler in addition to the kernel."""
    rows = (launch.signature, launch.constexprs, launch.attributes, launch.options)
    return tuple(tuple(sorted(row.items())) for row in rows)
