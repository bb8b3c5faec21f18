"""What normalizing and comparing costs, in CPU time, on the committed artifacts.

python tests/programs/bench_normalize.py                  canonical form of each IR, comparisons, worst case, llvmlite
python tests/programs/bench_normalize.py --compile        also the share in the CPU time of compiling two releases
python tests/programs/bench_normalize.py --runs RUN …     only against difflib, on the texts of run folders; their artifacts
                                                 are taken from the cache that they were compared with
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from irdiff.findings import FindingKind

sys.path.insert(0, str(Path(__file__).parents[2]))

from irdiff import config
from irdiff.cli import diff_view
from irdiff.cli.diff_view import View
from irdiff.diffs import stage_diff
from irdiff.normalize import canonicalize, equivalent
from irdiff.normalize.llvm_process import LlvmReader
from irdiff.run import run_folder
from irdiff.store import Store
from tests.programs.bench import children_cpu_s, fresh_cache, irdiff
from tests.programs.mutation.artifacts import RealArtifact, of_stage

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


def bench_canonical() -> None:
    print(f"{'IR':8} {'files':>5} {'MB':>6} {'ms/MB':>7}   one file of 3 MB: ms/MB")
    for stage in STAGES:
        texts = [artifact.text for artifact in of_stage(stage)]
        size_mb = sum(map(len, texts)) / 1e6
        seconds = cpu_s(lambda stage=stage, texts=texts: [canonicalize(stage, text) for text in texts])
        big = big_text(stage, 3_000_000)
        big_ms = cpu_s(lambda stage=stage, big=big: canonicalize(stage, big)) * 1e3 / (len(big) / 1e6)
        print(f"{stage:8} {len(texts):5} {size_mb:6.2f} {seconds * 1e3 / size_mb:7.1f}   {big_ms:7.1f}")


def cpu_s(action: Callable[[], object]) -> float:
    start = time.process_time()
    action()
    return time.process_time() - start


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


def bench_against_difflib(title: str, texts: dict[str, list[tuple[str, str]]]) -> None:
    """By what the answer is; a pair that differs also pays for the facts of how it differs."""
    print(
        f"\n{title}\n{'IR':8} {'answer':10} {'pairs':>5} {'MB':>6} {'equivalent ms':>14} {'unified_diff ms':>16} {'ratio':>6}"
    )
    total: list[tuple[int, float, float]] = []
    for stage in STAGES[:-1]:
        spent: dict[str, list[tuple[int, float, float]]] = {}
        for base, head in texts.get(stage, []):
            ours = cpu_s(lambda stage=stage, base=base, head=head: equivalent(stage, base, head))
            theirs = cpu_s(
                lambda base=base, head=head: list(difflib.unified_diff(base.split("\n"), head.split("\n")))
            )
            row = len(base) + len(head), ours, theirs
            answer = (
                "identical"
                if base == head
                else "equal"
                if equivalent(stage, base, head).equal
                else "different"
            )
            spent.setdefault(answer, []).append(row)
            spent.setdefault("all", []).append(row)
            total.append(row)
        for answer in sorted(spent, reverse=True):
            print_ratio(stage, answer, spent[answer])
    print_ratio("every IR", "all", total)


def print_ratio(stage: str, answer: str, rows: list[tuple[int, float, float]]) -> None:
    sizes, ours, theirs = map(sum, zip(*rows, strict=True))
    print(
        f"{stage:8} {answer:10} {len(rows):5} {sizes / 1e6:6.2f} {ours * 1e3:14.0f} {theirs * 1e3:16.0f} "
        f"{ours / theirs:6.2f}"
    )


def committed_pairs() -> dict[str, list[tuple[str, str]]]:
    return {stage: [(base.text, head.text) for base, head in pairs(stage)] for stage in STAGES[:-1]}


def pairs_of_run(folder: Path, store: Store) -> dict[str, list[tuple[str, str]]]:
    """The texts of both sides of each case, each pair of texts once."""
    digests = {
        (stage, case.artifacts.base[stage].digest, case.artifacts.head[stage].digest): None
        for case in run_folder.load(folder).cases
        for stage in STAGES[:-1]
        if stage in case.artifacts.base and stage in case.artifacts.head
    }
    found: dict[str, list[tuple[str, str]]] = {}
    for stage, *both in digests:
        base, head = ((store.get(digest) or b"").decode() for digest in both)
        found.setdefault(stage, []).append((base, head))
    return found


def bench_worst_case() -> None:
    """Two texts with nothing in common, and two with the same operations on other operands, line for line."""
    base, head = big_text("llir", 3_000_000), big_text("llir", 3_000_000, seed=1).replace("i32", "i33")
    print()
    worst_case("other texts", base, head)
    worst_case("real operations, other operands", base, re.sub(r"(?<=, )\d+", r"\g<0>7", base))
    for step in (2, 900):
        lines = [chain_of_adds(100_000, *numbers) for numbers in ((1, 1), (step, 7))]
        worst_case(f"one block of adds, operands from {step} lines above", *lines)


def chain_of_adds(count: int, back: int, factor: int) -> str:
    lines = [f"  %{n} = add i32 %{max(0, n - back)}, {n * factor}" for n in range(1, count)]
    return "\n".join(["define i32 @f(i32 %0) {", *lines, f"  ret i32 %{count - 1}", "}", ""])


def worst_case(name: str, base: str, head: str) -> None:
    comparing = cpu_s(lambda: equivalent("llir", base, head))
    view = View(context=3, raw=False, side_by_side=False, width=100)
    start = time.process_time()
    diff = stage_diff.compare("llir", base, head)
    shown = sum(1 for _ in diff_view.lines(diff, view))
    diffing = time.process_time() - start
    print(
        f"worst case, {len(base) / 1e6:.1f} MB of LLVM IR, {name}: compared in {comparing:.2f} s, diff of {shown} lines in "
        f"{diffing:.2f} s; together {comparing + diffing:.1f} s of 10"
    )


def bench_llvm() -> None:
    """On the pairs of the committed artifacts: what reading costs, and whether it changes an answer."""
    texts = [(base.text, head.text) for base, head in pairs("llir")]
    before = children_cpu_s()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.closing(LlvmReader(Path(folder, "log"))) as reader,
    ):
        lexical = [equivalent("llir", *pair) for pair in texts]
        start = time.process_time()
        asked: list[str] = []
        read = [
            equivalent("llir", *pair, reprint=lambda text: asked.append(text) or reader.reprint(text))
            for pair in texts
        ]
        parent = time.process_time() - start
    child = children_cpu_s() - before
    changed = sum(a.equal != b.equal for a, b in zip(lexical, read, strict=True))
    failed = sum(any(f.kind is FindingKind.LEXICAL_LLIR for f in b.findings) for b in read)
    print(
        f"\nllvmlite: {len(asked)} texts of {len(texts)} pairs read, {failed} not readable, {changed} answers changed; "
        f"{parent * 1e3:.0f} ms here, {child * 1e3:.0f} ms in the child, its start included"
    )


COMPILED_CASES = ("elementwise/vector_add", "normalization/softmax", "matmul/pointer:fp16-4096")


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
    store = Store(cache / "results")
    texts = []
    for case in run_folder.load(folder).cases:
        for stage in set(case.artifacts.base) & set(case.artifacts.head) - {"cubin", "hsaco"}:
            both = [store.get(side[stage].digest) for side in (case.artifacts.base, case.artifacts.head)]
            texts.append((stage, *[(content or b"").decode() for content in both]))
    before = children_cpu_s()
    start = time.process_time()
    with contextlib.closing(LlvmReader(cache / "log")) as reader:
        for stage, base, head in texts:
            equivalent(stage, base, head, reprint=reader.reprint)
    spent = time.process_time() - start
    reading = children_cpu_s() - before
    shutil.rmtree(cache)
    print(
        f"\n{len(texts)} pairs of texts compared in {spent * 1e3:.0f} ms, LLVM IR read by LLVM in "
        f"{reading * 1e3:.0f} ms; compiling them took {compiling:.1f} s of CPU time: "
        f"{spent / compiling:.2%} + {reading / compiling:.2%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--runs", type=Path, nargs="+", metavar="RUN")
    arguments = parser.parse_args()
    if arguments.runs:
        store = Store(config.load().cache / "results")
        for folder in arguments.runs:
            bench_against_difflib(str(folder), pairs_of_run(folder, store))
        return
    bench_canonical()
    bench_worst_case()
    bench_llvm()
    bench_against_difflib("committed artifacts", committed_pairs())
    if arguments.compile:
        bench_share_of_compiling()


if __name__ == "__main__":
    main()
