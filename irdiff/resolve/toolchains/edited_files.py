"""Which files differ between two revisions of a checkout of Triton, and what they feed.

Read from the trees alone, before anything is installed or built. Two revisions make the same compiler if
they differ only in files that are neither native nor installed (`source_parts.py`): tests, tutorials,
documents and the like. In any other case both are built, and their toolchains are compared by digest.
"""

from __future__ import annotations

from collections import defaultdict

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange, Sides
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import source_parts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.repository import Snapshot

NATIVE = "native code"


def between(base: Snapshot, head: Snapshot, config: Config) -> Edited | None:
    """None where not both are checkouts of Triton. Raises UsageError where git cannot read them."""
    if not (checkouts.is_triton(base, config) and checkouts.is_triton(head, config)):
        return None
    return compared(Sides(base=base, head=head).map(lambda snap: checkouts.read(snap, config)))


def compared(sides: Sides[Checkout]) -> Edited:
    """What differs between two trees that were read."""
    read_at = sides.map(lambda side: {**side.tree, **side.files})
    contents = read_at.map(lambda entries: {(path, *entry.content) for path, entry in entries.items()})
    feeds: dict[str, set[str]] = defaultdict(set)
    for path in {path for path, *_ in contents.base ^ contents.head}:
        for entry in (side[path] for side in read_at if path in side):
            feeds[entry.path] |= _fed_by(path, sides)  # what lies behind a link has its own path, too
    files = tuple(_file(path, words, sides) for path, words in sorted(feeds.items()))
    return Edited(files=files, of_kernels=False, identical=not any(file.counts for file in files))


def _fed_by(path: str, sides: Sides[Checkout]) -> set[str]:
    """What a compiler makes of a file; a file may feed two parts."""
    words = {NATIVE} if any(path in side.native for side in sides) else set()
    place = source_parts.place_of(path)
    if place is None:
        return words
    folders = place.split("/")
    of_backend = folders[1] == "backends" and len(folders) > 3
    return words | {f"Python of the backend {folders[2]}" if of_backend else "Python"}


def _file(path: str, words: set[str], sides: Sides[Checkout]) -> EditedFile:
    trees = sides.map(lambda side: path in side.tree)
    change = FileChange.CHANGED if all(trees) else FileChange.REMOVED if trees.base else FileChange.ADDED
    feeds = tuple(sorted(words)) or (source_parts.beside(path) or "other files",)
    return EditedFile(path=path, change=change, feeds=feeds, counts=bool(words))
