"""Corpora of any size, as torch.compile's Inductor would launch them, from a seed; and a store that has them.

    python -m tests.programs.big_corpus --write FOLDER --cases 40000 [--seed 1]
    python -m tests.programs.big_corpus [--cases N …] [--cache FOLDER]

The first one writes workloads of pointwise, reduction and matmul kernels with varying shapes, types and blocks.
To compile all of a large corpus takes hours. So the second one compiles a small corpus of the same kernels, puts
its results into the store under the input digests of the large one's launches, and measures what irdiff costs
then, for 500, 5,000 and 40,000 cases, and with which power each cost grows. What is recorded repeats: each
launch has its own arguments, digest and metadata, but the artifacts and facts of one of the sample's.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

TARGETS = ("sm_90", "sm_100", "gfx942", "gfx950")
LAUNCHES_OF_A_WORKLOAD = 50
SAMPLE = 12
"""Launches that are really compiled: each kind of kernel with some of its variants."""
_HEAD = '''"""Written by tests.programs.big_corpus: kernels as Inductor writes them."""

import triton
import triton.language as tl
from irdiff_corpus import empty, launch, tensor

'''
_POINTWISE = """
@triton.jit
def triton_poi_{number}(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask).to(tl.float32)
    tmp1 = tl.load(in_ptr1 + (xindex // {inner}) % {outer}, xmask, eviction_policy="evict_last").to(tl.float32)
    tl.store(out_ptr0 + xindex, {expression}, xmask)


def call_{number}(x, y, out):
    triton_poi_{number}[(triton.cdiv({elements}, {block}),)](x, y, out, {elements}, XBLOCK={block}, num_warps={warps})

"""
_REDUCTION = """
@triton.jit
def triton_red_{number}(in_ptr0, in_ptr1, out_ptr0, xnumel, rnumel, XBLOCK: tl.constexpr, RBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    rbase = tl.arange(0, RBLOCK)[None, :]
    total = tl.full([XBLOCK, RBLOCK], 0, tl.float32)
    for roffset in range(0, rnumel, RBLOCK):
        rmask = roffset + rbase < rnumel
        tmp0 = tl.load(in_ptr0 + (roffset + rbase + rnumel * xindex), rmask & xmask, other=0.0).to(tl.float32)
        tmp1 = tl.load(in_ptr1 + roffset + rbase, rmask, eviction_policy="evict_last", other=0.0).to(tl.float32)
        total = tl.where(rmask & xmask, total + {expression}, total)
    tl.store(out_ptr0 + xindex, tl.sum(total, 1)[:, None], xmask)


def call_{number}(x, y, out):
    triton_red_{number}[({outer},)](x, y, out, {outer}, {inner}, XBLOCK=1, RBLOCK={block}, num_warps={warps})

"""
_MATMUL = """
@triton.jit
def triton_mm_{number}(a_ptr, b_ptr, out_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        a = tl.load(a_ptr + rows[:, None] * K + (k + inner)[None, :])
        b = tl.load(b_ptr + (k + inner)[:, None] * N + columns[None, :])
        total = tl.dot(a, b, total)
    tmp0 = total
    tmp1 = total * 0.5
    tl.store(out_ptr + rows[:, None] * N + columns[None, :], {expression})


def call_{number}(x, y, out):
    grid = ({outer} // {tile}, {inner} // {tile})
    triton_mm_{number}[grid](x, y, out, {outer}, {inner}, 1024, BM={tile}, BN={tile}, BK=32, num_warps={warps})

"""
_KINDS = {"pointwise": _POINTWISE, "reduction": _REDUCTION, "matmul": _MATMUL}
_EXPRESSIONS = (
    "tmp0 + tmp1",
    "tmp0 * tl.sigmoid(tmp1)",
    "tl.maximum(tmp0, 0.0) + tmp1",
    "tl.exp(tmp0 - tmp1)",
)


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """One kernel with its only launch."""

    number: int
    kind: str
    expression: str
    outer: int
    inner: int
    block: int
    warps: int
    dtype: str

    @property
    def label(self) -> str:
        return f"{self.dtype}-{self.outer}x{self.inner}-{self.number}"

    @property
    def variant(self) -> tuple[str, str, str]:
        """Kernels of one variant are taken to compile alike."""
        return self.kind, self.expression, self.dtype

    def text(self) -> str:
        return _KINDS[self.kind].format(
            **vars(self), elements=self.outer * self.inner, tile=min(128, self.block // 8)
        )

    def row(self) -> str:
        shapes = {
            "pointwise": ((self.outer, self.inner), (self.outer,), (self.outer, self.inner)),
            "reduction": ((self.outer, self.inner), (self.inner,), (self.outer,)),
            "matmul": ((self.outer, 1024), (1024, self.inner), (self.outer, self.inner)),
        }
        x, y, out = shapes[self.kind]
        arguments = f'tensor({x}, "{self.dtype}"), tensor({y}, "{self.dtype}"), empty({out}, "{self.dtype}")'
        return f'    "{self.label}": launch(call_{self.number}, {arguments}),\n'


def kernels(count: int, seed: int) -> Iterator[Kernel]:
    """The first ones are the same for any count."""
    chance = random.Random(seed)
    for number in range(count):
        yield Kernel(
            number=number,
            kind=chance.choices(list(_KINDS), (6, 3, 1))[0],
            expression=chance.choice(_EXPRESSIONS),
            outer=128 * chance.randint(1, 32),
            inner=128 * chance.randint(1, 64),
            block=chance.choice((256, 512, 1024)),
            warps=chance.choice((4, 8)),
            dtype=chance.choice(("fp16", "bf16", "fp32")),
        )


def write(folder: Path, count: int, seed: int) -> list[Kernel]:
    every = list(kernels(count, seed))
    shutil.rmtree(folder, ignore_errors=True)
    for start in range(0, count, LAUNCHES_OF_A_WORKLOAD):
        part = every[start : start + LAUNCHES_OF_A_WORKLOAD]
        path = folder / f"inductor{start // 2000:02d}" / f"graph_{start // LAUNCHES_OF_A_WORKLOAD:05d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = "".join(kernel.text() for kernel in part)
        rows = "".join(kernel.row() for kernel in part)
        path.write_text(f"{_HEAD}{texts}\nLAUNCHES = {{\n{rows}}}\n")
    return every


# recorded results


class Filler:
    """Puts what a sample's run made into the store, for the launches of a large corpus."""

    def __init__(self, cache: Path, sample: Path, specs: Sequence[str]) -> None:
        from irdiff import config as configuration
        from irdiff.capture.catalogs import Wanted
        from irdiff.compile.worker_compiler import WorkerCompiler
        from irdiff.resolve import targets, toolchains
        from irdiff.run import run_folder
        from irdiff.store import Store
        from irdiff.worker_client.worker_requests import Requests
        from irdiff.worker_client.workers import Workers

        self.config = configuration.load(cache=cache)
        self.store = Store(self.config.store)
        self.compiler = WorkerCompiler(
            Requests(self.config, Workers(self.config)), self.store, Wanted(), reuse=True
        )
        self.targets = {row.name: row for row in targets.select(TARGETS, [self.config.shipped / "targets"])}
        self.toolchains = [toolchains.resolve(spec, self.config) for spec in specs]
        run = run_folder.load(sample)
        self.sample: dict[tuple[int, str, str], list] = {}
        for case in run.cases:
            kind = {"poi": "pointwise", "red": "reduction", "mm": "matmul"}[case.kernel.split("_")[1]]
            for side, key in enumerate(case.launches):
                self.sample.setdefault((side, case.target, kind), []).append(run.launches[key])

    def fill(self, folder: Path, every: Sequence[Kernel]) -> None:
        from irdiff.resolve import corpus

        root = corpus.load(folder)
        for workload, start in zip(root.workloads, range(0, len(every), LAUNCHES_OF_A_WORKLOAD), strict=True):
            part = every[start : start + LAUNCHES_OF_A_WORKLOAD]
            for side, toolchain in enumerate(self.toolchains):
                for target in self.targets.values():
                    self._catalog(root, workload, part, side, toolchain, target)

    def _catalog(self, root, workload, part, side, toolchain, target) -> None:
        from dataclasses import asdict

        from irdiff.capture.catalogs import Selection
        from irdiff.compile.worker_compiler import _outcome
        from irdiff.model import Compiled

        selection = Selection(tiers=(), labels=())
        launches = []
        for kernel in part:
            alike = self.sample[side, target.name, kernel.kind]
            like = alike[kernel.number % len(alike)]
            launch = self._launch(kernel, like, workload)
            outcome = self.compiler._stored(self._key(toolchain, root, like, target))
            assert isinstance(outcome, Compiled), "the sample is not in the store"
            outcome = replace(outcome, metadata={**outcome.metadata, "name": launch.kernel})
            key = self._key(toolchain, root, launch, target)
            self.store.put_record("compiled", key, _outcome.dump_python(outcome, mode="json"))
            launches.append(asdict(launch))
        record = {
            "launches": launches,
            "failures": [],
            "supported": True,
            "selection": asdict(selection),
            "read": (),
            "called": (),
            "left_out": {},
            "transient": False,
        }
        key = self.compiler._capturer._key(toolchain, root, workload, target, selection)
        self.store.put_record("catalog", key, record)

    def _key(self, toolchain, root, launch, target) -> str:
        key = self.compiler._key("compiled/1", toolchain, root, launch, target)
        assert key
        return key

    @staticmethod
    def _launch(kernel: Kernel, like, workload: str):
        from irdiff.store import sha256

        label = kernel.label
        return replace(
            like,
            id=f"{workload}:{label}",
            workload=workload,
            label=label,
            kernel=f"triton_{like.kernel.split('_')[1]}_{kernel.number}",
            digest=sha256(f"{kernel.number} {like.digest}".encode()),
            source_path=f"{workload}.py",
            sources=(f"{workload}.py",),
            arguments=tuple(
                replace(argument, shape=(kernel.outer, kernel.inner)) if argument.shape else argument
                for argument in like.arguments
            ),
        )


def keep_catalogs() -> None:
    """In this process the corpus counts as one that imports nothing else, like the one that irdiff ships."""
    from irdiff.resolve import sides

    load = sides.load_corpus
    sides.load_corpus = lambda *words: replace(load(*words), self_contained=True)


def fill_descriptions(folder: Path, cache: Path, specs: Sequence[str]) -> None:
    """One comparison in this process in which what is alike is described once."""
    import functools

    from irdiff.cli import cli
    from irdiff.compare import facts
    from irdiff.group import describer
    from irdiff.recheck import rechecker

    keep_catalogs()
    made, made_facts = describer.describe, facts.of_side
    known: dict[object, object] = {}

    def of_side(compiled, *more):
        key = tuple(artifact.digest for artifact in compiled.artifacts.values())
        if key not in known:
            known[key] = made_facts(compiled, *more)
        return known[key]

    def describe(case, edit, *more):
        key = (
            case.verdict,
            case.origin,
            case.findings,
            json.dumps(case.facts.base),
            json.dumps(case.facts.head),
        )
        if key not in known:
            known[key] = made(case, edit, *more)
        return known[key]

    describer.describe, facts.of_side = describe, of_side
    rechecker.Rechecker._stages_agree = lambda *_: True
    describer.CaseDescriber._edit = functools.cache(describer.CaseDescriber._edit)
    with tempfile.TemporaryDirectory() as out:
        cli.main(
            ["compare", *specs, "--corpus", str(folder), "--cache", str(cache), "--out", f"{out}/run"],
            standalone_mode=False,
        )


# measuring


MEASURED = """
import sys, time
from irdiff import pipeline
from irdiff.cli import main
from tests.programs.big_corpus import keep_catalogs

keep_catalogs()

begin, group, grouping_s = time.monotonic(), pipeline._group, 0.0

def timed(*words):
    global grouping_s
    began = time.monotonic()
    found = group(*words)
    grouping_s += time.monotonic() - began
    return found

pipeline._group = timed
try:
    main()
finally:
    # not ru_maxrss: a process begins with that of the one that started it
    peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
    said = (time.monotonic() - begin, time.process_time(), peak / 1024, grouping_s)
    print("@usage", *said, file=sys.stderr)
"""


@dataclass(frozen=True)
class Cost:
    wall_s: float
    cpu_s: float
    peak_mib: float
    grouping_s: float


def irdiff(*words: str | Path, cache: Path) -> Cost:
    import os

    done = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, words)],
        env={**os.environ, "IRDIFF_CACHE": str(cache)},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        sys.exit(f"irdiff {' '.join(map(str, words))} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    return Cost(*map(float, done.stderr.rsplit("@usage ", 1)[1].split()))


def measure(cases: Sequence[int], cache: Path, seed: int, specs: Sequence[str], *, fill: bool) -> None:
    sample = cache / "sample"
    if fill:
        write(cache / "sample-corpus", SAMPLE, seed)
        irdiff("compare", *specs, "--corpus", cache / "sample-corpus", "--out", sample, cache=cache)
    print(f"{'cases':>7} {'':26} {'wall s':>8} {'cpu s':>8} {'MiB':>6}")
    costs: dict[str, list[tuple[int, Cost]]] = {}
    for count in cases:
        folder = cache / f"corpus-{count}"
        if fill:
            every = write(folder, count // len(TARGETS), seed)
            Filler(cache, sample, specs).fill(folder, every)
            fill_descriptions(folder, cache, specs)
            listed(folder, cache, specs)
        for name, cost in rows(folder, cache, specs):
            costs.setdefault(name, []).append((count, cost))
            print(
                f"{count:>7} {name:26} {cost.wall_s:8.1f} {cost.cpu_s:8.1f} {cost.peak_mib:6.0f}", flush=True
            )
            if cost.grouping_s:
                print(f"{count:>7} {'its groups':26} {cost.grouping_s:8.1f}")
        run = cache / f"run-{folder.name}"
        files = [path for path in run.rglob("*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        print(
            f"{count:>7} run folder {size / 1e6:.1f} MB, run.json {(run / 'run.json').stat().st_size / 1e6:.1f} MB"
        )
        print(f"{count:>7} page {page(run.with_suffix('.html'))}", flush=True)
    for name, found in costs.items():
        print(f"{name:26} grows with the power {exponent(found):.2f} of the cases")


def listed(folder: Path, cache: Path, specs: Sequence[str]) -> Cost:
    return irdiff("corpus", "list", "--corpus", folder, "--toolchain", specs[1], cache=cache)


def rows(folder: Path, cache: Path, specs: Sequence[str]) -> Iterator[tuple[str, Cost]]:
    out = folder.with_name(f"run-{folder.name}")
    yield "list", listed(folder, cache, specs)
    yield (
        "compare, all in the store",
        irdiff("compare", *specs, "--corpus", folder, "--out", out, cache=cache),
    )
    yield "report, HTML", irdiff("report", out, "--html", out.with_suffix(".html"), cache=cache)
    yield "report, Markdown", irdiff("report", out, "--markdown", out.with_suffix(".md"), cache=cache)
    yield "report, terminal", irdiff("report", out, cache=cache)


def page(path: Path) -> str:
    """How long Chromium takes to open it and to find one case: the quickest of three times."""
    from tests.integration import browser

    if reason := browser.missing():
        return reason
    open_s, filter_ms = [], []
    with browser.chromium() as chromium:
        for _ in range(3):
            watched = browser.Watched(chromium)
            began = time.monotonic()
            watched.open(path)
            open_s.append(time.monotonic() - began)
            filter_ms.append(watched.evaluate(FILTERED))
            watched.page.close()
    return f"{path.stat().st_size / 1e6:.1f} MB, opens in {min(open_s):.2f} s, filters in {min(filter_ms):.0f} ms"


FILTERED = """(() => {
    const field = document.querySelector('#case-filters').elements.text;
    const began = performance.now();
    field.value = 'bf16-1024 gfx950';
    field.dispatchEvent(new Event('input', { bubbles: true }));
    document.body.getBoundingClientRect();
    return performance.now() - began;
})()"""


def exponent(found: Sequence[tuple[int, Cost]]) -> float:
    """Of the CPU time, between the last two sizes."""
    (small, one), (large, other) = found[-2:] if len(found) > 1 else (found[0], found[0])
    return math.log(other.cpu_s / one.cpu_s) / math.log(large / small) if large > small else 0.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pair", default="3.8.0:3.9.0")
    parser.add_argument("--cases", type=int, action="append", help="how many; default: 500, 5000, 40000")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="only write a corpus of so many cases")
    parser.add_argument("--cache", type=Path, help="a cache that has the toolchains; its store is filled")
    parser.add_argument(
        "--filled",
        action="store_true",
        help="the cache's store was filled with these corpora by an earlier call",
    )
    options = parser.parse_args()
    cases = options.cases or [500, 5000, 40000]
    if options.write:
        write(options.write, cases[0] // len(TARGETS), options.seed)
        return
    from irdiff import config as configuration

    cache = options.cache or configuration.load().cache
    specs = [f"triton=={version}" for version in options.pair.split(":")]
    measure(cases, cache, options.seed, specs, fill=not options.filled)


if __name__ == "__main__":
    main()
