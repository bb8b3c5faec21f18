"""Which edited lines of head's compiler run, in which cases.

A compiler that was built to count its lines (`resolve.toolchains.counting`) compiles each case once more
and leaves one profile a case, which clang's own tools read. So a report can tell an edit that ran and
changed nothing from one that no case reaches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff import process
from irdiff.compile.worker_compiler import WorkerCompiler
from irdiff.model import EditedLine, EditedLines, EditedSource, Launch, Target
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains.building.line_counting import ROOT
from irdiff.resolve.toolchains.counting import CountingToolchain
from irdiff.store import Store

_TIMEOUT_S = 120.0
_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class CaseLines:
    """The edited lines of one case, by path."""

    case_id: str
    code: Mapping[str, Sequence[int]]
    """Those that hold code. They are the same for every case."""
    ran: Mapping[str, Sequence[int]]


@dataclass(frozen=True, kw_only=True)
class LineCounter:
    """Asks one compiler that counts. Thread-safe."""

    side: Side
    """Head, whose launches are compiled."""
    counting: CountingToolchain
    compiler: WorkerCompiler
    store: Store

    def of_launch(self, launch: Launch, target: Target) -> CaseLines | None:
        """None where the compiler left no whole profile: it crashed, or was ended."""
        with self.store.scratch() as folder:
            profile = folder / "counters"
            self.compiler.count_lines(
                self.counting.toolchain, self.side.toolchain, self.side.corpus, launch, target, profile
            )
            try:
                counts = self._counts(profile) if profile.exists() else None
            except process.CommandFailed:
                return None  # torn: the compiler was ended while it wrote
        if counts is None:
            return None
        edited = self.counting.edit.lines
        found = {path: counts.get(f"{ROOT}/{path}", {}) for path in edited}
        code = {path: sorted(found[path].keys() & edited[path].keys()) for path in edited}
        ran = {path: [number for number in code[path] if found[path][number]] for path in edited}
        return CaseLines(case_id=f"{launch.id}@{target.name}", code=code, ran=ran)

    def _counts(self, profile: Path) -> dict[str, dict[int, int]]:
        merged, tools = profile.with_suffix(".merged"), self.counting.tools
        _run(tools / "llvm-profdata", "merge", "-sparse", profile, "-o", merged)
        words = ("export", "-format=lcov", self.counting.library, f"-instr-profile={merged}")
        return line_counts(_run(tools / "llvm-cov", *words))


def line_counts(lcov: str) -> dict[str, dict[int, int]]:
    """By file and line how often it ran, from lcov's text form.

    `SF:` names a file, which may be there more than once, `DA:LINE,COUNT` one of its lines that holds code.
    """
    found: dict[str, dict[int, int]] = {}
    file: dict[int, int] = {}
    for line in lcov.split("\n"):
        if line.startswith("SF:"):
            file = found.setdefault(line[3:], {})
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            file[number] = file.get(number, 0) + count
    return found


def _run(*words: str | Path) -> str:
    return process.run(words, timeout_s=_TIMEOUT_S)


def summarize(counting: CountingToolchain, asked: int, found: Iterable[CaseLines]) -> EditedLines:
    """Over all cases. Of `asked` cases those that are not in `found` left no profile."""
    rows = sorted(found, key=lambda row: row.case_id)
    running = [row.case_id for row in rows if any(row.ran.values())]
    sources = []
    for path, texts in sorted(counting.edit.lines.items()):
        code = sorted({number for row in rows for number in row.code.get(path, ())})
        lines = (
            EditedLine(
                number=number,
                text=texts[number].strip(),
                cases=sum(number in row.ran.get(path, ()) for row in rows),
            )
            for number in code
        )
        sources.append(EditedSource(path=path, hunks=tuple(_hunks(sorted(texts))), lines=tuple(lines)))
    return EditedLines(
        sources=tuple(sources),
        cases=len(rows),
        unmeasured=asked - len(rows),
        executed_by=len(running),
        examples=tuple(running[:_EXAMPLES]),
        without_lines=counting.edit.without_lines,
    )


def _hunks(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Numbers in a row as the first and the last."""
    for _, row in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        hunk = [number for _, number in row]
        yield hunk[0], hunk[-1]
