"""`--case` as users type it: whole names for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irdiff import case_ids
from irdiff.compile import corpus_check
from irdiff.config import Config
from irdiff.model import Target, Toolchain
from irdiff.parallel import Report
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

Meant = Mapping[str, tuple[str, ...]]
"""By each pattern as it was typed, patterns with whole names."""


def of_sides(
    patterns: Sequence[str],
    sides: Iterable[Side],
    targets: Sequence[Target],
    config: Config,
    report: Report,
    *,
    warm: Workers | None = None,
) -> Meant:
    """With processes that stay, where they are given. Raises UsageError for a pattern that means nothing on
    either side.
    """
    if not patterns:
        return {}
    found = {(side.toolchain.digest, side.corpus.digest): side for side in sides}

    def launches_of(workloads: Sequence[str]) -> Iterator[str]:
        for side in found.values():
            yield from _launches(side, workloads, targets, config, report, warm)

    names = [name for side in found.values() for name in side.corpus.workloads]
    return case_ids.completed(patterns, names, launches_of, [target.name for target in targets])


def _launches(
    side: Side,
    workloads: Sequence[str],
    targets: Sequence[Target],
    config: Config,
    report: Report,
    warm: Workers | None,
) -> Iterable[str]:
    """Names of launches. They are hardly ever others for another target."""
    origin = side.substitute.origin if side.substitute else side.toolchain
    if not isinstance(origin, Toolchain):
        return (case.id.rpartition("@")[0] for case in origin.run.cases if case.workload in workloads)
    rows = corpus_check.captured(origin, side.corpus, targets[:1], workloads, config, report, warm=warm)
    return [row.id for row in rows]


def flat(meant: Meant) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain(*meant.values())))
