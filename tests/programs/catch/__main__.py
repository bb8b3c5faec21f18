"""`python -m tests.programs.catch {run,compare}`."""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import Queue, get_context
from pathlib import Path

from tests.programs.catch.faults import DATA, Fault, read
from tests.programs.catch.planting import LinesOfTests, plant, preload

ROOT = Path(__file__).parents[3]
_own: tuple[Path, LinesOfTests]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.catch", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="plant each fault in a commit")
    running.add_argument("--at", default="HEAD", metavar="COMMIT")
    running.add_argument("--only", nargs="+", default=[""], help="names of faults begin with one of these")
    running.add_argument(
        "--tests", nargs="+", default=["tests/unit", "tests/golden"], help="what may catch them"
    )
    running.add_argument(
        "--lines", type=Path, help="keep in this file which tests run which lines of this commit"
    )
    running.add_argument("--jobs", type=int, default=1, help="how many faults at once")
    running.add_argument("--out", type=Path, default=DATA / "after.tsv")
    comparing = commands.add_parser("compare", help="what is caught before and after")
    comparing.add_argument("before", type=Path, nargs="?", default=DATA / "before.tsv")
    comparing.add_argument("after", type=Path, nargs="?", default=DATA / "after.tsv")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked)
    else:
        sys.exit(compare(asked.before, asked.after))


def run(asked: argparse.Namespace) -> None:
    """Plants the faults of a commit and writes the table, a row a fault as it is known."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # a test reads a store as another user
        tree = Path(folder) / "tree"
        _git("worktree", "add", "--quiet", "--detach", tree, asked.at)
        try:
            preload()
            lines = LinesOfTests(tree, asked.lines or Path(folder) / "lines", asked.tests)
            lines.measure()
            processes = get_context("fork")
            free = processes.Queue()
            for job in range(asked.jobs):
                free.put(shutil.copytree(tree, Path(folder) / str(job), symlinks=True))
            with (
                ProcessPoolExecutor(asked.jobs, processes, _take, (free, lines)) as jobs,
                asked.out.open("w") as opened,
            ):
                print("fault", "kind", "outcome", "test", sep="\t", file=opened)
                for row in jobs.map(_row, _chosen(asked.only)):
                    print(*row, sep="\t", file=opened, flush=True)
        finally:
            _git("worktree", "remove", "--force", tree)
    summarize(asked.out)


def _git(*arguments: str | Path) -> None:
    subprocess.run(["git", *arguments], cwd=ROOT, check=True)


def _chosen(only: list[str]) -> list[Fault]:
    return [fault for fault in read() if fault.name.startswith(tuple(only)) or fault.area in only]


def _take(free: Queue[Path], lines: LinesOfTests) -> None:
    """Gives each process of the pool a copy of the tree to itself."""
    global _own
    _own = free.get(), lines


def _row(fault: Fault) -> tuple[str, ...]:
    found = plant(fault, *_own)
    return found.fault.name, found.fault.kind, found.outcome, found.test


def summarize(table: Path) -> None:
    counted: dict[str, Counter[str]] = {}
    for name, row in _read(table).items():
        counted.setdefault(_area(name, row), Counter())[row["outcome"]] += 1
    for area, outcomes in counted.items():
        print(area, *(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())), sep="  ")


def compare(before: Path, after: Path) -> int:
    """Each fault that was caught and is not; 1 where there is one."""
    was, now = _read(before), _read(after)
    lost = [
        name
        for name in now
        if was[name]["outcome"] == "caught" and now[name]["outcome"] in ("not caught", "not run")
    ]
    won = [name for name in now if was[name]["outcome"] != "caught" and now[name]["outcome"] == "caught"]
    for name in lost:
        print(f"no longer caught: {name} (was by {was[name]['test']})")
    gone = sum(row["outcome"] == "gone" for row in now.values())
    print(f"{len(now)} planted: {len(lost)} no longer caught, {len(won)} newly caught, {gone} gone")
    return 1 if lost else 0


def _area(name: str, row: dict[str, str]) -> str:
    return "history" if row["kind"] == "defect" else name.partition("-")[0]


def _read(table: Path) -> dict[str, dict[str, str]]:
    with table.open(newline="") as opened:
        return {row["fault"]: row for row in csv.DictReader(opened, dialect="excel-tab")}


if __name__ == "__main__":
    main()
