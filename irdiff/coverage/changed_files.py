"""Reports which changed files of a repository of kernels the compared launches read.

A launch *compiles* a file where the frontend compiled a function that the file holds, and *reads* it where
its workload opened it while it was captured (an import, a data file). What no launch reads was not compared,
nor what changed functions do, and new kernels, that neither ran nor were compiled while any workload was
captured.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from irdiff.capture.pairing import CapturedWorkload
from irdiff.coverage.changed_functions import changed_functions
from irdiff.coverage.file_functions import Place, holds_kernels
from irdiff.model import ChangedFile, FileChange, Launch, Pair, Reach, Sides
from irdiff.resolve.corpus import Corpus

_Called = Sides[set[tuple[str, Place]]]
"""Functions that ran or were compiled, by path."""
_MAX_LINKS = 40
"""As many as the kernel follows: they may lead in a circle."""


def of_revisions(
    corpora: Sides[Corpus], pairs: Sequence[Pair], captured: Sequence[CapturedWorkload]
) -> Reach | None:
    """None where the two sides are not two revisions of one repository."""
    base, head = corpora.base.files, corpora.head.files
    if base is None or head is None:
        return None
    changes, moved = _changes(base, head), _moved(base, head)
    places = corpora.map(_Places)
    compiled, readers = _compiled(pairs, places), _read(pairs, captured, places)
    for path, cases in compiled.items():
        readers[path] |= cases
    called: _Called = Sides(base=set(), head=set())
    for of_workload in captured:
        for place, catalog, ran in zip(places, of_workload.catalogs, called, strict=True):
            for path, line, name in (function.rsplit(":", 2) for function in catalog.called):
                ran.update((each, (int(line), name)) for each in place.of(path))
    return Reach(
        files=tuple(
            ChangedFile(
                path=path,
                change=change,
                compiled_by=len(compiled[path]),
                read_by=len(readers[path]),
                not_run=_not_run(
                    Sides(base=moved.get(path, path), head=path), corpora, called, is_read=bool(readers[path])
                ),
            )
            for path, change in sorted(changes.items())
        ),
        read_by=len(set().union(*(readers[path] for path in changes))),
    )


def _compiled(pairs: Iterable[Pair], places: Sides[_Places]) -> dict[str, set[str]]:
    """The cases for which the frontend compiled a function of the file, by path."""
    cases_by_path: dict[str, set[str]] = defaultdict(set)
    for pair in pairs:
        for place, launch in ((places.base, pair.base), (places.head, pair.head)):
            for source in launch.sources if isinstance(launch, Launch) else ():
                for path in place.of(source):
                    cases_by_path[path].add(pair.id)
    return cases_by_path


def _read(
    pairs: Iterable[Pair], captured: Iterable[CapturedWorkload], places: Sides[_Places]
) -> dict[str, set[str]]:
    """The cases of the workloads that opened the file, by path."""
    launched: dict[tuple[str, str], set[str]] = defaultdict(set)
    for pair in pairs:
        for launch in (pair.base, pair.head):
            if isinstance(launch, Launch):
                launched[launch.workload, pair.target.name].add(pair.id)
    cases_by_path: dict[str, set[str]] = defaultdict(set)
    for of_workload in captured:
        for place, catalog in places.zip(of_workload.catalogs):
            for path in (path for name in catalog.read for path in place.of(name)):
                cases_by_path[path] |= launched[of_workload.workload, of_workload.target.name]
    return cases_by_path


def _not_run(paths: Sides[str], corpora: Sides[Corpus], called: _Called, *, is_read: bool) -> tuple[str, ...]:
    """Changed functions and new kernels that neither side ran or compiled.

    None of a file that no launch reads, unless it holds kernels: it is a test or a script. And none of a file
    without `.py`, unless some function of it ran.
    """
    files = corpora.zip(paths).map(lambda side: side[0].root / side[1])
    if not files.head.is_file() or not (paths.head.endswith(".py") or _ran(paths, called)):
        return ()
    contents = files.map(lambda file: file.read_bytes() if file.is_file() else b"")
    if not is_read and not holds_kernels(contents.head):
        return ()
    try:
        functions = changed_functions(*contents)
    except SyntaxError:
        version = ".".join(map(str, sys.version_info[:2]))
        return (f"any of {files.head.name} (Python {version} cannot parse it)",)
    sides = list(zip(paths, called, strict=True))
    names = [
        function.name
        for function in functions
        if not any(
            (path, place) in ran
            for (path, ran), places in zip(sides, function.places, strict=True)
            for place in places
        )
    ]
    return tuple(dict.fromkeys(names))


def _ran(paths: Sides[str], called: _Called) -> bool:
    """True if a function of the file ran, so that it holds Python, whatever its name is."""
    return any(path == of for path, ran in paths.zip(called) for of, _ in ran)


def _changes(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, FileChange]:
    removed = dict.fromkeys(base.keys() - head.keys(), FileChange.REMOVED)
    added = dict.fromkeys(head.keys() - base.keys(), FileChange.ADDED)
    edited = {path for path in base.keys() & head.keys() if base[path] != head[path]}
    return {**removed, **added, **dict.fromkeys(edited, FileChange.CHANGED)}


def _moved(base: Mapping[str, str], head: Mapping[str, str]) -> dict[str, str]:
    """Path at head → path at base of files that were moved and not edited."""
    removed = {content: path for path, content in base.items() if path not in head}
    return {
        path: removed[content] for path, content in head.items() if path not in base and content in removed
    }


class _Places:
    """Files of a revision by their path in the repository."""

    def __init__(self, corpus: Corpus) -> None:
        self._root = corpus.root
        self._by_name: dict[str, tuple[str, ...]] = {}

    def of(self, name: str) -> tuple[str, ...]:
        """The file and the links of the repository that lead to it: who follows a link reads it."""
        if name not in self._by_name:
            path, root = self._root / name, self._root.resolve()
            places = [place for place in _links(path) if place.is_relative_to(self._root)]
            inside = [str(place.relative_to(self._root)) for place in places]
            real = path.resolve()
            self._by_name[name] = (
                *inside,
                *([str(real.relative_to(root))] if real.is_relative_to(root) else ()),
            )
        return self._by_name[name]


def _links(path: Path, left: int = _MAX_LINKS) -> Iterator[Path]:
    """Every symbolic link on the way to a file, by its own place."""
    for place in (*reversed(path.parents), path):
        if left and place.is_symlink():
            link = Path(os.path.normpath(place))  # above it there is no other
            yield link
            yield from _links(link.parent / link.readlink() / path.relative_to(place), left - 1)
            return
