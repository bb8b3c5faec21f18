"""Pairs the launches of both sides into cases. A failure stands for the launches that it prevented.

A workload that does not load (`workload:*`) stands for all launches of the other side, and a label that the
frontend rejects for each of the other side's kernels under it: those are launched on one side and fail on the
other. If they counted as missing, they would be called removed or added.

A label that launches a kernel several times, as an autotuner does for its configs, numbers the launches in
their order: `matmul:fp16/kernel#2`. An added, removed or moved config changes other numbers, so numbered
launches are first matched by content.
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

Captured = Launch | CaptureFailure
Entry = tuple[str, str]
"""A workload and a label there."""


@dataclass(frozen=True, kw_only=True)
class CapturedWorkload:
    workload: str
    target: Target
    catalogs: Sides[Catalog]


def pairs(captured: Iterable[CapturedWorkload], options: Options) -> list[Pair]:
    """Includes launches of one side only, and failed ones. A launch that is declared not to support a target
    is no case: `irdiff corpus check` tests those.
    """
    every = (pair for of_workload in captured for pair in _pairs(of_workload, options))
    return sorted(every, key=lambda pair: pair.id)


def entries(captured: Iterable[CapturedWorkload]) -> Sides[frozenset[Entry]]:
    """Returns the workloads and labels that each side has, with or without launches."""
    by_side = Sides(base=set[Entry](), head=set[Entry]())
    for of_workload in captured:
        for catalog, names in zip(of_workload.catalogs, by_side, strict=True):
            names.update((launch.workload, launch.label) for launch in catalog.launches)
            failed = (case_ids.parse(failure.id) for failure in catalog.failures)
            names.update((name.workload, name.entry) for name in failed)
    return by_side.map(frozenset)


def in_order(pairs: Iterable[Pair]) -> Iterator[Pair]:
    """Marks pairs whose launches both sides call in different orders, in each workload and target."""
    by_workload: dict[tuple[str, str, str], list[Pair]] = defaultdict(list)
    for pair in pairs:
        base, head = (case_ids.parse(side.id if side else "").workload for side in (pair.base, pair.head))
        by_workload[base, head, pair.target.name].append(pair)
    for of_workload in by_workload.values():
        yield from _in_order(of_workload)


def _in_order(pairs: Sequence[Pair]) -> Iterator[Pair]:
    """Marks the fewest pairs whose moved calls explain that both sides call in different orders."""
    ours, theirs = (
        [name for _, _, name in sorted(call for pair in pairs for call in _calls(pair, side))]
        for side in ("base", "head")
    )
    moved: set[str] = set()
    for tag, *places in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            moved.update(ours[places[0] : places[1]], theirs[places[2] : places[3]])
    return (replace(pair, moved=pair.id in moved) for pair in pairs)


def _calls(pair: Pair, side: str) -> Iterator[tuple[str, int, str]]:
    """Yields head's label, the place there and the pair's id, for a launch that both sides have. A renamed
    label is the same entry on both sides.
    """
    if isinstance(pair.base, Launch) and isinstance(pair.head, Launch):
        launch = pair.base if side == "base" else pair.head
        yield from ((pair.head.label, place, pair.id) for place in launch.places)


def _pairs(of_workload: CapturedWorkload, options: Options) -> Iterator[Pair]:
    base, head = of_workload.catalogs
    supported = of_workload.catalogs.map(lambda catalog: catalog.supported)
    ours: list[Captured] = [*base.launches, *base.failures]
    for pair in match(ours, [*head.launches, *head.failures], of_workload.target, supported):
        present = [side for side in (pair.head, pair.base) if side]
        tier = next((side.tier for side in present if isinstance(side, Launch)), None)
        wanted = not options.tiers or tier is None or tier in options.tiers
        if wanted and case_ids.selects(options.cases, pair.id) and any(side.expected for side in present):
            yield pair
    if not any(supported):
        yield unsupported(of_workload.workload, of_workload.target)


def unsupported(workload: str, target: Target) -> Pair:
    """Returns one pair in place of a workload if neither toolchain has the target's backend."""
    neither = Sides(base=False, head=False)
    return Pair(launch_id=case_ids.whole(workload), target=target, base=None, head=None, supported=neither)


def match(
    base: Iterable[Captured], head: Iterable[Captured], target: Target, supported: Sides[bool]
) -> list[Pair]:
    """Returns each id once: head's, if head has the launch."""
    ours, theirs = _by_id(base), _by_id(head)
    names = names_of_numbered(_launches(ours), _launches(theirs))
    ours = {names.get(name, name): captured for name, captured in ours.items()}
    standing = {*_standing_for(theirs, ours), *_standing_for(ours, theirs)}
    return [
        Pair(
            launch_id=name,
            target=target,
            base=_of_side(name, ours, theirs),
            head=_of_side(name, theirs, ours),
            supported=supported,
        )
        for name in dict.fromkeys([*ours, *theirs])
        if name not in standing
    ]


def _by_id(captured: Iterable[Captured]) -> dict[str, Captured]:
    """A failure hides a launch of the same id: the label did not get to its end."""
    by_id = {each.id: each for each in captured}
    return {**by_id, **{name: each for name, each in by_id.items() if isinstance(each, CaptureFailure)}}


def _launches(captured: Mapping[str, Captured]) -> list[Launch]:
    return [each for each in captured.values() if isinstance(each, Launch)]


def _standing_for(others: Mapping[str, Captured], captured: Mapping[str, Captured]) -> set[str]:
    """Returns ids of failures among `captured` that the other side's ids replace."""
    failures = (_failure_over(name, captured) for name in others if name not in captured)
    return {failure.id for failure in failures if failure}


def _of_side(name: str, captured: Mapping[str, Captured], others: Mapping[str, Captured]) -> Captured | None:
    """The side that reached the launch says whether it was expected to compile."""
    failure = None if name in captured else _failure_over(name, captured)
    return replace(failure, id=name, expected=others[name].expected) if failure else captured.get(name)


def _failure_over(name: str, captured: Mapping[str, Captured]) -> CaptureFailure | None:
    """Returns the nearest failure that stands for a name."""
    whole = case_ids.whole(name.partition(":")[0])
    failures = [failure for failure in captured.values() if isinstance(failure, CaptureFailure)]
    over = [
        failure
        for failure in failures
        if name.startswith(f"{failure.id}/") or (failure.id == whole and name != whole)
    ]
    return max(over, key=lambda failure: len(failure.id) if failure.id != whole else 0, default=None)


_NUMBERED = re.compile(r"#\d+$")
_AT_BASE = "-at-base"
"""Suffix of the id of a launch that only base has, if head gave its id to another one."""


def names_of_numbered(base: Iterable[Launch], head: Iterable[Launch]) -> dict[str, str]:
    """Returns the id that each numbered launch of base has in the comparison, within one workload and target.

    No two launches share an id, and a partner takes that of head. First those match whose input digests are
    equal, then those with the same specialization, then those with the same id.
    """
    ours, theirs = _by_kernel(base), _by_kernel(head)
    names: dict[str, str] = {}
    for key in ours.keys() & theirs.keys():
        launches = (*ours[key], *theirs[key])
        if any(_NUMBERED.search(launch.id) for launch in launches):
            names.update(_matched(ours[key], theirs[key]))
    return names


def _by_kernel(launches: Iterable[Launch]) -> Mapping[tuple[str, str], list[Launch]]:
    by_kernel: dict[tuple[str, str], list[Launch]] = defaultdict(list)
    for launch in launches:
        by_kernel[launch.label, launch.kernel].append(launch)
    return by_kernel


def _matched(base: Sequence[Launch], head: Sequence[Launch]) -> dict[str, str]:
    pairs = greedily(
        base,
        head,
        lambda launch: launch.digest and (launch.digest, launch.id),
        lambda launch: launch.digest,
        lambda launch: (specialization(launch), launch.id),
        specialization,
        lambda launch: launch.id,
    )
    taken = set(pairs.values())
    alone = (launch.id for launch in base if launch.id not in pairs)
    return {**pairs, **{name: name + _AT_BASE for name in alone if name in taken}}


def without_merged(pairs: Sequence[Pair]) -> tuple[list[Pair], list[str]]:
    """Drops pairs of launches that share another's compiled kernel at head, and returns their ids. This
    happens when a constant becomes a runtime argument. They are launched still: nothing is removed.
    """
    compared = [pair for pair in pairs if isinstance(pair.base, Launch) and isinstance(pair.head, Launch)]
    merged = {pair.id for pair in pairs if any(_is_merged(pair, other) for other in compared)}
    return [pair for pair in pairs if pair.id not in merged], sorted(merged)


def compiled_kernels(pairs: Sequence[Pair]) -> Sides[int]:
    """Counts distinct inputs that each side compiles for the launches that both have; 0 if one is unknown."""
    both = [pair for pair in pairs if isinstance(pair.base, Launch) and isinstance(pair.head, Launch)]
    merged = set(without_merged(pairs)[1])
    kept = [*both, *(pair for pair in pairs if pair.id in merged)]

    def count(launches: Iterable[Captured | None]) -> int:
        digests = {launch.digest for launch in launches if isinstance(launch, Launch)}
        return 0 if None in digests else len(digests)

    return Sides(base=count(pair.base for pair in kept), head=count(pair.head for pair in kept))


def _is_merged(pair: Pair, other: Pair) -> bool:
    """True if the other pair's launch at head makes the calls that both launches make at base."""
    alone, partner, shared = pair.base, other.base, other.head
    if pair.head is not None or not isinstance(alone, Launch):
        return False
    if not isinstance(partner, Launch) or not isinstance(shared, Launch):
        return False
    is_kin = (
        pair.target == other.target
        and _kernel_of(alone) == _kernel_of(partner)
        and (alone.label, alone.kernel) == (shared.label, shared.kernel)
    )
    are_calls_made = {*alone.places, *partner.places} <= {*shared.places}
    return is_kin and are_calls_made and _tensors(alone) == _tensors(shared)


def _kernel_of(launch: Launch) -> tuple[str, ...]:
    return launch.workload, launch.label, launch.kernel, launch.source_path


def _tensors(launch: Launch) -> list[tuple[str, str | None, tuple[int, ...] | None]]:
    tensors = (each for each in launch.arguments if each.shape is not None)
    return [(each.name, each.dtype, each.shape) for each in tensors]


def greedily(
    base: Sequence[Launch], head: Sequence[Launch], *keys: Callable[[Launch], Hashable]
) -> dict[str, str]:
    """Maps ids at base to ids at head of launches with the same key; by the first key first, each once. A
    false key matches nothing.
    """
    pairs: dict[str, str] = {}
    for key in keys:
        free: dict[Hashable, list[str]] = defaultdict(list)
        taken = set(pairs.values())
        for launch in head:
            if launch.id not in taken:
                free[key(launch)].append(launch.id)
        for launch in base:
            same = free[key(launch)] if key(launch) and launch.id not in pairs else []
            if same:
                pairs[launch.id] = same.pop(0)
    return pairs


def specialization(launch: Launch) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Returns everything that a launch gives the compiler in addition to the kernel."""
    parts = (launch.signature, launch.constexprs, launch.attributes, launch.options)
    return tuple(tuple(sorted(part.items())) for part in parts)
