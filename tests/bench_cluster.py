"""What Dask adds: `python -m tests.bench_cluster [--workers 4] [--tasks 40000] [--case PATTERN …]`.

Two figures, of processes on this machine. The wall and processor time of one comparison with an empty store, by
one process with as many compilers as there are workers, and by the cluster. And the rate at which trivial tasks
go through the scheduler and back, submitted as batches are.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, as_completed
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from irdiff import config
from irdiff.cluster.batches import Batch, Worked
from irdiff.cluster.client import DaskCluster
from tests.bench import fresh_cache

ROOT = Path(__file__).parent.parent
COMPARE = ("compare", "triton==3.8.0", "triton==3.9.0", "--tier", "gate", "--no-recheck", "--no-attribute")


def trivial(batch: Batch) -> Worked:
    """As little as a batch can be."""
    return Worked(name=batch.name, cases=0, refused="", wall_s=0.0)


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def cluster(workers: int, cache: Path) -> Iterator[str]:
    """The address of a scheduler with this many workers, each with one compiler."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"tcp://127.0.0.1:{port}"
    environment = {**os.environ, "IRDIFF_JOBS": "1", "IRDIFF_CACHE": str(cache), "PYTHONPATH": str(ROOT)}
    scheduler = ["-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port)]
    worker = ["-m", "distributed.cli.dask_worker", url, "--nthreads", "1", "--no-nanny"]
    children = []
    try:
        for words in (scheduler, *[worker] * workers):
            children.append(
                subprocess.Popen(
                    [sys.executable, *words, "--no-dashboard"],
                    env=environment,
                    cwd=cache,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            while words is scheduler and not answers(port):
                time.sleep(0.1)
        yield url
    finally:
        for child in reversed(children):
            child.terminate()
        for child in children:
            child.wait()


def connected(url: str, workers: int) -> DaskCluster:
    """Once all workers are there."""
    from distributed import Client

    with Client(cast(Any, url), set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=120)
    return DaskCluster(url)


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


def children_cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def overhead(workers: int, words: list[str]) -> None:
    cache = fresh_cache(config.load().cache)
    compared(words, cache, workers)  # files of both toolchains come into memory
    before = children_cpu_s()
    alone = compared(words, cache, workers)
    alone_cpu_s = children_cpu_s() - before
    before = children_cpu_s()
    with cluster(workers, cache) as url:
        connected(url, workers).close()
        through = compared([*words, "--cluster", url], cache, workers)
    through_cpu_s = children_cpu_s() - before
    print(f"one process, {workers} compilers: {alone:.1f} s wall, {alone_cpu_s:.1f} s of CPU time")
    print(
        f"scheduler and {workers} workers: {through:.1f} s wall, {through_cpu_s:.1f} s of CPU time: "
        f"{through / alone:.2f} × and {through_cpu_s / alone_cpu_s:.2f} ×"
    )
    shutil.rmtree(cache)


def rate(workers: int, tasks: int) -> None:
    with tempfile.TemporaryDirectory() as folder, cluster(workers, Path(folder)) as url:
        dask = connected(url, workers)
        begin = time.monotonic()
        running: list[Future[Worked]] = [
            dask.submit(trivial, cast(Batch, _Named(name=str(number)))) for number in range(tasks)
        ]
        names = {done.result().name for done in as_completed(running)}
        wall_s = time.monotonic() - begin
        dask.close()
    print(f"{len(names)} of {tasks} trivial tasks in {wall_s:.1f} s: {tasks / wall_s:.0f} a second")


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
