"""Which files differ between two revisions of a checkout of Triton, what they feed, and what follows.

Read from the trees alone, before anything is downloaded, installed or built.

Two revisions make the same compiler where their native inputs have one digest, and whatever could be
installed as Python is the same under the same path. The toolchain of a revision is named by just these two
(`commits.py`): its native part is found by the native digest, and its Python part is chosen among the
installable files by what that native part has installed. Equal inputs therefore give one environment, and a
launch that one environment compiles twice cannot differ. What files feed is only said beside it: it decides
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from irdiff.config import Config
from irdiff.model import Edited, EditedFile, FileChange, Sides
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import layers, source_parts
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.layers import LayerKind
from irdiff.resolve.toolchains.repository import Snapshot, TreeEntry

NATIVE = "native code"
_OF_LAYER = {
    LayerKind.FRONTEND: "Python frontend",
    LayerKind.COMMON: "shared Python",
    LayerKind.BACKEND: "Python of the backend {}",
    LayerKind.LAUNCHER: "launcher of the backend {}",
}
_TUTORIALS = frozenset({"tutorials", "examples"})
_TESTS = frozenset({"test", "tests", "unittest", "benchmark", "benchmarks"})
_DOCUMENTS = frozenset({"docs", "doc"})
_KERNELS = "triton_kernels"
"""A package of kernels that lies beside the compiler. No workload of the corpus launches them."""


def between(base: Snapshot, head: Snapshot, config: Config) -> Edited | None:
    """None where not both are checkouts of Triton. Raises UsageError where git cannot read them."""
    if not (checkouts.is_triton(base, config) and checkouts.is_triton(head, config)):
        return None
    return compared(Sides(base=base, head=head).map(lambda snap: checkouts.read(snap, config)))


def compared(sides: Sides[Checkout]) -> Edited:
    """What differs between two trees that were read."""
    feeds = _feeds(sides)
    trees = sides.map(lambda side: _contents(side.tree))
    paths = {path for path, _ in trees.base.items() ^ trees.head.items()}
    files = [_file(path, trees, feeds.get(path, frozenset())) for path in sorted(paths | feeds.keys())]
    same_native = sides.base.native_digest == sides.head.native_digest
    python = sides.map(lambda side: _contents(_installable(side)))
    same = same_native and python.base == python.head
    return Edited(files=tuple(files), of_kernels=False, identical=same)


def _contents(entries: Mapping[str, TreeEntry]) -> dict[str, tuple[str, str]]:
    return {path: (entry.mode, entry.blob) for path, entry in entries.items()}


def _installable(side: Checkout) -> dict[str, TreeEntry]:
    """More than is installed, whatever the native part has; what lies behind a link has the link's path."""
    return {path: entry for path, entry in side.files.items() if source_parts.is_installed(path)}


def _feeds(sides: Sides[Checkout]) -> dict[str, frozenset[str]]:
    """By the path in the tree, what a compiler makes of a file that differs. A file may feed two parts."""
    found: dict[str, set[str]] = {}
    for path in _native(sides):
        found.setdefault(path, set()).add(NATIVE)
    installable = sides.map(_installable)
    python = installable.map(_contents)
    for path in {path for path, _ in python.base.items() ^ python.head.items()}:
        for entry in filter(None, (side.get(path) for side in installable)):
            found.setdefault(entry.path, set()).add(_layer(path))
    return {path: frozenset(words) for path, words in found.items()}


def _native(sides: Sides[Checkout]) -> Iterator[str]:
    """Paths of the tree of which the native digest counts something that differs."""
    rows = sides.map(lambda side: side.native_rows)
    yield from {path for path, _ in rows.base.items() ^ rows.head.items()}
    trees = sides.map(lambda side: _contents(side.tree))
    behind_links = {path for side in sides for path in side.native_paths if path not in side.native_rows}
    yield from (path for path in behind_links if trees.base.get(path) != trees.head.get(path))


def _layer(path: str) -> str:
    layer = layers.layer_of(source_parts.place_of(path) or path)
    return _OF_LAYER[layer.kind].format(layer.backend)


def _file(path: str, trees: Sides[dict[str, tuple[str, str]]], feeds: frozenset[str]) -> EditedFile:
    if path not in trees.base:
        change = FileChange.ADDED
    else:
        change = FileChange.CHANGED if path in trees.head else FileChange.REMOVED
    words = tuple(sorted(feeds)) or (_beside(PurePosixPath(path)),)
    return EditedFile(path=path, change=change, feeds=words, counts=bool(feeds))


def _beside(path: PurePosixPath) -> str:
    """What a file is for that no compiler is made of; files of the build that say the same otherwise too."""
    folders = set(path.parts[:-1])
    if path.parts[:3] == ("python", _KERNELS, _KERNELS):
        return f"kernels of {_KERNELS}, not compared"
    if folders & _TUTORIALS:
        return "tutorials"
    if folders & _TESTS:
        return "tests"
    if folders & _DOCUMENTS or path.name.lower().endswith(source_parts.DOCUMENTS):
        return "documents"
    return "other files"
