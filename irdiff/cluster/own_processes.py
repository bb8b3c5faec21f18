"""Runs batches in processes of this machine.

irdiff reads, compares and judges in one process, which is slower than four cores compile. So with more cores,
several processes share a comparison. They start new interpreters and compilers, for two seconds each, so
small comparisons and small machines are faster without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as NotInTimeError
from concurrent.futures import as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing

from irdiff import process
from irdiff.cluster import batches
from irdiff.cluster.batches import STALLED_S, Batch
from irdiff.comparison import Comparison
from irdiff.config import Config
from irdiff.parallel import Report

OWN_JOBS = 2
"""Compilers at a time for each process: one for each side."""
_PROCESSES_PER_CORE = 0.75
"""Measured on 16 cores: 8 processes take 92 s, 12 take 82 s, 16 take 79 s. Each takes memory."""
_LEAST_CORES = 8
_LEAST_BATCHES = 16


class OwnProcesses:
    """The processes end with this one."""

    own_jobs = OWN_JOBS

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool = process.pool(count)

    def work(self, work: Callable[[Batch], str], queued: Sequence[Batch]) -> Iterator[list[str]]:
        futures = [self._pool.submit(work, batch) for batch in queued]
        try:
            for future in as_completed(futures, timeout=STALLED_S):
                yield [future.result()]
        except (BrokenProcessPool, NotInTimeError):
            return

    def workers(self) -> int:
        return self._count

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)


def fill(comparison: Comparison, config: Config, report: Report) -> tuple[str, ...]:
    """Has processes of this machine make what a comparison needs, where that is faster; returns notes of what
    they did not make.

    A process checks one case of each change group of its batch for determinism. The representative of a group
    of all batches is among these, so the comparison finds its answer in the cache.
    """
    count = _count(comparison, config)
    if not count:
        return ()
    with closing(OwnProcesses(count)) as processes:
        return batches.fill(comparison, config, processes, report)


def _count(comparison: Comparison, config: Config) -> int:
    """Returns 0 if one process should do everything: if results are not kept, or if each process would run
    the launching program again.
    """
    is_kept = (
        comparison.options.use_cache and comparison.options.shard == (1, 1) and config.shared_store is None
    )
    is_traced_once = all(side.corpus.self_contained for side in comparison.sides)
    if not is_kept or not is_traced_once or config.jobs < _LEAST_CORES:
        return 0
    return int(config.jobs * _PROCESSES_PER_CORE) if len(batches.parts(comparison)) >= _LEAST_BATCHES else 0
