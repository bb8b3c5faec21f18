"""What Dask adds: `python -m tests.programs.bench_cluster [--workers 4] [--tasks 40000] [--case PATTERN …]`.

Of processes on this machine, three things. The wall and processor time of one comparison with an empty store,
by one process with as many compilers as there are workers, before and after the same by the cluster: twice,
since its workers have to start their compilers for the first one. What scheduler and workers take of a core
while they wait. And the rate at which trivial tasks go through the scheduler and back, as batches do.
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
from irdiff.cluster.dask_cluster import DaskCluster
from irdiff.cluster.on_worker import Batch
from tests import dask_machines
from tests.dask_machines import Machines
from tests.programs.bench import fresh_cache

COMPARE = ("compare", "triton==3.8.0", "triton==3.9.0", "--tier", "gate", "--no-recheck", "--no-attribute")

AS_DASK = {
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "True",
    "DASK_DISTRIBUTED__ADMIN__TICK__INTERVAL": "20ms",
}
"""Its defaults, which the documentation says to change."""
IDLE_S = 20


def trivial(_: Batch) -> str:
    """As little as a batch can be."""
    return ""


@dataclass(frozen=True, kw_only=True)
class Cost:
    wall_s: float
    cpu_s: float

    def __str__(self) -> str:
        return f"{self.wall_s:.1f} s wall, {self.cpu_s:.1f} s of CPU time"


def compared(words: list[str], cache: Path, jobs: int) -> Cost:
    """What a comparison with an empty store costs, with what the cluster does for it meanwhile."""
    shutil.rmtree(cache / "results", ignore_errors=True)
    begin, before = time.monotonic(), tree_cpu_s()
    done = subprocess.run(
        [sys.executable, "-m", "irdiff", *COMPARE, *words],
        env={**os.environ, "IRDIFF_CACHE": str(cache), "IRDIFF_JOBS": str(jobs)},
        check=False,
        capture_output=True,
        text=True,
    )
    if done.returncode or "made here instead" in done.stdout:
        sys.exit(f"irdiff compare {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return Cost(wall_s=time.monotonic() - begin, cpu_s=tree_cpu_s() - before)


def tree_cpu_s() -> float:
    """Of all processes that descend from this one, those that have ended too: workers outlive a comparison."""
    rows = {int(path.name): fields for path in Path("/proc").glob("[0-9]*") if (fields := stat_of(path))}
    below = {os.getpid()}
    while found := {pid for pid, fields in rows.items() if int(fields[1]) in below} - below:
        below |= found
    ticks = sum(int(field) for pid in below & rows.keys() for field in rows[pid][11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def stat_of(process: Path) -> list[str]:
    """From its state on (proc(5)); nothing for one that is gone."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def overhead(workers: int, words: list[str]) -> None:
    cache = fresh_cache(config.load().cache)
    one = ["--case", "elementwise/vector_add", "--target", "sm_90", "--target", "gfx942"]
    compared(one, cache, workers)  # files of both toolchains come into memory
    alone = [compared(words, cache, workers)]
    with dask(cache, workers) as machines:
        through = [*words, "--cluster", machines.url]
        first, second = (compared(through, cache, workers) for _ in range(2))
    alone.append(compared(words, cache, workers))
    for cost in alone:
        print(f"one process, {workers} compilers: {cost}")
    wall_s = sum(cost.wall_s for cost in alone) / len(alone)
    cpu_s = sum(cost.cpu_s for cost in alone) / len(alone)
    for name, cost in {"that just started": first, "that have compilers": second}.items():
        ratios = f"{cost.wall_s / wall_s:.2f} × and {cost.cpu_s / cpu_s:.2f} ×"
        print(f"scheduler and {workers} workers {name}: {cost}: {ratios}")
    shutil.rmtree(cache)


def idle(workers: int) -> None:
    for name, environment in {"as Dask starts them": AS_DASK, "as documented": {}}.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            dask_machines.machines(Path(folder, "dask"), workers, environment=environment),
        ):
            time.sleep(IDLE_S)  # what they do when they start has ended
            before = tree_cpu_s()
            time.sleep(IDLE_S)
            share = (tree_cpu_s() - before) / IDLE_S
        print(f"scheduler and {workers} workers that wait, {name}: {share:.1%} of a core")


def rate(workers: int, tasks: int) -> None:
    with tempfile.TemporaryDirectory() as folder, dask(Path(folder), workers) as machines:
        batches = [cast(Batch, _Named(name=str(number))) for number in range(tasks)]
        begin = time.monotonic()
        with closing(DaskCluster(machines.url)) as cluster:
            count = sum(map(len, cluster.work(trivial, batches)))
            wall_s = time.monotonic() - begin
    print(f"{count} of {tasks} trivial tasks in {wall_s:.1f} s: {tasks / wall_s:.0f} a second")


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
    idle(options.workers)
    rate(options.workers, options.tasks)


if __name__ == "__main__":
    main()
