"""Which files differ between two revisions, and whether code that is compared could follow one.

Read from the trees alone, before anything is installed or built. Where no file counts, a report says that
nothing else differs; no kernel is called unchanged.

Two revisions of a checkout of Triton make the same compiler if they differ only in files that are neither
native nor installed (`source_parts.py`). In any other case both are built and compared by digest.

In a repository of kernels every file counts, whatever its name: a workload may import it, open it, or read a
pin in it. Outside of the folders that `irdiff.toml` names, documents, licenses and what belongs to git,
editors and services do not count.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange, Sides
from irdiff.resolve import edited_functions, kernel_repository, programs
from irdiff.resolve.kernel_repository import Plan
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import repository, source_parts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import Snapshot

_DOCUMENTS = (".md", ".rst", ".pdf", ".png", ".svg", ".jpg", ".gif")
_LEGAL = frozenset({"LICENSE", "NOTICE", "CODEOWNERS"})
_SERVICES = frozenset({".github", ".gitignore", ".gitlab-ci.yml", ".pre-commit-config.yaml", ".vscode"})
"""At the root. Any other hidden name may be a file that a kernel reads: `.tuned.json`."""
_PASS = re.compile(r"^\s*def\s+(\w+)\s*:\s*Pass<", re.MULTILINE)
_BASE = re.compile(r"\b(\w+)Base\b")
_SOURCES = (".cpp", ".cc", ".cxx", ".h", ".hpp", ".td")


def between(sides: Sides[Snapshot], config: Config) -> Edited | None:
    """None where the two are not of one kind. Raises UsageError where git cannot read them."""
    if all(checkouts.is_triton(snap, config) for snap in sides):
        return of_compilers(sides.map(lambda snap: checkouts.read(snap, config)))
    if all(kernel_repository.has_plan(snap, config) for snap in sides):
        return _of_kernels(sides, config)
    return None


# compilers


def of_compilers(sides: Sides[Checkout]) -> Edited:
    read_at = sides.map(lambda side: {**side.tree, **side.files})
    contents = read_at.map(lambda entries: {(path, *entry.content) for path, entry in entries.items()})
    feeds: dict[str, set[str]] = defaultdict(set)
    for path in {path for path, *_ in contents.base ^ contents.head}:
        for entry in (side[path] for side in read_at if path in side):
            feeds[entry.path] |= _fed_by(path, sides)  # what lies behind a link has its own path, too
    trees = sides.map(lambda side: side.tree)
    files = tuple(
        EditedFile(
            path=path,
            change=_change(path in trees.base, path in trees.head),
            feeds=tuple(sorted(words)) or (source_parts.purpose(path) or "other files",),
            counts=bool(words),
        )
        for path, words in sorted(feeds.items())
    )
    return Edited(files=files, of_kernels=False, identical=not any(file.counts for file in files))


def _fed_by(path: str, sides: Sides[Checkout]) -> set[str]:
    """What a compiler makes of a file; a file may feed two parts."""
    words = {"native code"} if any(path in side.native for side in sides) else set()
    place = source_parts.place_of(path)
    if place is None:
        return words
    folders = place.split("/")
    of_backend = folders[1] == "backends" and len(folders) > 3
    return words | {f"Python of the backend {folders[2]}" if of_backend else "Python"}


@dataclass(frozen=True, kw_only=True)
class EditedCode:
    """What an edited native source is about, by names at head."""

    passes: list[str]
    """MLIR passes that it defines."""
    operations: list[str]
    """C++ classes of the operations that the edited functions match: `AtomicRMWOp`."""


def edited_code(sides: Sides[Checkout]) -> dict[str, EditedCode]:
    """Of each edited native source.

    A `.td` file defines a pass with `def NAME : Pass<…>`, and the file that implements it names `NAMEBase`.
    Only a file's own text counts: which passes call a function of it is not known.
    """
    edited = [path for path in checkouts.differing_native(sides) if path.endswith(_SOURCES)]
    head = sides.head
    tables = checkouts.texts(head.files, (path for path in head.native if path.endswith(".td") and edited))
    known = {name for text in tables.values() for name in _PASS.findall(text)}
    before, after = (checkouts.texts(side.files, edited) for side in sides)
    patterns = {path: _PASS if path.endswith(".td") else _BASE for path in edited}
    return {
        path: EditedCode(
            passes=sorted(known.intersection(patterns[path].findall(after.get(path, "")))),
            operations=edited_functions.operations(before.get(path, ""), after.get(path, "")),
        )
        for path in edited
    }


# kernels


def _of_kernels(sides: Sides[Snapshot], config: Config) -> Edited:
    plans = [kernel_repository.plan_of(snap, config) for snap in sides]
    trees = sides.map(lambda snap: {row.path: row.content for row in repository.entries(snap, config)})
    files = tuple(
        _file_of_kernels(path, _change(path in trees.base, path in trees.head), plans)
        for path in sorted({path for path, _ in trees.base.items() ^ trees.head.items()})
    )
    return Edited(files=files, of_kernels=True, identical=not any(file.counts for file in files))


def _file_of_kernels(path: str, change: FileChange, plans: Sequence[Plan]) -> EditedFile:
    word = purpose_without_kernels(PurePosixPath(path), plans)
    return EditedFile(path=path, change=change, feeds=(word or "code, data or a pin",), counts=word is None)


def purpose_without_kernels(path: PurePosixPath, plans: Sequence[Plan]) -> str | None:
    """What a file is for that no kernel is made of."""
    named = {name for plan in plans for name in (plan.workloads, plan.pin, *plan.imports)} - {".", None}
    named |= {word for plan in plans for command in plan.program for word in programs.words_of(command)}
    if named & {str(path), *map(str, path.parents)}:
        return None  # whatever it is called, `irdiff.toml` names it or its folder
    if path.parts[0] in _SERVICES:
        return "other files"
    is_document = path.name.lower().endswith(_DOCUMENTS) or path.name.partition(".")[0] in _LEGAL
    return "documents" if is_document else None


def _change(in_base: bool, in_head: bool) -> FileChange:
    if in_base and in_head:
        return FileChange.CHANGED
    return FileChange.REMOVED if in_base else FileChange.ADDED
