"""What normalizing and comparing costs, in CPU time, on the committed artifacts.

python -m tests.programs.bench_normalize             canonical form of each IR, comparisons, llvmlite
python -m tests.programs.bench_normalize --compile   also the share in the CPU time of compiling two releases
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from irdiff.findings import FindingKind
from irdiff.normalize import canonicalize, equivalent
from irdiff.normalize.llvm_process import LlvmReader
from irdiff.run import run_folder
from irdiff.store import Store
from tests.programs.bench import PLAINLY, children_cpu_s, fresh_cache, irdiff
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


def bench_against_difflib() -> None:
    """By what the answer is; a pair that differs also pays for the facts of how it differs."""
    print(
        f"\n{'IR':8} {'answer':10} {'pairs':>5} {'MB':>6} {'equivalent ms':>14} {'unified_diff ms':>16} {'ratio':>6}"
    )
    spent: dict[tuple[str, str], list[tuple[int, float, float]]] = {}
    for stage in STAGES[:-1]:
        for base, head in ((base.text, head.text) for base, head in pairs(stage)):
            ours = cpu_s(lambda stage=stage, base=base, head=head: equivalent(stage, base, head))
            theirs = cpu_s(
                lambda base=base, head=head: list(difflib.unified_diff(base.split("\n"), head.split("\n")))
            )
            same = equivalent(stage, base, head).equal
            answer = "identical" if base == head else "equal" if same else "different"
            for row in ((stage, answer), (stage, "all"), ("every IR", "all")):
                spent.setdefault(row, []).append((len(base) + len(head), ours, theirs))
    for (stage, answer), rows in spent.items():
        sizes, ours, theirs = map(sum, zip(*rows, strict=True))
        print(
            f"{stage:8} {answer:10} {len(rows):5} {sizes / 1e6:6.2f} {ours * 1e3:14.0f} {theirs * 1e3:16.0f} "
            f"{ours / theirs:6.2f}"
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
    cache = fresh_cache()
    words = [word for pattern in COMPILED_CASES for word in ("--case", pattern)]
    folder = cache / "run"
    sides = ("triton==3.8.0", "triton==3.9.0")
    cost = irdiff("compare", *sides, *words, *PLAINLY, "--out", folder, cache=cache)
    compiling = cost.cpu_s - cost.own_cpu_s
    store = Store(cache / "results")
    texts = []
    for case in run_folder.load(folder).cases:
        for stage in set(case.artifacts.base) & set(case.artifacts.head) - {"cubin", "hsaco"}:
            both = [store.get(side[stage].digest) for side in case.artifacts]
            texts.append((stage, *[(content or b"").decode() for content in both]))
    before = children_cpu_s()
    start = time.process_time()
    with contextlib.closing(LlvmReader(cache / "log")) as reader:
        for stage, base, head in texts:
            equivalent(stage, base, head, reprint=reader.reprint)
    spent = time.process_time() - start
    reading = children_cpu_s() - before
    shutil.rmtree(cache.parent)
    print(
        f"\n{len(texts)} pairs of texts compared in {spent * 1e3:.0f} ms, LLVM IR read by LLVM in "
        f"{reading * 1e3:.0f} ms; compiling them took {compiling:.1f} s of CPU time: "
        f"{spent / compiling:.2%} + {reading / compiling:.2%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    bench_canonical()
    bench_llvm()
    bench_against_difflib()
    if arguments.compile:
        bench_share_of_compiling()


if __name__ == "__main__":
    main()
