"""The step `capture`: finds what each workload launches for each target on both sides, and matches launches
into cases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from irdiff import case_ids
from irdiff.capture import kernel_sources, pairing, program_failures, renames
from irdiff.capture.catalog import NOTHING, Catalog
from irdiff.capture.pairing import CapturedWorkload
from irdiff.capture.program_failures import ProgramFailure
from irdiff.errors import NothingComparedError
from irdiff.model import Options, Pair, Sides, Target
from irdiff.parallel import Progress, Report, in_parallel
from irdiff.store import key_of

if TYPE_CHECKING:
    from irdiff.resolve.sides import Side

Place = tuple[str, Target]
"""Workload and target."""
Capture = Callable[["Side", str, Target], Catalog]


def places_of_shard(sides: Sides[Side], targets: Sequence[Target], options: Options) -> list[Place]:
    """Takes every n-th of the places. The workloads that only one side has stay together, in the last
    shard.
    """
    (number, total), (both, alone) = options.shard, _places(sides, targets, options)
    return both[number - 1 :: total] + (alone if number == total else [])


def cut_from(sides: Sides[Side], targets: Sequence[Target], options: Options) -> str:
    """Returns a digest on which all shards of one comparison agree without a compiler; empty without
    shards.
    """
    if options.shard == (1, 1):
        return ""
    both_and_alone = _places(sides, targets, options)
    return key_of([f"{workload}@{target.name}" for places in both_and_alone for workload, target in places])


def _places(
    sides: Sides[Side], targets: Sequence[Target], options: Options
) -> tuple[list[Place], list[Place]]:
    """Returns places of workloads that both sides have, and of those that one side has: these may have been
    moved, and are matched with one another.
    """
    ours, theirs = (set(side.corpus.workloads) for side in sides)
    both, alone = (
        case_ids.places(options.cases, sorted(names), targets) for names in (ours & theirs, ours ^ theirs)
    )
    return both, alone


def capture(
    places: Sequence[Place], sides: Sides[Side], capture_one: Capture, jobs: int, report: Report
) -> list[CapturedWorkload]:
    parts = [(number, which) for number in range(len(places)) for which in ("base", "head")]

    def catalog_of(part: tuple[int, str]) -> tuple[tuple[int, str], Catalog]:
        number, which = part
        workload, target = places[number]
        side = sides.of(which)
        if workload not in side.corpus.workloads:
            return part, NOTHING
        catalog = capture_one(side, workload, target)
        if case_ids.is_program(workload):
            _say_failed(workload, catalog, f"at {which} on {target.name}", reported, report)
        return part, catalog

    reported: set[ProgramFailure] = set()
    catalogs = dict(in_parallel(catalog_of, parts, jobs, "capture", report))
    return [
        CapturedWorkload(
            workload=workload,
            target=target,
            catalogs=Sides(base=catalogs[number, "base"], head=catalogs[number, "head"]),
        )
        for number, (workload, target) in enumerate(places)
    ]


def _say_failed(
    workload: str, catalog: Catalog, where: str, reported: set[ProgramFailure], report: Report
) -> None:
    """Reports at once, and not when the program has failed on every side and target."""
    for each in catalog.failures:
        why = program_failures.of(each.failure, workload)
        if each.expected and why not in reported:
            reported.add(why)
            words = f"{why.program} fails {where}: {why.reason}"
            report(Progress(phase="capture", done=0, total=0, detail="", attention=words))


def matched(captured: Sequence[CapturedWorkload], sides: Sides[Side], options: Options) -> list[Pair]:
    """Follows renamed kernels. Raises NothingComparedError if nothing was selected."""
    pairs = pairing.pairs(captured, options)
    if not pairs and options.shard == (1, 1):
        raise _nothing_selected(options)
    base, head = (side.corpus for side in sides)
    if base.digest != head.digest:
        pairs = renames.join(
            pairs,
            pairing.entries(captured),
            lambda launch: kernel_sources.source_of(base, launch),
            lambda launch: kernel_sources.source_of(head, launch),
        )
    return sorted(pairing.in_order(pairs), key=lambda pair: pair.id)


def _nothing_selected(options: Options) -> NothingComparedError:
    tiers = f" of tier {', '.join(options.tiers)}" if options.tiers else ""
    if not options.cases:
        message = f"nothing was compared: the corpus has no case{tiers} for these targets"
        return NothingComparedError(message, hint="see `irdiff corpus list`")
    workload = case_ids.parse(options.cases[0]).workload
    return NothingComparedError(
        f"nothing was compared: no case{tiers} matches {' '.join(options.cases[:8])}",
        hint=f"see what there is: irdiff corpus list --case '{workload or '*'}'",
    )
