"""What a comparison costs on more and more cores, under interpreters with torch and without.

    python -m tests.programs.bench_cores PYTHON… [--jobs 1 2 4 8 16] [--target sm_90 …] [--tier gate]

Each interpreter is compared with itself, everything compiled (`--no-cache`), with an empty cache each time.
Prints wall time, processor time, how much of the cores the wall time used, and irdiff's own processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_MEASURED = """
import json, resource, sys, time
from irdiff.cli import main
begin = time.monotonic()
try:
    main()
except SystemExit as error:
    code = error.code
own, theirs = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
used = [row.ru_utime + row.ru_stime for row in (own, theirs)]
print(json.dumps([code, time.monotonic() - begin, *used]), file=sys.stderr)
"""


@dataclass(frozen=True, kw_only=True)
class Cost:
    wall_s: float
    own_s: float
    """Processor time of irdiff's own process."""
    compilers_s: float
    """Processor time of everything that it started."""

    @property
    def cpu_s(self) -> float:
        return self.own_s + self.compilers_s


def measured(python: str, jobs: int, words: list[str]) -> Cost:
    with tempfile.TemporaryDirectory() as folder:
        side = f"python:{python}"
        arguments = ["compare", side, side, "--no-cache", "--no-recheck", "--quiet", *words]
        arguments += ["--jobs", str(jobs), "--out", str(Path(folder, "run"))]
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, *arguments],
            env={**os.environ, "IRDIFF_CACHE": str(Path(folder, "cache"))},
            capture_output=True,
            text=True,
            check=False,
        )
    code, wall_s, own_s, compilers_s = json.loads(done.stderr.splitlines()[-1])
    if code:
        raise SystemExit(f"irdiff ended with {code}:\n{done.stderr[-2000:]}")
    return Cost(wall_s=wall_s, own_s=own_s, compilers_s=compilers_s)


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
                f"| {efficiency:.0%} | {cost.own_s:.1f} s |",
                flush=True,
            )


if __name__ == "__main__":
    main()
