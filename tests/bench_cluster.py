"""What Dask adds: `python -m tests.bench_cluster [--workers 4] [--tasks 40000] [--case PATTERN …]`.

Two figures, of processes on this machine. The wall and processor time of one comparison with an empty store, by
one process with as many compilers as there are workers, and by the cluster. And the rate at which trivial tasks
go through the scheduler and back, as batches do.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from irdiff import config
from irdiff.cluster.batches import Batch, Worked
from irdiff.cluster.client import DaskCluster
from tests import dask_machines
from tests.bench import children_cpu_s, fresh_cache
from tests.dask_machines import Machines

COMPARE = ("compare", "triton==3.8.0", "triton==3.9.0", "--tier", "gate", "--no-recheck", "--no-attribute")


def trivial(batch: Batch) -> Worked:
    """As little as a batch can be."""
    return Worked(name=batch.name, cases=0, refused="", wall_s=0.0)


def compared(words: list[str], cache: Path, jobs: int) -> float:
    """The wall time of a comparison with an empty store."""
    shutil.rmtree(cache / "store", ignore_errors=True)
    begin = time.monotonic()
    subprocess.run(
        [sys.executable, "-m", "irdiff", *COMPARE, *words],
        env={**os.environ, "IRDIFF_CACHE": str(cache), "IRDIFF_JOBS": str(jobs)},
        check=True,
        capture_output=True,
    )
    return time.monotonic() - begin


def overhead(workers: int, words: list[str]) -> None:
    cache = fresh_cache(config.load().cache)
    compared(words, cache, workers)  # files of both toolchains come into memory
    before = children_cpu_s()
    alone = compared(words, cache, workers)
    alone_cpu_s = children_cpu_s() - before
    before = children_cpu_s()
    with dask(cache, workers) as machines:
        through = compared([*words, "--cluster", machines.url], cache, workers)
    through_cpu_s = children_cpu_s() - before
    print(f"one process, {workers} compilers: {alone:.1f} s wall, {alone_cpu_s:.1f} s of CPU time")
    print(
        f"scheduler and {workers} workers: {through:.1f} s wall, {through_cpu_s:.1f} s of CPU time: "
        f"{through / alone:.2f} × and {through_cpu_s / alone_cpu_s:.2f} ×"
    )
    shutil.rmtree(cache)


def rate(workers: int, tasks: int) -> None:
    with tempfile.TemporaryDirectory() as folder, dask(Path(folder), workers) as machines:
        batches = [cast(Batch, _Named(name=str(number))) for number in range(tasks)]
        begin = time.monotonic()
        with closing(DaskCluster(machines.url)) as cluster:
            names = {worked.name for group in cluster.work(trivial, batches) for worked in group}
            wall_s = time.monotonic() - begin
    print(f"{len(names)} of {tasks} trivial tasks in {wall_s:.1f} s: {tasks / wall_s:.0f} a second")


def dask(cache: Path, workers: int) -> AbstractContextManager[Machines]:
    return dask_machines.machines(cache / "dask", workers, environment={"IRDIFF_CACHE": str(cache)})


@dataclass(frozen=True, kw_only=True)
class _Named:
    """All of a batch that its submission reads."""

    name: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--tasks", type=int, default=40_000)
    parser.add_argument("--case", action="append", default=[])
    options = parser.parse_args()
    overhead(options.workers, [word for pattern in options.case for word in ("--case", pattern)])
    rate(options.workers, options.tasks)


if __name__ == "__main__":
    main()
