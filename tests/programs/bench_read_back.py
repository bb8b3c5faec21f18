"""What reading a written run back costs: a real run's cases again and again under other ids, to any number.

python -m tests.programs.bench_read_back RUN [--cases N …]
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from irdiff.compare import radius
from irdiff.model import Run
from irdiff.run import run_folder


def enlarged(run: Run, count: int) -> Run:
    """Groups and summaries are left out: they would name the cases of the run itself."""
    cases, launches = [], {}
    for number in range(count):
        case = run.cases[number % len(run.cases)]
        head, at, target = case.id.rpartition("@")
        new = case.launches.map(
            lambda key, name=f"{head}-{number}": key and replace(run.launches[key], id=name)
        )
        launches |= {launch.key: launch for launch in new if launch}
        keys = new.map(lambda launch: launch and launch.key)
        cases.append(replace(case, id=f"{head}-{number}{at}{target}", launches=keys, group=None))
    summary = radius.summarize(cases, run.targets)
    return replace(run, cases=tuple(cases), launches=launches, groups=(), summary=summary)


def write(folder: Path, run: Run) -> None:
    with (folder / "run.json").open("wb") as file:
        file.writelines(run_folder.stored(run))


def seconds(call: Any, *words: Any) -> float:
    started = time.process_time()
    call(*words)
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", type=Path)
    parser.add_argument("--cases", type=int, nargs="+", default=[2000, 40_000])
    given = parser.parse_args()
    run = run_folder.load(given.run)
    for count in given.cases:
        with tempfile.TemporaryDirectory() as temp:
            large = enlarged(run, count)
            folder = Path(temp)
            alone = seconds(write, folder, large)
            back = seconds(run_folder.load, folder)
            print(f"{count} cases: written in {alone:.2f} s, read back in {back:.2f} s")


if __name__ == "__main__":
    main()
