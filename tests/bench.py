"""`make bench`: what irdiff costs, against a bare script on the same cases, in one run on this machine.

    python -m tests.bench [--rounds 3] [--target sm_90 …] [--case PATTERN …] [--pair 3.8.0:3.9.0]

The bare script calls `triton.compile` for every case of both sides, one process per core, and compares
nothing. Cases are those of the gate tier (what `make demo` compares), or of `--case`.

What is compared with the bare script takes turns with it, since a machine's speed changes within minutes: a
ratio is the median of those of the rounds, with the least and the greatest behind it. What is measured once is
compared with the median of the bare script. Ratios are of wall time, and of CPU time, which other load on the
machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import median

from irdiff import config
from irdiff.config import Config
from irdiff.model import Toolchain
from irdiff.resolve import toolchains
from tests import edited_toolchain

ROOT = Path(__file__).parent.parent
PLAINLY = ("--no-recheck", "--no-attribute")
TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
BARE = """
import importlib.util, json, os, sys, time
sys.path.insert(0, os.environ["IRDIFF_WORKER_PARENT"])
spec = importlib.util.spec_from_file_location("irdiff_worker", os.environ["IRDIFF_WORKER"] + "/__init__.py",
                                              submodule_search_locations=[os.environ["IRDIFF_WORKER"]])
package = importlib.util.module_from_spec(spec); sys.modules["irdiff_worker"] = package; spec.loader.exec_module(package)
import irdiff_worker.corpus_api; sys.modules["irdiff_corpus"] = irdiff_worker.corpus_api
from irdiff_worker import capture
cases = json.load(open(sys.argv[1]))
modules = {}
for case in cases:
    workload, label = case["workload"], case["label"]
    key = workload, case["target"]["name"]  # a JIT function remembers its first target
    if key not in modules:
        modules[key] = capture.load_workload(os.environ["IRDIFF_CORPUS"], workload)
    for suffix, captured in capture.launches_of(modules[key].LAUNCHES[label], case["target"], False).rows:
        if case["id"] == f"{workload}:{label}{suffix}":
            try:
                capture.real_compile(captured.src, target=captured.target, options=captured.options)
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


def bare(versions: list[str], cases: list[dict], pythons: dict[str, str]) -> Cost:
    """One process per core and side, compile caches empty."""
    cores = len(os.sched_getaffinity(0))
    begin, before = time.monotonic(), children_cpu_s()
    for version in versions:
        with tempfile.TemporaryDirectory() as folder:
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


def in_turn(measures: Mapping[str, Callable[[], Cost]], rounds: int) -> dict[str, list[Cost]]:
    """Each of them once a round."""
    found: dict[str, list[Cost]] = {name: [] for name in measures}
    for _ in range(rounds):
        for name, measure in measures.items():
            found[name].append(measure())
    return found


def row(name: str, costs: Sequence[Cost], references: Sequence[Cost], bound: str) -> None:
    """Costs of rounds beside what they are compared with in the same rounds, or one beside the median of rounds."""
    if len(costs) != len(references):
        references = [middle(references)] * len(costs)
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


def edited_rows(toolchain: Toolchain, words: list[str], half: Sequence[Cost], cache: Path) -> None:
    """Against the bare script on head alone: the release itself is in the store."""
    edits = {"frontend": edited_toolchain.FRONTEND_EDIT, "AMD's backend": edited_toolchain.AMD_EDIT}
    for name, edit in edits.items():
        side = edited_toolchain.make(toolchain, cache / f"edited-{name[:3]}", edit)
        cost = irdiff("compare", toolchain.spec, side, *words, cache=cache)
        row(
            f"only the {name} differs, of head's bare time",
            [cost],
            half,
            "≤ 0.15 ×" if name == "frontend" else "",
        )


def prepared_rows(specs: list[str], plain: Sequence[Cost], words: list[str], cache: Path) -> None:
    """One side in the store, the other compiled: each way, since one release may compile slower than the other."""
    rows = []
    for stored, compiled in ((0, 1), (1, 0)):
        shutil.rmtree(cache / "store", ignore_errors=True)
        subprocess.run(
            [
                sys.executable,
                "-m",
                "irdiff",
                "compare",
                specs[stored],
                specs[stored],
                "--no-shortcut",
                *words,
            ],
            env={**os.environ, "IRDIFF_CACHE": str(cache)},
            capture_output=True,
        )
        sides = (specs[stored], specs[compiled])
        cost = irdiff("compare", *sides, *words, *PLAINLY, cache=cache)
        row(f"base in the store, head is {specs[compiled]}", [cost], plain, "")
        rows.append(cost)
    mean = Cost(*(sum(values) / 2 for values in zip(*map(astuple, rows), strict=True)))
    row("base in the store, mean of both ways", [mean], plain, "≤ 0.55 ×")


def sum_of(halves: Sequence[Cost]) -> Cost:
    return Cost(sum(half.wall_s for half in halves), sum(half.cpu_s for half in halves), 0.0, 0.0)


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

    def compared(*more: str, fresh: bool = False) -> Cost:
        if fresh:
            shutil.rmtree(cache / "store", ignore_errors=True)
        return irdiff("compare", *specs, *words, *more, cache=cache)

    measures: dict[str, Callable[[], Cost]] = {
        version: lambda version=version: bare([version], cases, pythons) for version in (base, head)
    }
    measures["cold"] = lambda: compared(*PLAINLY, fresh=True)
    if not same_ptx:
        measures["all"] = lambda: compared(fresh=True)
    found = in_turn(measures, options.rounds)
    plain = [sum_of(halves) for halves in zip(found[base], found[head], strict=True)]
    for version in (base, head):
        row(f"bare script, triton.compile, {version}", found[version], plain, "")
    row("bare script, both sides", plain, plain, "")
    row("compare, empty store", found["cold"], plain, "≤ 0.95 ×" if same_ptx else "≤ 1.05 ×")
    if not same_ptx:
        row("the same, rechecked and charged to passes", found["all"], plain, "≤ 1.9 ×")
        row("everything in the store", [compared()], plain, "≤ 3 s")
        same = irdiff("compare", specs[1], specs[1], *words, cache=cache)
        row("the same toolchain on both sides", [same], plain, "≤ 3 s")
        edited_rows(toolchains.resolve(specs[1], settings), words, found[head], cache)
    prepared_rows(specs, plain, words, cache)
    shutil.rmtree(cache)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
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
