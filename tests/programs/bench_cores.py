"""What a comparison costs on more and more cores, under interpreters with torch and without.

    python -m tests.programs.bench_cores PYTHON… [--jobs 1 2 4 8 16] [--target sm_90 …] [--tier gate]

Each interpreter is compared with itself, everything compiled (`--no-cache`), with an empty cache each time.
Prints wall time, processor time, how much of the cores the wall time used, and irdiff's own processor time.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Cost


def measured(python: str, jobs: int, words: list[str]) -> Cost:
    side = f"python:{python}"
    arguments = ["compare", side, side, "--no-cache", "--no-recheck", "--quiet", *words, "--jobs", jobs]
    with tempfile.TemporaryDirectory() as folder:
        done = comparing.irdiff(*arguments, "--out", Path(folder, "run"), cache=Path(folder, "cache"))
    if done.code:
        raise SystemExit(f"irdiff ended with {done.code}:\n{done.stderr[-2000:]}")
    return done.cost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON")
    parser.add_argument("--jobs", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--target", nargs="*", default=[])
    parser.add_argument("--tier", default="gate")
    given = parser.parse_args()
    words = ["--tier", given.tier, *(word for name in given.target for word in ("--target", name))]
    print("| interpreter | jobs | wall | CPU | of the first | efficiency | irdiff's own |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    first: dict[int, Cost] = {}
    for python in given.pythons:
        least: Cost | None = None
        for jobs in given.jobs:
            cost = measured(python, jobs, words)
            least = least or cost
            first.setdefault(jobs, cost)
            ratio = cost.cpu_s / first[jobs].cpu_s
            efficiency = least.wall_s * given.jobs[0] / (cost.wall_s * jobs)
            print(
                f"| {python} | {jobs} | {cost.wall_s:.1f} s | {cost.cpu_s:.0f} s | {ratio:.2f} × "
                f"| {efficiency:.0%} | {cost.own_cpu_s:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
