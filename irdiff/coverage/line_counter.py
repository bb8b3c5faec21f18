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
from irdiff.model import EditedLine, EditedLines, EditedSource, Launch, Pair, Target
from irdiff.parallel import Report, in_parallel
from irdiff.resolve.sides import Side
from irdiff.resolve.toolchains.counting import CountingToolchain
from irdiff.resolve.toolchains.line_counting import ROOT

_TIMEOUT_S = 120.0
_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class CaseLines:
    """The edited lines of one case, by path."""

    case_id: str
    code: Mapping[str, Sequence[int]]
    """Those that hold code. They are the same for every case."""
    ran: Mapping[str, Sequence[int]]


def of_edited(
    head: Side, pairs: Sequence[Pair], compiler: WorkerCompiler, report: Report
) -> EditedLines | None:
    """Which edited lines the launches of head run; None where head's compiler was not built to count them."""
    counting = head.counting
    if counting is None:
        return None
    launches = [(pair.head, pair.target) for pair in pairs if isinstance(pair.head, Launch)]
    rows = in_parallel(
        lambda job: _of_launch(head, counting, compiler, *job),
        launches,
        compiler.requests.config.jobs,
        "edited lines",
        report,
    )
    return summarize(counting, len(launches), (lines for lines in rows if lines is not None))


def _of_launch(
    head: Side, counting: CountingToolchain, compiler: WorkerCompiler, launch: Launch, target: Target
) -> CaseLines | None:
    """None where the compiler left no whole profile: it crashed, or was ended."""
    with compiler.store.scratch() as folder:
        profile = folder / "counters"
        compiler.count_lines(counting.toolchain, head, launch, target, profile)
        if not profile.exists():
            return None
        merged, tools = profile.with_suffix(".merged"), counting.tools
        words = ("export", "-format=lcov", counting.library, f"-instr-profile={merged}")
        try:
            _run(tools / "llvm-profdata", "merge", "-sparse", profile, "-o", merged)
            counts = line_counts(_run(tools / "llvm-cov", *words))
        except process.CommandFailed:
            return None  # torn: the compiler was ended while it wrote
    edited = counting.edit.lines
    lines_by_path = {path: counts.get(f"{ROOT}/{path}", {}) for path in edited}
    code = {path: sorted(lines_by_path[path].keys() & edited[path].keys()) for path in edited}
    ran = {path: [number for number in code[path] if lines_by_path[path][number]] for path in edited}
    return CaseLines(case_id=f"{launch.id}@{target.name}", code=code, ran=ran)


def line_counts(lcov: str) -> dict[str, dict[int, int]]:
    """By file and line how often it ran, from lcov's text form.

    `SF:` names a file, which may be there more than once, `DA:LINE,COUNT` one of its lines that holds code.
    """
    counts_by_path: dict[str, dict[int, int]] = {}
    file: dict[int, int] = {}
    for line in lcov.split("\n"):
        if line.startswith("SF:"):
            file = counts_by_path.setdefault(line[3:], {})
        elif line.startswith("DA:"):
            number, count = map(int, line[3:].split(",")[:2])
            file[number] = file.get(number, 0) + count
    return counts_by_path


def _run(*words: str | Path) -> str:
    return process.run(words, timeout_s=_TIMEOUT_S)


def summarize(counting: CountingToolchain, case_count: int, measured: Iterable[CaseLines]) -> EditedLines:
    """Over all cases. Of `asked` cases those that are not in `found` left no profile."""
    rows = sorted(measured, key=lambda case_lines: case_lines.case_id)
    running = [case_lines.case_id for case_lines in rows if any(case_lines.ran.values())]
    sources = []
    for path, texts in sorted(counting.edit.lines.items()):
        code = sorted({number for case_lines in rows for number in case_lines.code.get(path, ())})
        lines = (
            EditedLine(
                number=number,
                text=texts[number].strip(),
                cases=sum(number in case_lines.ran.get(path, ()) for case_lines in rows),
            )
            for number in code
        )
        sources.append(EditedSource(path=path, hunks=tuple(_hunks(sorted(texts))), lines=tuple(lines)))
    return EditedLines(
        sources=tuple(sources),
        cases=len(rows),
        unmeasured=case_count - len(rows),
        executed_by=len(running),
        examples=tuple(running[:_EXAMPLES]),
        without_lines=counting.edit.without_lines,
    )


def _hunks(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Numbers in a row as the first and the last."""
    for _, consecutive in itertools.groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        hunk = [number for _, number in consecutive]
        yield hunk[0], hunk[-1]
