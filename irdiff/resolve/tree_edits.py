"""Finds the files that differ between two revisions, and whether compared code could depend on them, before
anything is installed or built.

Two revisions of a checkout of Triton give the same compiler if they differ only in files that are neither
native nor installed (`checkout.py`).

In a repository of kernels every file counts, whatever its name: a workload may import it, open it, or read a
pin in it. After the capture it is known which files were read.
"""

from __future__ import annotations

from collections import defaultdict

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange, Sides
from irdiff.resolve import kernel_repository
from irdiff.resolve.toolchains import checkout, repository
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import Snapshot

_ANY_FILE = "files of the repository"


def between(sides: Sides[Snapshot], config: Config) -> Edited | None:
    """Returns None if the two are of different kinds. Raises UsageError if git cannot read them."""
    if all(checkouts.is_triton(snap, config) for snap in sides):
        return of_compilers(sides.map(lambda snap: checkouts.read(snap, config)))
    if all(kernel_repository.has_plan(snap, config) for snap in sides):
        return _of_kernels(sides, config)
    return None


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
            feeds=tuple(sorted(words)) or (checkout.purpose(path) or "other files",),
            counts=bool(words),
        )
        for path, words in sorted(feeds.items())
    )
    return Edited(files=files, of_kernels=False, identical=not any(file.counts for file in files))


def _fed_by(path: str, sides: Sides[Checkout]) -> set[str]:
    """Returns the parts of the compiler that are built from a file; there may be two."""
    words = {"native code"} if any(path in side.native for side in sides) else set()
    place = checkout.place_of(path)
    if place is None:
        return words
    folders = place.split("/")
    of_backend = folders[1] == "backends" and len(folders) > 3
    return words | {f"Python of the backend {folders[2]}" if of_backend else "Python"}


def _of_kernels(sides: Sides[Snapshot], config: Config) -> Edited:
    for snap in sides:
        kernel_repository.plan_of(snap, config)  # a mistake in it is said before anything is installed
    trees = sides.map(lambda snap: {entry.path: entry.content for entry in repository.entries(snap, config)})
    files = tuple(
        EditedFile(
            path=path,
            change=_change(path in trees.base, path in trees.head),
            feeds=(_ANY_FILE,),
            counts=True,
        )
        for path in sorted({path for path, _ in trees.base.items() ^ trees.head.items()})
    )
    return Edited(files=files, of_kernels=True, identical=not files)


def _change(in_base: bool, in_head: bool) -> FileChange:
    if in_base and in_head:
        return FileChange.CHANGED
    return FileChange.REMOVED if in_base else FileChange.ADDED
