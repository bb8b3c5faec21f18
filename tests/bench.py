"""`make bench`: what irdiff costs, against a bare script on the same cases, in one run on this machine.

    python -m tests.bench [--case PATTERN …] [--pair 3.8.0:3.9.0] [--same-ptx 3.7.0:3.7.1]

The bare script calls `triton.compile` for every case of both sides, one process per core, and compares
nothing. Cases are those of the gate tier (what `make demo` compares), or of `--case`. Ratios are of wall
time, and of CPU time, which other load on the machine disturbs less.
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
from dataclasses import astuple, dataclass
from pathlib import Path

from irdiff.model import Toolchain
from tests import edited_toolchain

ROOT = Path(__file__).parent.parent
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


def captured(spec: str, patterns: list[str], cache: Path) -> list[dict]:
    """Every launch × target of a side that is to be compared, with its whole target."""
    import tomllib

    words = [word for pattern in patterns for word in ("--case", pattern)]
    done = subprocess.run(
        [sys.executable, "-m", "irdiff", "corpus", "list", "--toolchain", spec, "--json", "-", *words],
        env={**os.environ, "IRDIFF_CACHE": str(cache)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    targets = {}
    for name in TARGETS:
        rows = tomllib.loads((ROOT / "targets" / f"{name}.toml").read_text())
        targets[name] = {"name": name, **{k: rows[k] for k in ("backend", "arch", "warp_size", "facts")}}
    return [
        {**row, "target": targets[row["target"]]}
        for row in json.loads(done.stdout)
        if row["expected"] and (patterns or row["tier"] == "gate")
    ]


def row(name: str, cost: Cost, reference: Cost | None, bound: str) -> None:
    ratio = (
        f"{cost.wall_s / reference.wall_s:6.2f} {cost.cpu_s / reference.cpu_s:6.2f}"
        if reference
        else " " * 13
    )
    own = f"{cost.own_cpu_s / cost.cpu_s:6.1%} {cost.peak_mib:6.0f}" if cost.own_cpu_s else " " * 13
    print(f"{name:46} {cost.wall_s:8.1f} {cost.cpu_s:8.1f} {ratio} {own}  {bound}", flush=True)


def edited_rows(toolchain: Toolchain, words: list[str], half: Cost, cache: Path) -> None:
    """Against the bare script on head alone: the release itself is in the store."""
    edits = {"frontend": edited_toolchain.FRONTEND_EDIT, "AMD's backend": edited_toolchain.AMD_EDIT}
    for name, edit in edits.items():
        side = edited_toolchain.make(toolchain, cache / f"edited-{name[:3]}", edit)
        cost = irdiff("compare", toolchain.spec, side, *words, cache=cache)
        row(
            f"only the {name} differs, of head's bare time",
            cost,
            half,
            "≤ 0.15 ×" if name == "frontend" else "",
        )


def prepared_rows(specs: list[str], halves: list[Cost], words: list[str], cache: Path) -> None:
    """One side in the store, the other compiled: each way, since one release may compile slower than the other."""
    both = sum_of(halves)
    rows = []
    for stored, compiled in ((0, 1), (1, 0)):
        shutil.rmtree(cache / "store", ignore_errors=True)
        subprocess.run(
            [sys.executable, "-m", "irdiff", "corpus", "check", "--toolchain", specs[stored], *words],
            env={**os.environ, "IRDIFF_CACHE": str(cache)},
            capture_output=True,
        )
        sides = (specs[stored], specs[compiled])
        cost = irdiff("compare", *sides, *words, "--no-recheck", "--no-attribute", cache=cache)
        row(f"base in the store, head is {specs[compiled]}", cost, both, "")
        rows.append(cost)
    mean = Cost(*(sum(values) / 2 for values in zip(*map(astuple, rows), strict=True)))
    row("base in the store, mean of both ways", mean, both, "≤ 0.55 ×")


def sum_of(halves: list[Cost]) -> Cost:
    return Cost(sum(half.wall_s for half in halves), sum(half.cpu_s for half in halves), 0.0, 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--pair", default="3.8.0:3.9.0")
    parser.add_argument("--same-ptx", default="3.7.0:3.7.1")
    options = parser.parse_args()

    from irdiff import config
    from irdiff.resolve import toolchains

    settings = config.load()
    header = ("", "wall s", "cpu s", "wall ×", "cpu ×", "own", "MiB")
    print(
        f"{header[0]:46} {header[1]:>8} {header[2]:>8} {header[3]:>6} {header[4]:>6} {header[5]:>6} {header[6]:>6}  bound"
    )
    for pair, label in ((options.pair, ""), (options.same_ptx, "same PTX")):
        base, head = pair.split(":")
        specs = [f"triton=={version}" for version in (base, head)]
        pythons = {
            version: toolchains.resolve(f"triton=={version}", settings).python for version in (base, head)
        }
        cache = fresh_cache(settings.cache)
        cases = captured(specs[1], options.case, cache)
        ids = sorted({case["id"] for case in cases})
        words = [word for pattern in options.case or ids for word in ("--case", pattern)]
        print(f"{base} → {head}, {len(cases)} cases on {len(os.sched_getaffinity(0))} cores")
        halves = [bare([version], cases, pythons) for version in (base, head)]
        plain = sum_of(halves)
        for version, half in zip((base, head), halves, strict=True):
            row(f"bare script, triton.compile, {version}", half, plain, "")
        row("bare script, both sides", plain, None, "")
        shutil.rmtree(cache / "store", ignore_errors=True)
        plainly = ("--no-recheck", "--no-attribute")
        cold = irdiff("compare", *specs, *words, *plainly, cache=cache)
        row("compare, empty store", cold, plain, "≤ 0.95 ×" if label else "≤ 1.05 ×")
        if not label:
            rechecked = irdiff("compare", *specs, *words, "--no-attribute", cache=cache)
            row("then: every changed case compiled again", rechecked, plain, "")
            attributed = irdiff("compare", *specs, *words, cache=cache)
            row("then: every change charged to a pass", attributed, plain, "≤ 2 ×")
            row("everything in the store", irdiff("compare", *specs, *words, cache=cache), plain, "≤ 3 s")
            row(
                "the same toolchain on both sides",
                irdiff("compare", specs[1], specs[1], *words, cache=cache),
                plain,
                "≤ 3 s",
            )
            edited_rows(toolchains.resolve(specs[1], settings), words, halves[1], cache)
        prepared_rows(specs, halves, words, cache)
        shutil.rmtree(cache)


if __name__ == "__main__":
    main()
