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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from irdiff import config
from irdiff.config import Config
from irdiff.model import Toolchain
from irdiff.resolve import toolchains
from tests import edited_toolchain

ROOT = Path(__file__).parents[2]
PLAINLY = ("--no-recheck", "--no-attribute")
TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
BARE = """
import importlib.util, json, os, sys, time
sys.path.insert(0, os.environ["IRDIFF_WORKER_PARENT"])
spec = importlib.util.spec_from_file_location("irdiff_worker", os.environ["IRDIFF_WORKER"] + "/__init__.py",
                                              submodule_search_locations=[os.environ["IRDIFF_WORKER"]])
package = importlib.util.module_from_spec(spec); sys.modules["irdiff_worker"] = package; spec.loader.exec_module(package)
import irdiff_worker.corpus_api; sys.modules["irdiff_corpus"] = irdiff_worker.corpus_api
from irdiff_worker import intercept, workloads
cases = json.load(open(sys.argv[1]))
modules = {}
for case in cases:
    workload, label = case["workload"], case["label"]
    key = workload, case["target"]["name"]  # a JIT function remembers its first target
    if key not in modules:
        modules[key] = workloads.load(os.environ["IRDIFF_CORPUS"], workload)
    for suffix, captured in intercept.launches_of(modules[key].LAUNCHES[label], case["target"], False).rows:
        if case["id"] == f"{workload}:{label}{suffix}":
            try:
                intercept.real_compile(captured.src, target=captured.target, options=captured.options)
            except Exception as error:
                print(case["id"], type(error).__name__, file=sys.stderr)
"""

OWN = """
import resource, sys
from irdiff.cli import main
try:
    main()
finally:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"@usage {own.ru_utime + own.ru_stime} {children.ru_utime + children.ru_stime} {own.ru_maxrss}", file=sys.stderr)
"""


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    own_cpu_s: float
    peak_mib: float


def children_cpu_s() -> float:
    """Of all processes that this one has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def bare(versions: list[str], cases: list[dict], pythons: dict[str, str], place: Path) -> Cost:
    """One process per core and side, compile caches empty; what they leave is below `place`."""
    cores = len(os.sched_getaffinity(0))
    begin, before = time.monotonic(), children_cpu_s()
    for version in versions:
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
                children.append(
                    subprocess.Popen(
                        [pythons[version], "-c", BARE, str(path)], env=environment, stderr=subprocess.DEVNULL
                    )
                )
            for child in children:
                if child.wait():
                    sys.exit("the bare script failed")
    return Cost(time.monotonic() - begin, children_cpu_s() - before, 0.0, 0.0)


def irdiff(*words: str, cache: Path) -> Cost:
    begin = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", OWN, *words],
        env={**os.environ, "IRDIFF_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    wall = time.monotonic() - begin
    if done.returncode:
        sys.exit(f"irdiff {' '.join(words)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    own, children, peak = map(float, done.stderr.rsplit("@usage ", 1)[1].split())
    return Cost(wall, own + children, own, peak / 1024)


def fresh_cache(shared: Path) -> Path:
    """A cache with an empty store and the shared toolchains."""
    own = Path(tempfile.mkdtemp(prefix="irdiff-bench-"))
    for name in ("toolchains", "uv", "digests"):
        (own / name).symlink_to(shared / name)
    return own


def captured(spec: str, chosen: list[str], cache: Path, *, gate: bool) -> list[dict]:
    """Every launch × target of a side that is to be compared, with its whole target.

    `gate`: those of the gate tier alone.
    """
    import tomllib

    done = subprocess.run(
        [sys.executable, "-m", "irdiff", "corpus", "list", "--toolchain", spec, "--json", "-", *chosen],
        env={**os.environ, "IRDIFF_CACHE": str(cache)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    targets = {}
    for name in TARGETS:
        rows = tomllib.loads((ROOT / "targets" / f"{name}.toml").read_text())
        targets[name] = {"name": name, **{k: rows[k] for k in ("backend", "arch", "warp_size", "facts")}}
    return [
        {**row, "target": targets[row["target"]]}
        for row in json.loads(done.stdout)
        if row["expected"] and (not gate or row["tier"] == "gate")
    ]


Halves = tuple[Cost, Cost]
"""What the bare script takes for base and for head."""


@dataclass(frozen=True)
class Beside:
    """What one measurement cost, and what the bare script did that ran at the same time."""

    cost: Cost
    bare: Halves


def side_by_side(measure: Callable[[], Cost], plain: Callable[[], Halves], rounds: int) -> list[Beside]:
    cores = sorted(os.sched_getaffinity(0))
    halves = cores[: len(cores) // 2] or cores, cores[len(cores) // 2 :]
    found = []
    for number in range(rounds):
        own, others = halves if number % 2 else halves[::-1]
        with _running(plain, others, again=True) as beside, _running(measure, own) as measured:
            try:
                cost, rows = measured.recv(), [beside.recv()]
                while beside.poll():
                    rows.append(beside.recv())
            except EOFError:
                sys.exit("a measurement failed; what it said stands above")
        base, head = (mean(costs) for costs in zip(*rows, strict=True))
        found.append(Beside(cost, (base, head)))
    return found


@contextlib.contextmanager
def _running(
    measure: Callable[[], Cost | Halves], cores: Sequence[int], *, again: bool = False
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
    group = process.pid
    assert group is not None
    try:
        yield receiver
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        process.join()


def mean(costs: Sequence[Cost]) -> Cost:
    return Cost(*(sum(values) / len(costs) for values in zip(*map(astuple, costs), strict=True)))


def both(halves: Halves) -> Cost:
    return Cost(*map(sum, zip(*map(astuple, halves), strict=True)))


def row(name: str, costs: Sequence[Cost], references: Sequence[Cost], bound: str) -> None:
    """Costs of rounds beside what they are compared with in the same rounds."""
    pairs = list(zip(costs, references, strict=True))
    cost = middle(costs)
    wall = median(one.wall_s / other.wall_s for one, other in pairs)
    cpu = sorted(one.cpu_s / other.cpu_s for one, other in pairs)
    spread = f"{cpu[0]:.2f}–{cpu[-1]:.2f}" if len(cpu) > 1 else ""
    own = f"{cost.own_cpu_s / cost.cpu_s:6.1%} {cost.peak_mib:6.0f}" if cost.own_cpu_s else " " * 13
    print(
        f"{name:46} {cost.wall_s:8.1f} {cost.cpu_s:8.1f} {wall:6.2f} {median(cpu):6.2f} {spread:11} {own}  {bound}",
        flush=True,
    )


def middle(costs: Sequence[Cost]) -> Cost:
    return Cost(*(median(values) for values in zip(*map(astuple, costs), strict=True)))


def edited_rows(toolchain: Toolchain, words: list[str], plain: Callable[[], Halves], cache: Path) -> None:
    """Against the bare script on head alone: the release itself is in the store."""
    edits = {"frontend": edited_toolchain.FRONTEND_EDIT, "AMD's backend": edited_toolchain.AMD_EDIT}
    for name, edit in edits.items():
        side = edited_toolchain.make(toolchain, cache / f"edited-{name[:3]}", edit)
        compared = partial(irdiff, "compare", toolchain.spec, side, *words, cache=cache)
        [found] = side_by_side(compared, plain, 1)
        row(f"only the {name} differs, of head's bare time", [found.cost], [found.bare[1]], "")


def prepared_rows(specs: list[str], plain: Callable[[], Halves], words: list[str], cache: Path) -> None:
    """One side in the store, the other compiled: each way, since one release may compile slower than the other."""
    ways = []
    for stored, compiled in ((0, 1), (1, 0)):
        shutil.rmtree(cache / "results", ignore_errors=True)
        irdiff("compare", specs[stored], specs[stored], "--no-cache", *words, cache=cache)
        sides = (specs[stored], specs[compiled])
        [found] = side_by_side(partial(irdiff, "compare", *sides, *words, *PLAINLY, cache=cache), plain, 1)
        row(f"base in the store, head is {specs[compiled]}", [found.cost], [both(found.bare)], "")
        ways.append(found)
    costs, references = mean([way.cost for way in ways]), mean([both(way.bare) for way in ways])
    row("base in the store, mean of both ways", [costs], [references], "≤ 0.55 ×")


def measured(pair: str, options: argparse.Namespace, settings: Config, *, same_ptx: bool = False) -> None:
    """The rows of one pair of releases."""
    base, head = pair.split(":")
    specs = [f"triton=={version}" for version in (base, head)]
    pythons = {version: toolchains.resolve(f"triton=={version}", settings).python for version in (base, head)}
    cache = fresh_cache(settings.cache)
    chosen = [word for target in options.target for word in ("--target", target)]
    chosen += [word for pattern in options.case for word in ("--case", pattern)]
    cases = captured(specs[1], chosen, cache, gate=not options.case)
    words = chosen if options.case else [*chosen, "--tier", "gate"]
    print(f"{base} → {head}, {len(cases)} cases on {len(os.sched_getaffinity(0))} cores")

    def plain() -> Halves:
        return bare([base], cases, pythons, cache), bare([head], cases, pythons, cache)

    def compared(*more: str) -> Cost:
        return irdiff("compare", *specs, *words, *more, cache=cache)

    def from_nothing(*more: str) -> Cost:
        shutil.rmtree(cache / "results", ignore_errors=True)
        return compared(*more)

    def measured_row(name: str, bound: str, *more: str) -> list[Beside]:
        found = side_by_side(lambda: from_nothing(*more), plain, options.rounds)
        row(name, [one.cost for one in found], [both(one.bare) for one in found], bound)
        return found

    cold = measured_row("compare, empty store", "≤ 0.95 ×" if same_ptx else "≤ 1.05 ×", *PLAINLY)
    for number, version in enumerate((base, head)):
        alone = [one.bare[number] for one in cold]
        row(f"bare script, triton.compile, {version}", alone, [both(one.bare) for one in cold], "")
    if not same_ptx:
        measured_row("the same, rechecked and charged to passes", "≤ 1.9 ×")
        reference = [middle([both(one.bare) for one in cold])]
        row("everything in the store", [compared()], reference, "≤ 3 s")
        same = irdiff("compare", specs[1], specs[1], *words, cache=cache)
        row("the same toolchain on both sides", [same], reference, "≤ 3 s")
        edited_rows(toolchains.resolve(specs[1], settings), words, plain, cache)
    prepared_rows(specs, plain, words, cache)
    shutil.rmtree(cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--pair", default="3.8.0:3.9.0")
    parser.add_argument("--same-ptx", default="3.7.0:3.7.1")
    options = parser.parse_args()

    settings = config.load()
    header = ("", "wall s", "cpu s", "wall ×", "cpu ×", "of rounds", "own", "MiB")
    print("{:46} {:>8} {:>8} {:>6} {:>6} {:11} {:>6} {:>6}  bound".format(*header))
    measured(options.pair, options, settings)
    measured(options.same_ptx, options, settings, same_ptx=True)


if __name__ == "__main__":
    main()
