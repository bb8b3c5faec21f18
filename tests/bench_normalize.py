"""What normalizing and comparing costs, in CPU time, on the committed artifacts.

python tests/bench_normalize.py                  canonical form of each IR, comparisons, worst case
python tests/bench_normalize.py --compile        also the share in the CPU time of compiling two releases
python tests/bench_normalize.py --llvm           also what llvmlite costs and whether it changes an answer
"""

from __future__ import annotations

import argparse
import difflib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1]))

from irdiff import config, run_folder
from irdiff.normalize import canonicalize, equivalent
from irdiff.store import Store
from tests.bench import fresh_cache, irdiff
from tests.mutation.artifacts import RealArtifact, of_stage

STAGES = ("llir", "ptx", "amdgcn", "ttgir", "ttir", "sass")
RELEASES = (("3.5.1", "3.7.1"), ("3.7.1", "3.8.0"), ("3.8.0", "3.9.0"))


def pairs(stage: str) -> list[tuple[RealArtifact, RealArtifact]]:
    """The same kernel and target in two successive releases of the set."""
    found = []
    for base, head in RELEASES:
        heads = {(a.kernel, a.target): a for a in of_stage(stage, release=head)}
        bases = of_stage(stage, release=base)
        found += [(a, heads[a.kernel, a.target]) for a in bases if (a.kernel, a.target) in heads]
    return found


def bench_canonical(*, llvm: bool) -> None:
    print(f"{'IR':8} {'files':>5} {'MB':>6} {'ms/MB':>7}   one file of 3 MB: ms/MB")
    for stage in STAGES:
        texts = [artifact.text for artifact in of_stage(stage)]
        size_mb = sum(map(len, texts)) / 1e6
        start = time.process_time()
        for text in texts:
            canonicalize(stage, text, llvm=llvm)
        seconds = time.process_time() - start
        big = big_text(stage, 3_000_000)
        start = time.process_time()
        canonicalize(stage, big)
        big_ms = (time.process_time() - start) * 1e3 / (len(big) / 1e6)
        print(f"{stage:8} {len(texts):5} {size_mb:6.2f} {seconds * 1e3 / size_mb:7.1f}   {big_ms:7.1f}")


def big_text(stage: str, size: int, seed: int = 0) -> str:
    """Real texts one after the other until they have that size: long, no valid module."""
    texts = [artifact.text for artifact in of_stage(stage)]
    Random(seed).shuffle(texts)
    parts: list[str] = []
    for text in itertools.cycle(texts):
        if sum(map(len, parts)) >= size:
            break
        parts.append(text)
    return "\n".join(parts)[:size]


def bench_against_difflib() -> None:
    print(f"\n{'IR':8} {'pairs':>5} {'equivalent ms':>14} {'unified_diff ms':>16} {'ratio':>6}")
    for stage in STAGES[:-1]:
        start = time.process_time()
        for base, head in pairs(stage):
            equivalent(stage, base.text, head.text)
        ours = time.process_time() - start
        start = time.process_time()
        for base, head in pairs(stage):
            list(difflib.unified_diff(base.text.split("\n"), head.text.split("\n")))
        theirs = time.process_time() - start
        print(f"{stage:8} {len(pairs(stage)):5} {ours * 1e3:14.0f} {theirs * 1e3:16.0f} {ours / theirs:6.3f}")


def bench_against_llvm_diff() -> None:
    """On texts that this llvm-diff can read; its process start is counted, as a user would pay it."""
    tool = shutil.which("llvm-diff")
    if not tool:
        print("\nllvm-diff: not installed")
        return
    ours = theirs = 0.0
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        left, right = Path(folder, "a.ll"), Path(folder, "b.ll")
        for base, head in pairs("llir"):
            left.write_text(base.text)
            right.write_text(head.text)
            start = os.times()
            result = subprocess.run([tool, left, right], capture_output=True, check=False)
            end = os.times()
            if b"error:" in result.stderr:
                continue
            count += 1
            theirs += end.children_user + end.children_system - start.children_user - start.children_system
            begin = time.process_time()
            equivalent("llir", base.text, head.text)
            ours += time.process_time() - begin
    ratio = ours / theirs if theirs else float("nan")
    print(
        f"\nllvm-diff: {count} pairs read, {theirs * 1e3:.0f} ms; "
        f"equivalent {ours * 1e3:.0f} ms; ratio {ratio:.3f}"
    )


def bench_worst_case() -> None:
    base, head = big_text("llir", 3_000_000), big_text("llir", 3_000_000, seed=1).replace("i32", "i33")
    start = time.process_time()
    comparison = equivalent("llir", base, head)
    seconds = time.process_time() - start
    print(f"\nworst case: 3 MB of LLVM IR against another: {seconds:.2f} s, {comparison.equal=}")


def compare_forms() -> None:
    changed = [
        (base.name, head.name)
        for base, head in pairs("llir")
        if equivalent("llir", base.text, head.text).equal
        != equivalent("llir", base.text, head.text, llvm=True).equal
    ]
    print(f"\nllvmlite changes the answer on {len(changed)} of {len(pairs('llir'))} pairs {changed[:4]}")


COMPILED_CASES = ("elementwise/vector_add", "norm/softmax", "matmul/pointer:fp16-4096")


def bench_share_of_compiling() -> None:
    """All text stages of cases that two releases compile right now; no answer is remembered."""
    shared = config.load().cache
    cache = fresh_cache(shared)
    words = [word for pattern in COMPILED_CASES for word in ("--case", pattern)]
    folder = cache / "run"
    sides = ("triton==3.8.0", "triton==3.9.0")
    cost = irdiff(
        "compare", *sides, *words, "--no-recheck", "--no-attribute", "--out", str(folder), cache=cache
    )
    compiling = cost.cpu_s - cost.own_cpu_s
    store = Store(cache / "store")
    texts = []
    for case in run_folder.load(folder).cases:
        for stage in set(case.artifacts.base) & set(case.artifacts.head) - {"cubin", "hsaco"}:
            both = [store.get(side[stage].digest) for side in (case.artifacts.base, case.artifacts.head)]
            texts.append((stage, *[(content or b"").decode() for content in both]))
    start = time.process_time()
    for stage, base, head in texts:
        equivalent(stage, base, head)
    spent = time.process_time() - start
    shutil.rmtree(cache)
    print(
        f"\n{len(texts)} pairs of texts compared in {spent * 1e3:.0f} ms; compiling them took "
        f"{compiling:.1f} s of CPU time: {spent / compiling:.2%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--llvm", action="store_true")
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    bench_canonical(llvm=arguments.llvm)
    bench_worst_case()
    if arguments.llvm:
        compare_forms()
    bench_against_difflib()
    bench_against_llvm_diff()
    if arguments.compile:
        bench_share_of_compiling()


if __name__ == "__main__":
    main()
