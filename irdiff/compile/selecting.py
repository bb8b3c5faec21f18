"""Expands the patterns of `--case`, as users type them, to full names."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from irdiff import case_ids
from irdiff.compile import corpus_check
from irdiff.config import Config
from irdiff.model import EVERY_LAUNCH, Target, Toolchain
from irdiff.parallel import Report
from irdiff.resolve.sides import Side
from irdiff.worker_client.workers import Workers

ExpandedPatterns = Mapping[str, tuple[str, ...]]
"""By each pattern as typed, patterns with full names."""


def of_sides(
    patterns: Sequence[str],
    sides: Iterable[Side],
    targets: Sequence[Target],
    config: Config,
    report: Report,
    *,
    warm: Workers | None = None,
) -> ExpandedPatterns:
    """Reuses `warm` workers, if given. Raises UsageError for a pattern that matches nothing on either
    side.
    """
    if not patterns:
        return {}
    distinct = {(side.toolchain.digest, side.corpus.digest): side for side in sides}.values()

    def launches_of(workloads: Sequence[str]) -> Iterator[str]:
        """Names launches for the first target: other targets nearly always have the same."""
        for side in distinct:
            origin = side.substitute.origin if side.substitute else side.toolchain
            if isinstance(origin, Toolchain):
                origin_side = replace(side, toolchain=origin)
                wanted = replace(EVERY_LAUNCH, cases=tuple(workloads))
                captured = corpus_check.launches(origin_side, targets[:1], wanted, config, report, warm=warm)
                yield from (launch.id for launch in captured)
            else:
                cases = (case for case in origin.run.cases if case.workload in workloads)
                yield from (case.id.rpartition("@")[0] for case in cases)

    names = [name for side in distinct for name in side.corpus.workloads]
    return case_ids.completed(patterns, names, launches_of, [target.name for target in targets])


def flat(expanded_patterns: ExpandedPatterns) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain(*expanded_patterns.values())))
