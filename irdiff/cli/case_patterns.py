"""`--case` as users type it: whole names for it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

from irdiff import case_ids
from irdiff.compile import corpus_check
from irdiff.config import Config
from irdiff.model import Target, Toolchain
from irdiff.parallel import Report
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

Source = tuple[Toolchain, Corpus]
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
    origin = side.substitute.origin if side.substitute else side.toolchain
    if isinstance(origin, Toolchain):
        return _captured((origin, side.corpus), workloads, targets, config, report, warm)
    return (case.id.rpartition("@")[0] for case in origin.run.cases if case.workload in workloads)


def of_corpus(
    patterns: Sequence[str], source: Source, targets: Sequence[Target], config: Config, report: Report
) -> tuple[str, ...]:
    """As of a side. Raises UsageError for a pattern that means nothing."""

    def launches_of(workloads: Sequence[str]) -> Iterable[str]:
        return _captured(source, workloads, targets, config, report)

    names = [target.name for target in targets]
    return flat(case_ids.completed(patterns, source[1].workloads, launches_of, names))


def _captured(
    source: Source,
    workloads: Sequence[str],
    targets: Sequence[Target],
    config: Config,
    report: Report,
    warm: Workers | None = None,
) -> Iterable[str]:
    """Names of launches. They are hardly ever others for another target."""
    rows = corpus_check.captured(*source, targets[:1], workloads, config, report, warm=warm)
    return [row.id for row in rows]


def flat(meant: Meant) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain(*meant.values())))
