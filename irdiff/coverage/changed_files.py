"""Reports which changed files of a repository of kernels the compared launches read.

A launch *compiles* a file where the frontend compiled a function that the file holds, and *reads* it where
its workload opened it while it was captured (an import, a data file). What no launch reads was not compared,
nor what changed functions do, and new kernels, that neither ran nor were compiled while any workload was
captured. Comments, docstrings and their places are no change of a function.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from irdiff.capture.pairing import CapturedWorkload
from irdiff.model import ChangedFile, FileChange, Launch, Pair, Reach, Sides
from irdiff.resolve.corpus import Corpus

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
    called: Sides[set[tuple[str, int]]] = Sides(base=set(), head=set())
    for of_workload in captured:
        for place, catalog, names in zip(places, of_workload.catalogs, called, strict=True):
            for path, _, line in (name.rpartition(":") for name in catalog.called):
                names.update((each, int(line)) for each in place.of(path))
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


def _not_run(
    paths: Sides[str], corpora: Sides[Corpus], called: Sides[set[tuple[str, int]]], *, is_read: bool
) -> tuple[str, ...]:
    """Changed functions and new kernels that neither side ran or compiled.

    None of a file that no launch reads, unless it holds kernels: it is a test or a script.
    """
    files = corpora.zip(paths).map(lambda side: side[0].root / side[1])
    if not paths.head.endswith(".py") or not files.head.is_file():
        return ()
    texts = files.map(lambda file: file.read_text("utf-8", "replace") if file.is_file() else "")
    names_not_run = [
        of_workload.name
        for of_workload in changed_functions(*texts)
        if all(
            (path, line) not in names
            for path, line, names in zip(paths, of_workload.lines, called, strict=True)
        )
    ]
    return tuple(names_not_run) if is_read or _KERNEL.search(texts.head) else ()


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


_Function = ast.FunctionDef | ast.AsyncFunctionDef
_KERNEL = re.compile(r"^\s*@[\w.]*jit\b", re.MULTILINE)
_RUN_BY_THE_FRONTEND = "constexpr_function"
"""Decorates functions that run where nobody notes it."""


@dataclass(frozen=True, kw_only=True)
class ChangedFunction:
    """A function that differs between the sides, or a kernel that base does not have."""

    name: str
    """With its class: `SwiGLU.forward`."""
    lines: tuple[int, int]
    """Its first line at base and at head, that of its first decorator; 0 where base does not have it."""


def changed_functions(base: str, head: str) -> list[ChangedFunction]:
    """None for a text that is no Python."""
    try:
        ours, theirs = (dict(_functions(ast.parse(text), "")) for text in (base, head))
    except (SyntaxError, ValueError):
        return []
    return [
        ChangedFunction(name=name, lines=(_first_line(ours[name]) if name in ours else 0, _first_line(node)))
        for name, node in theirs.items()
        if (_meaning(ours[name]) != _meaning(node) if name in ours else _is_kernel(node))
    ]


def _functions(node: ast.Module | ast.ClassDef, above: str) -> Iterator[tuple[str, _Function]]:
    """Functions inside of functions belong to those."""
    for inner in node.body:
        if isinstance(inner, ast.ClassDef):
            yield from _functions(inner, f"{above}{inner.name}.")
        elif isinstance(inner, _Function):
            decorators = " ".join(map(ast.unparse, inner.decorator_list))
            if _RUN_BY_THE_FRONTEND not in decorators:
                yield f"{above}{inner.name}", inner


def _is_kernel(node: _Function) -> bool:
    return any(_KERNEL.match(f"@{ast.unparse(decorator)}") for decorator in node.decorator_list)


def _first_line(node: _Function) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _meaning(node: _Function) -> str:
    """Decorators count for kernels alone: those of others run where the file is imported."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return "\n".join(map(ast.dump, [*body, *(node.decorator_list if _is_kernel(node) else ())]))
