"""`make bench`: what irdiff costs, against a bare script on the same cases, in one run on this machine.

    python -m tests.programs.bench [--rounds 2] [--target sm_90 …] [--case PATTERN …] [--pair 3.8.0:3.9.0]

The bare script calls `triton.compile` for every case of both sides, one process per core, and compares
nothing. Cases are those of the gate tier (what `make demo` compares), or of `--case`.

A machine's speed changes by a third within seconds, so irdiff and the bare script run at the same time, each on
its half of the cores, which they exchange every round; the bare script begins again until irdiff ends. A ratio
is the median of those of the rounds, with the least and the greatest behind it; taken one after the other, three
runs of the same code gave 0.86, 1.05 and 1.21 within ten minutes, and side by side four rounds give 1.23 to 1.28.
Ratios are of wall time on as many cores, and of CPU time, which other load on the machine disturbs less.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import fmean, median

from irdiff import config
from irdiff.resolve import toolchains
from tests.programs.evidence import comparing
from tests.programs.evidence.comparing import Cost

ROOT = Path(__file__).parents[2]
PLAINLY = ("--no-recheck", "--no-attribute")
BARE = """
import importlib.util, json, os, sys, time
sys.path.insert(0, os.environ["IRDIFF_WORKER_PARENT"])
spec = importlib.util.spec_from_file_location("irdiff_worker", os.environ["IRDIFF_WORKER"] + "/__init__.py",
                                              submodule_search_locations=[os.environ["IRDIFF_WORKER"]])
package = importlib.util.module_from_spec(spec); sys.modules["irdiff_worker"] = package; spec.loader.exec_module(package)
import irdiff_worker.corpus_api; sys.modules["irdiff_corpus"] = irdiff_worker.corpus_api
from irdiff_worker.capture import intercept, workloads
cases = json.load(open(sys.argv[1]))
modules = {}
for case in cases:
    workload, label = case["workload"], case["label"]
    key = workload, case["target"]["name"]  # a JIT function remembers its first target
    if key not in modules:
        modules[key] = workloads.load(os.environ["IRDIFF_CORPUS"], workload)
    for suffix, captured in intercept.launches_of(modules[key].LAUNCHES[label], case["target"], False).captures:
        if case["id"] == f"{workload}:{label}{suffix}":
            try:
                intercept.real_compile(captured.src, target=captured.target, options=captured.options)
            except Exception as error:
                print(case["id"], type(error).__name__, file=sys.stderr)
"""


def children_cpu_s() -> float:
    """Of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bare(pythons: Sequence[str], cases: Sequence[dict], place: Path) -> Cost:
    """One process per core and side, compile caches empty; what they leave is below `place`."""
    cores = len(os.sched_getaffinity(0))
    begin, before = time.monotonic(), children_cpu_s()
    for python in pythons:
        with tempfile.TemporaryDirectory(dir=place) as folder:
            children = []
            for part in range(cores):
                path = Path(folder, f"{part}.json")
                path.write_text(json.dumps(cases[part::cores]))
                environment = {
                    "PATH": os.environ["PATH"],
                    "HOME": folder,
                    "TRITON_CACHE_DIR": f"{folder}/cache-{part}",
                    "PYTHONHASHSEED": "0",
                    "TRITON_DEFAULT_FP_FUSION": "1",
                    "IRDIFF_CORPUS": str(ROOT / "corpus"),
                    "IRDIFF_WORKER": str(ROOT / "irdiff" / "worker"),
                    "IRDIFF_WORKER_PARENT": folder,
                }
                command = [python, "-c", BARE, str(path)]
                children.append(subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL))
            codes = [child.wait() for child in children]
            if any(codes):
                sys.exit("the bare script failed")
    return Cost(time.monotonic() - begin, children_cpu_s() - before, 0.0, 0.0)


def irdiff(*words: object, cache: Path, **environment: str) -> Cost:
    done = comparing.irdiff(*words, cache=cache, **environment)
    if done.code:
        sys.exit(f"irdiff {' '.join(map(str, words))} ended with {done.code}:\n{done.stderr[-2000:]}")
    return done.cost


def fresh_cache() -> Path:
    """A cache with an empty store and the shared toolchains."""
    return comparing.new_cache(Path(tempfile.mkdtemp(prefix="irdiff-bench-"), "cache"), config.load().cache)


def captured(spec: str, chosen: Sequence[str], cache: Path, *, gate: bool) -> list[dict]:
    """Every launch × target of a side that is to be compared, with its whole target.

    `gate`: those of the gate tier alone.
    """
    words = ("corpus", "list", "--toolchain", spec, "--json", "-", *chosen)
    rows = json.loads(comparing.irdiff(*words, cache=cache).stdout)
    targets = {}
    for name in {row["target"] for row in rows}:
        facts = tomllib.loads((ROOT / "targets" / f"{name}.toml").read_text())
        targets[name] = {"name": name, **{k: facts[k] for k in ("backend", "arch", "warp_size", "facts")}}
    return [
        {**row, "target": targets[row["target"]]}
        for row in rows
        if row["expected"] and (not gate or row["tier"] == "gate")
    ]


@dataclass(frozen=True)
class SideBySide:
    """What one measurement cost, and what the bare script did that ran at the same time."""

    cost: Cost
    bare: Cost


def side_by_side(measure: Callable[[], Cost], plain: Callable[[], Cost], rounds: int) -> list[SideBySide]:
    cores = sorted(os.sched_getaffinity(0))
    halves = cores[: len(cores) // 2] or cores, cores[len(cores) // 2 :]
    found = []
    for number in range(rounds):
        own, others = halves if number % 2 else halves[::-1]
        with _running(plain, others, again=True) as meanwhile, _running(measure, own) as measured:
            try:
                cost, rows = measured.recv(), [meanwhile.recv()]
                while meanwhile.poll():
                    rows.append(meanwhile.recv())
            except EOFError:
                sys.exit("a measurement failed; what it said stands above")
        found.append(SideBySide(cost, together(fmean, rows)))
    return found


@contextlib.contextmanager
def _running(
    measure: Callable[[], Cost], cores: Sequence[int], *, again: bool = False
) -> Iterator[Connection]:
    """Measures on these cores, once or again and again while it is open; each result can be received."""
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        os.setpgid(0, 0)
        os.sched_setaffinity(0, cores)
        sender.send(measure())
        while again:
            sender.send(measure())

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    sender.close()
    assert process.pid is not None
    try:
        yield receiver
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.join()


def together(average: Callable[[Sequence[float]], float], costs: Sequence[Cost]) -> Cost:
    return Cost(*(average(values) for values in zip(*map(astuple, costs), strict=True)))


def show(name: str, found: Sequence[SideBySide], bound: str) -> None:
    """Costs of rounds, and their ratios to what the bare script cost in the same rounds."""
    cost = together(median, [one.cost for one in found])
    wall = median(one.cost.wall_s / one.bare.wall_s for one in found)
    cpu = sorted(one.cost.cpu_s / one.bare.cpu_s for one in found)
    spread = f"{cpu[0]:.2f}–{cpu[-1]:.2f}" if len(cpu) > 1 else ""
    own = f"{cost.own_cpu_s / cost.cpu_s:6.1%} {cost.peak_mib:6.0f}"
    print(
        f"{name:46} {cost.wall_s:8.1f} {cost.cpu_s:8.1f} {wall:6.2f} {median(cpu):6.2f} {spread:11} {own}  {bound}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--pair", default="3.8.0:3.9.0")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what runs side by side ends, too
    specs = [f"triton=={version}" for version in options.pair.split(":")]
    pythons = [toolchains.resolve(spec, config.load()).python for spec in specs]
    cache = fresh_cache()
    chosen = [word for target in options.target for word in ("--target", target)]
    chosen += [word for pattern in options.case for word in ("--case", pattern)]
    cases = captured(specs[1], chosen, cache, gate=not options.case)
    words = chosen if options.case else [*chosen, "--tier", "gate"]
    print(f"{' → '.join(specs)}, {len(cases)} cases on {len(os.sched_getaffinity(0))} cores")
    header = ("", "wall s", "cpu s", "wall ×", "cpu ×", "of rounds", "own", "MiB")
    print("{:46} {:>8} {:>8} {:>6} {:>6} {:11} {:>6} {:>6}  bound".format(*header))
    plain = partial(bare, pythons, cases, cache)

    def compared(*more: str) -> Cost:
        return irdiff("compare", *specs, *words, *more, cache=cache)

    def from_nothing(*more: str) -> Cost:
        shutil.rmtree(cache / "results", ignore_errors=True)
        return compared(*more)

    cold = side_by_side(partial(from_nothing, *PLAINLY), plain, options.rounds)
    show("compare, empty store", cold, "goal 1.20 ×")
    whole = side_by_side(from_nothing, plain, options.rounds)
    show("the same, rechecked and charged to passes", whole, "goal 2.2 ×")
    reference = cold[0].bare
    show("everything in the store", [SideBySide(compared(), reference)], "≤ 6 s")
    same = irdiff("compare", specs[1], specs[1], *words, cache=cache)
    show("the same toolchain on both sides", [SideBySide(same, reference)], "≤ 3 s")
    shutil.rmtree(cache / "results")
    irdiff("compare", specs[0], specs[0], "--no-cache", *words, cache=cache)
    show("base in the store", side_by_side(partial(compared, *PLAINLY), plain, 1), "goal 0.70 ×")
    shutil.rmtree(cache.parent)


if __name__ == "__main__":
    main()
