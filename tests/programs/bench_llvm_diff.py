"""llvm-diff on the pairs that irdiff compares: what each costs in CPU time, and what llvm-diff does not see.

    python -m tests.programs.bench_llvm_diff [--mutants 4]

Pairs are the LLVM IR of the committed artifacts in successive releases, as llvmlite's LLVM prints it: both
tools get the same texts, and an llvm-diff of that LLVM or a later one reads them all. The newest `llvm-diff`
on PATH is taken (Debian and Ubuntu: the package llvm-22); without one nothing is measured, and this is said.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from irdiff.normalize import equivalent, llvm_reader
from irdiff.normalize.llvm_process import LlvmReader
from tests.programs.bench import children_cpu_s
from tests.programs.bench_normalize import cpu_s, pairs
from tests.programs.mutation import meaningful
from tests.programs.mutation.editing import Mutation
from tests.programs.mutation.suite import STAGES, mutants

_VERSION = re.compile(r"LLVM version (\d+)\.(\d+)\.(\d+)")
_CANNOT_READ = re.compile(rb"(?:base|head)\.ll:\d+:\d+: error: ")
_STARTS = 50
_EMPTY = "; nothing\n"


@dataclass(frozen=True, kw_only=True)
class Pair:
    """One kernel and target in two releases: as compiled, and as LLVM prints it."""

    raw: tuple[str, str]
    printed: tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class LlvmDiff:
    tool: Path
    version: tuple[int, ...]
    folder: Path

    def answer(self, base: str, head: str) -> tuple[bool | None, float]:
        """Whether it calls them the same (None: it cannot read them), and its CPU seconds."""
        paths = [self.folder / "base.ll", self.folder / "head.ll"]
        for path, text in zip(paths, (base, head), strict=True):
            path.write_text(text)
        before = children_cpu_s()
        done = subprocess.run([self.tool, *paths], capture_output=True, check=False)
        spent = children_cpu_s() - before
        if done.returncode not in (0, 1) or _CANNOT_READ.search(done.stderr):
            return None, spent
        return done.returncode == 0 and not done.stderr, spent


def find_llvm_diff(folder: Path) -> LlvmDiff | None:
    """The newest on PATH, under its plain name or one with a version (`llvm-diff-22`)."""
    names = {"llvm-diff"}
    for place in os.get_exec_path():
        names |= {path.name for path in Path(place).glob("llvm-diff-*")}
    found = []
    for tool in filter(None, map(shutil.which, sorted(names))):
        said = subprocess.run([tool, "--version"], capture_output=True, text=True, check=False).stdout
        version = _VERSION.search(said)
        if version:
            found.append(LlvmDiff(tool=Path(tool), version=tuple(map(int, version.groups())), folder=folder))
    return max(found, key=lambda tool: tool.version, default=None)


def readable_pairs() -> list[Pair]:
    found = []
    for base, head in pairs("llir"):
        ours, theirs = llvm_reader.reprint(base.text), llvm_reader.reprint(head.text)
        if ours.text is not None and theirs.text is not None:
            found.append(Pair(raw=(base.text, head.text), printed=(ours.text, theirs.text)))
    return found


def measure(tool: LlvmDiff, found: Sequence[Pair]) -> None:
    start_s = sum(tool.answer(_EMPTY, _EMPTY)[1] for _ in range(_STARTS)) / _STARTS
    spent: dict[str, list[tuple[int, float, float]]] = defaultdict(list)
    answers: Counter[tuple[bool, bool]] = Counter()
    for pair in found:
        base, head = pair.printed
        theirs, theirs_s = tool.answer(base, head)
        if theirs is None:
            continue
        ours = equivalent("llir", base, head).equal
        ours_s = cpu_s(lambda base=base, head=head: equivalent("llir", base, head))  # type: ignore[misc]
        answers[ours, theirs] += 1
        name = "identical" if base == head else "equal" if ours else "different"
        for row in (name, "all"):
            spent[row].append((len(base) + len(head), ours_s, theirs_s))
    print(
        f"llvm-diff {'.'.join(map(str, tool.version))}, {len(spent['all'])} of {len(found)} pairs read; its start, "
        f"on two empty modules: {start_s * 1e3:.1f} ms\n"
        f"{'answer':10} {'pairs':>5} {'MB':>6} {'equivalent ms':>14} {'llvm-diff ms':>13} {'ratio':>6} "
        f"{'without start ms':>17} {'ratio':>6}"
    )
    for name, rows in sorted(spent.items(), reverse=True):
        size, ours_s, theirs_s = map(sum, zip(*rows, strict=True))
        bare_s = theirs_s - start_s * len(rows)
        print(
            f"{name:10} {len(rows):5} {size / 1e6:6.2f} {ours_s * 1e3:14.0f} {theirs_s * 1e3:13.0f} "
            f"{ours_s / theirs_s:6.2f} {bare_s * 1e3:17.0f} {ours_s / bare_s:6.2f}"
        )
    print(
        f"answers: both equal {answers[True, True]}, both different {answers[False, False]}, "
        f"equal for llvm-diff alone {answers[False, True]}, for irdiff alone {answers[True, False]}"
    )


def measure_as_compiled(tool: LlvmDiff, found: Sequence[Pair]) -> None:
    """On the texts as they come, those that llvm-diff reads: irdiff has LLVM read what is not settled without."""
    answers = [(pair, *tool.answer(*pair.raw)) for pair in found]
    read = [pair for pair, answer, _ in answers if answer is not None]
    theirs_s = sum(spent_s for _, answer, spent_s in answers if answer is not None)
    before = children_cpu_s()
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(LlvmReader(Path(folder, "log"))) as reader,
    ):
        here_s = cpu_s(lambda: [equivalent("llir", *pair.raw, reprint=reader.reprint) for pair in read])
    child_s = children_cpu_s() - before
    print(
        f"\nas compiled: llvm-diff reads {len(read)} of {len(found)} pairs, {theirs_s * 1e3:.0f} ms; on these irdiff "
        f"{here_s * 1e3:.0f} ms, and {child_s * 1e3:.0f} ms in its child that reads, whose start is counted: "
        f"ratio {(here_s + child_s) / theirs_s:.2f}"
    )


def what_it_does_not_see(tool: LlvmDiff, per_kind: int, seed: int = 1) -> None:
    """Mutants of a changed meaning that LLVM reads and prints as another text."""
    none: Mapping[str, Mutation] = {}
    table = {stage: meaningful.BY_STAGE[stage] if stage == "llir" else none for stage in STAGES}
    asked: Counter[str] = Counter()
    unseen: Counter[str] = Counter()
    ours = 0
    for _, kind, artifact, mutant, _ in mutants(table, per_kind, seed):
        base, head = llvm_reader.reprint(artifact.text), llvm_reader.reprint(mutant)
        if base.text is None or head.text is None or base.text == head.text:
            continue
        answer, _ = tool.answer(base.text, head.text)
        if answer is None:
            continue
        asked[kind] += 1
        unseen[kind] += answer
        ours += equivalent("llir", artifact.text, mutant, reprint=llvm_reader.reprint).equal
    print(
        f"\nmutants of another meaning: {asked.total()} of {len(asked)} kinds; llvm-diff calls {unseen.total()} equal, "
        f"irdiff {ours}. By kind, what llvm-diff does not see:"
    )
    for kind, count in sorted(unseen.items()):
        if count:
            print(f"  {kind:34} {count} of {asked[kind]}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.programs.bench_llvm_diff")
    parser.add_argument("--mutants", type=int, default=4, metavar="N", help="of each kind; 0: none")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tool = find_llvm_diff(Path(folder))
        if tool is None:
            print("llvm-diff is not installed (nothing of that name on PATH): not measured")
            return
        found = readable_pairs()
        measure(tool, found)
        measure_as_compiled(tool, found)
        if arguments.mutants:
            what_it_does_not_see(tool, arguments.mutants)


if __name__ == "__main__":
    main()
