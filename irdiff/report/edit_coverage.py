"""Says how much of the edit between two revisions the launches read, compile and run."""

from __future__ import annotations

import bisect
import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from irdiff.backends import BACKENDS
from irdiff.model import ChangedFile, Edited, EditedFile, EditedLine, EditedLines, EditedSource, Run
from irdiff.words import counted, first_few

_SHOWN = 4
_NAMED = 3
_NATIVE = "native code"
_SOURCES = frozenset({".py", ".c", ".cc", ".cpp", ".h", ".hpp"}).union(
    *(b.SOURCES for b in BACKENDS.values())
)


def sentences(run: Run) -> list[str]:
    files = files_sentence(run) or differences(run)
    return [text for text in (files, lines_sentence(run)) if text]


# files that differ


def same_compiler(run: Run) -> bool:
    """Not with `--no-cache`, which compares cases anyway."""
    return run.edited is not None and run.edited.identical and not run.cases


def identical(edited: Edited) -> str:
    looked_at = f"({counted(len(edited.files), 'file')} looked at)"
    if edited.of_kernels:
        return "no file differs: nothing was compared"
    return f"identical compilers: nothing can change {looked_at}"


def differences(run: Run) -> str:
    """Empty if `files_sentence` says more."""
    if not run.edited or not run.edited.files or run.reach:
        return ""
    same = run.base.digest == run.head.digest and not run.edited.of_kernels and not run.edited.identical
    runtime = "; both sides have the same compiler all the same, byte by byte" if same else ""
    return differing(run.edited) + runtime


def differing(edited: Edited) -> str:
    """`14 files differ: native code (lib/Analysis/AxisInfo.cpp), tests (11), documents (2)`."""
    relevant = [file for file in edited.files if file.counts]
    parts = [
        f"{word} ({f'{count}: ' if count > 1 else ''}{_paths(relevant, word)})"
        for word, count in _counted(relevant)
    ]
    parts += [f"{word} ({n})" for word, n in _counted([file for file in edited.files if not file.counts])]
    count = len(edited.files)
    return f"{counted(count, 'file')} {'differs' if count == 1 else 'differ'}: {', '.join(parts)}"


def consequence(edited: Edited) -> str:
    if edited.identical:
        return identical(edited)
    if edited.of_kernels:
        return ""
    if any(_NATIVE in file.feeds for file in edited.files):
        return "native code differs: each side needs a native build of its own"
    return "only Python differs: both sides share one native build"


def _counted(files: Sequence[EditedFile]) -> list[tuple[str, int]]:
    """A file may belong to two parts."""
    counts = Counter(word for file in files for word in file.feeds)
    return sorted(counts.items(), key=lambda file: (-file[1], file[0]))


def _paths(files: Sequence[EditedFile], word: str) -> str:
    return first_few([file.path for file in files if word in file.feeds], _SHOWN)


# files that launches read


def _files(run: Run) -> tuple[ChangedFile, ...]:
    return run.reach.files if run.reach else ()


def none_read(run: Run) -> list[str]:
    files = _files(run)
    sources = [file.path for file in files if PurePosixPath(file.path).suffix in _SOURCES]
    return [] if any(file.read_by for file in files) else sources


def _unreached(run: Run) -> tuple[list[tuple[str, str]], list[ChangedFile]]:
    """Returns functions with their file, and files that no launch reads."""
    idle = [(name, file.path) for file in _files(run) for name in file.not_run]
    return idle, [file for file in _files(run) if not (file.read_by or file.not_run)]


def not_looked_at(run: Run) -> list[str]:
    """Lists clauses for what differs, or may differ, and is in no case. Without any the run is whole."""
    runtime = (
        ["files of Triton that run at a launch differ, and what they do was not compared"]
        if run.runtime
        else []
    )
    clauses = [*_not_reached(run), *runtime, *run.unexamined[:_SHOWN]]
    if rest := len(run.unexamined[_SHOWN:]):
        were = "was" if rest == 1 else "were"
        clauses.append(f"{counted(rest, 'more thing')} {were} not compared: see the notes")
    return clauses


def _not_reached(run: Run) -> list[str]:
    """`2 new or changed functions are run by no launch: gemm, rope`."""
    idle, unread = _unreached(run)
    files = [file.path for file in unread if PurePosixPath(file.path).suffix in _SOURCES]
    unreached = (
        ("run", "new or changed function", [name for name, _ in idle]),
        ("read", "changed source file", files),
    )
    clauses = [
        f"{counted(len(names), noun)} {'is' if len(names) == 1 else 'are'} {participle} by no launch: "
        f"{first_few(names, _NAMED)}"
        for participle, noun, names in unreached
        if names
    ]
    return [*clauses, *(["no case runs an edited line"] if no_line_ran(run) else [])]


def files_read(run: Run) -> int:
    return sum(file.read_by > 0 for file in _files(run))


def files_sentence(run: Run) -> str:
    """`3 files changed: 41 cases read 2 of them; not compared: kernels/rope.py, which no launch reads`, or
    empty.
    """
    idle, unread = _unreached(run)
    if not run.reach or not run.reach.files:
        return ""
    files = [file for file in run.reach.files if file.read_by]
    # the files of workloads call kernels and need not hold any
    launching = {f"{case.workload}.py" for case in run.cases}
    only_read = [
        file
        for file in files
        if file.path.endswith(".py")
        and not file.compiled_by
        and PurePosixPath(*PurePosixPath(file.path).parts[-2:]).as_posix() not in launching
    ]
    parts = [f"{counted(len(run.reach.files), 'file')} changed"]
    if files:
        verb = "reads" if run.reach.read_by == 1 else "read"
        which = "it" if len(run.reach.files) == 1 else f"{len(files)} of them"
        parts.append(f"{counted(run.reach.read_by, 'case')} {verb} {which}")
    if only_read:
        parts.append(f"read, but no kernel of it was compiled: {_names(only_read)}")
    if idle:
        of_file: dict[str, list[str]] = {}
        for name, path in idle:
            of_file.setdefault(path, []).append(name)
        words = (f"{first_few(names, _SHOWN)} ({file})" for file, names in of_file.items())
        parts.append(f"not compared: {first_few([*words], _SHOWN)}, which no launch runs")
    if unread:
        parts.append(f"not compared: {_names(unread)}, which no launch reads")
    return "; ".join(parts)


def _names(files: Sequence[ChangedFile]) -> str:
    """Puts Python files first."""
    paths = (file.path for file in files)
    return first_few(sorted(paths, key=lambda path: (not path.endswith(".py"), path)), _SHOWN)


# edited lines of a compiler


def lines_sentence(run: Run) -> str:
    """`31 of 40 edited lines ran, in 12 of 96 cases`; empty if lines were not counted."""
    edited = run.edited_lines
    if not edited:
        return ""
    code = _code(edited)
    ran = sum(line.cases > 0 for line in code)
    parts = ["no edited line holds code that can run"]
    if code:
        cases = counted(edited.cases, "case")
        parts = [f"{ran} of {counted(len(code), 'edited line')} ran, in {edited.executed_by} of {cases}"]
    if edited.unmeasured:
        parts.append(f"{counted(edited.unmeasured, 'case')} not counted: the compiler died")
    if edited.without_lines:
        parts.append(f"without line coverage: {first_few(edited.without_lines, _SHOWN)}")
    return "; ".join(parts)


def no_line_ran(run: Run) -> bool:
    edited = run.edited_lines
    code = _code(edited) if edited else []
    return bool(edited and code and not edited.unmeasured) and not any(line.cases for line in code)


def _code(edited: EditedLines) -> list[EditedLine]:
    return [line for source in edited.sources for line in source.lines]


def lines_not_run(run: Run) -> list[str]:
    """Formats `lib/Analysis/AxisInfo.cpp:120-124` and the text of its first line. Consecutive lines of one
    hunk, apart from comments between them, are one place.
    """
    sources = run.edited_lines.sources if run.edited_lines else ()
    return [place for source in sources for place in _not_run(source)]


def _not_run(source: EditedSource) -> Iterator[str]:
    """A line that runs ends a place, and so does the end of its hunk."""
    begins = [first for first, _ in source.hunks]

    def hunk(line: EditedLine) -> tuple[int, bool]:
        return bisect.bisect_right(begins, line.number), line.cases > 0

    for (_, ran), group in itertools.groupby(source.lines, hunk):
        first, *others = group
        if not ran:
            end = f"-{others[-1].number}" if others else ""
            yield f"{source.path}:{first.number}{end}  {first.text}"
