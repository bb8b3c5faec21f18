"""Notes of a run on its captures: missing packages, made-up answers, configs left out."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath

from irdiff import case_ids
from irdiff.capture.pairing import CapturedWorkload
from irdiff.capture.program_failures import FRAME, NOT_THE_PROGRAMS
from irdiff.model import Failure, Sides
from irdiff.resolve.sides import Side
from irdiff.words import counted, first_few

_MISSING = re.compile(
    r"ModuleNotFoundError: No module named '([\w.]+)'|PackageNotFoundError: .*? for ([\w.-]+)"
)
_MAX_NAMES = 3
_MAX_CAVEATS = 5


def notes(
    captured: Sequence[CapturedWorkload], sides: Sides[Side], withheld: Collection[str] = ()
) -> list[str]:
    """withheld: names of variables of the user's shell that programs do not get."""
    return [
        *missing_packages(captured, sides),
        *_undigested(captured),
        *_caveats(captured),
        *_variables(captured, withheld),
        *_configs_left_out(captured),
    ]


def cleared(variables: Sequence[str]) -> list[str]:
    """Names the caller's variables that compilers do not see."""
    if not variables:
        return []
    names = first_few(variables, _MAX_NAMES)
    return [f"variables of the shell that no compiler saw: {names}; each side has its own defaults"]


_UNMATCHED = " matches no case"


def is_unmatched(note: str) -> bool:
    return note.startswith("--case ") and note.endswith(_UNMATCHED)


def patterns(typed: Mapping[str, tuple[str, ...]], cases: Sequence[str]) -> Iterator[str]:
    """Notes each `--case` that was a part of a name or matches no case."""
    for pattern, names in typed.items():
        unmatched = set(case_ids.unmatched(names, cases))
        matched = [name for name in names if name not in unmatched]
        if not matched:
            yield f"--case {pattern}{_UNMATCHED}"
        elif [case_ids.typed(name) for name in names] != [pattern]:
            whole = [case_ids.typed(name) for name in matched]
            yield f"--case {pattern} is a part of {first_few(whole, _MAX_NAMES)}"


def missing_packages(captured: Iterable[CapturedWorkload], sides: Sides[Side]) -> list[str]:
    """Returns a sentence for each package that a side lacks, with what to type."""
    lacking: dict[tuple[str, str, str, str], dict[str, str]] = {}
    """By package, toolchain, interpreter and own folder, {workload: file that imports the package}."""
    for of_workload in captured:
        for catalog, side in zip(of_workload.catalogs, sides, strict=True):
            for failure in (entry.failure for entry in catalog.failures):
                if match := _MISSING.search(failure.message):
                    package = (match[1] or match[2]).partition(".")[0]
                    own = _folder_of(package, side.corpus.files or ())
                    lack = (package, side.toolchain.spec, side.toolchain.python, own)
                    lacking.setdefault(lack, {})[of_workload.workload] = _importer(
                        failure, of_workload.workload
                    )
    return [_sentence(*lack, sorted({*of.values()}), sorted(of)) for lack, of in lacking.items()]


def _importer(failure: Failure, workload: str) -> str:
    """Returns the nearest file of the user's in the traceback."""
    before = failure.stderr.rpartition(failure.message[:40])[0] or failure.stderr
    paths = [path for path, _ in FRAME.findall(before)]
    own = [path for path in paths if not any(mark in path for mark in NOT_THE_PROGRAMS)]
    return own[-1] if own else f"{workload}.py"


def _folder_of(package: str, paths: Iterable[str]) -> str:
    """Returns nothing if the repository has no package or module of that name."""
    for path in map(PurePosixPath, paths):
        for place in (path, *path.parents):
            if place.name in (package, f"{package}.py"):
                return str(place.parent)
    return ""


def _sentence(package: str, spec: str, python: str, own: str, files: list[str], workloads: list[str]) -> str:
    count = f"{len(workloads)} workloads are" if len(workloads) > 1 else f"the workload {workloads[0]} is"
    more = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    lack = (
        f"{files[0]}{more} needs the package {package}, which is not installed with {spec}: "
        f"{count} not compared"
    )
    if own:  # never a name of the user's from the index: whoever has it there would run code
        return f'{lack}; next: the repository has it, name its folder: import = ["{own}"] below [kernels]'
    if spec.startswith("python:"):
        return f"{lack}; next: {python} -m pip install {package}"
    return (
        f'{lack}; next: compare again --with {package}, or write packages = ["{package}"] below [kernels] in '
        "irdiff.toml"
    )


def _undigested(captured: Iterable[CapturedWorkload]) -> Iterator[str]:
    for of_workload in captured:
        place = f"{of_workload.workload}@{of_workload.target.name}"
        for side, catalog in of_workload.catalogs.items():
            if catalog.undigested and catalog.launches:
                yield (
                    f"{place} was captured at {side} without the frontend "
                    f"({catalog.undigested}): its launches have no digest, all of them are compiled, and "
                    "edits of one file may be listed as several; next: --timeout or --memory gives more"
                )


def at_lines(caveats: Iterable[tuple[str, int, str]], most: int = _MAX_NAMES) -> list[str]:
    """Joins the lines of each file and reason: `ops/ce.py:12, 15 and 3 more reads …`. Of more lines than
    `most` the rest is counted.
    """
    lines: dict[tuple[str, str], set[int]] = {}
    for path, line, words in caveats:
        lines.setdefault((path, words), set()).add(line)
    return [
        f"{path}:{first_few([*map(str, sorted(of))], most)} {words}" if path else words
        for (path, words), of in lines.items()
    ]


def _caveats(captured: Iterable[CapturedWorkload]) -> list[str]:
    catalogs = (catalog for each in captured for catalog in each.catalogs)
    caveats = at_lines(caveat for catalog in catalogs for caveat in catalog.caveats)
    more = len(caveats) - _MAX_CAVEATS
    return [*caveats[:_MAX_CAVEATS], *([f"{counted(more, 'more note')} like these"] if more > 0 else [])]


def _variables(captured: Iterable[CapturedWorkload], withheld: Collection[str]) -> Iterator[str]:
    catalogs = (catalog for each in captured for catalog in each.catalogs)
    looked_for = sorted({place for catalog in catalogs for place in catalog.absent_variables})
    first = {name: f"{path}:{line}" for path, line, name in reversed(looked_for) if name in withheld}
    if first:
        names = first_few([f"{name} ({first[name]})" for name in sorted(first)], _MAX_NAMES)
        yield f"programs looked for variables of your shell, which they do not get: {names}"


def _configs_left_out(captured: Iterable[CapturedWorkload]) -> Iterator[str]:
    left_out: dict[tuple[str, str], int] = {}
    at_most: int | None = None
    for of_workload in captured:
        for catalog in of_workload.catalogs:
            at_most = catalog.selection.configs if catalog.left_out else at_most
            for kernel, count in catalog.left_out.items():
                left_out[of_workload.workload, kernel] = max(
                    count, left_out.get((of_workload.workload, kernel), 0)
                )
    if left_out:
        first = "first config of each autotuner was"
        if at_most != 1:
            first = f"first {at_most} configs of each autotuner were"
        others = f"{counted(sum(left_out.values()), 'config')} of {counted(len(left_out), 'kernel')}"
        yield f"only the {first} compared (--configs): {others} left out"
