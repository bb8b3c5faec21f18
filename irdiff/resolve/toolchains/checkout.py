"""Reads one revision of a Triton checkout: its Python part, its native inputs and their digest.

The path of a file decides whether it belongs to the native part, the Python part, or neither. Every file is
native except two kinds: what setup.py installs unchanged (the Python part), and what no compiler is built
from (tests, tutorials, examples, benchmarks, documents, the package `triton_kernels`, and names that begin
with a dot). Sources of C++, tables and CMake are native wherever they lie, because a build may link or
include them, and so is a file whose name occurs in a CMake file. A needless build costs time; a stale one
makes the verdict false.

The Python part follows `package_dir` of Triton's setup.py (3.2 to 3.9): `python/triton` and, of each backend,
its folders `backend`, `language` and `tools` with everything in them. A file may belong to both parts.
"""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TypeVar

from irdiff.backends import BACKENDS
from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot, TreeEntry
from irdiff.store import key_of

_LLVM_PINS = ("cmake/llvm-hash.txt", "cmake/llvm-info.json", "llvm-hash.txt")
_MAX_STEPS = 16
"""Links that lead through links; the kernel gives up after 40."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    snapshot: Snapshot
    tree: Mapping[str, TreeEntry]
    """The entries that git lists: files, links, and submodules whose objects are not there."""
    files: Mapping[str, TreeEntry]
    """The files of the tree, and for the path of every link the files that it leads to."""
    native: Mapping[str, TreeEntry]
    """Inputs of the native part, by the path at which a build reads them."""
    llvm: str | None
    """The LLVM that the checkout pins, as in its file."""

    @property
    def label(self) -> str:
        return self.snapshot.label

    @property
    def native_digest(self) -> str:
        """SHA-256 over path, mode and content of all inputs of the native part."""
        return key_of("native/3", sorted((path, *entry.content) for path, entry in self.native.items()))

    @property
    def native_paths(self) -> list[str]:
        """Includes files that are read through links."""
        return sorted({*self.native, *(entry.path for entry in self.native.values())})

    def python_part(self, installed: Collection[str]) -> dict[str, TreeEntry]:
        """By path in site-packages; see `python_part`."""
        # the link `_C/include` leads to headers for builds: of what lies behind a link to a folder setup.py
        # takes the packages, and what else it takes is installed already
        files = {
            path: entry
            for path, entry in self.files.items()
            if path in self.tree or path.endswith(".py") or place_of(path) in installed
        }
        return python_part(files, installed)


def is_triton(snap: Snapshot, config: Config) -> bool:
    return is_checkout({entry.path for entry in repository.entries(snap, config)})


def read(snap: Snapshot, config: Config) -> Checkout:
    """Raises UsageError if the tree is no checkout of Triton."""
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    if not is_checkout(tree):
        raise UsageError(
            f"{snap.label} is no checkout of Triton: it has no {PACKAGE_MARK}",
            hint="name the checkout with --repo PATH, or describe a repository of kernels in an irdiff.toml "
            "(`irdiff init` writes one)",
        )
    links = repository.read([entry for entry in tree.values() if entry.is_link])
    files = followed(tree, {path: os.fsdecode(target) for path, target in links.items()})
    named = names_in_cmake(texts(files, filter(is_cmake, files)).values())
    return Checkout(
        snapshot=snap,
        tree=tree,
        files=files,
        native={path: tree_entry for path, tree_entry in {**tree, **files}.items() if is_native(path, named)},
        llvm=_llvm_pin(tree),
    )


def followed(tree: Mapping[str, TreeEntry], links: Mapping[str, str]) -> dict[str, TreeEntry]:
    """Returns the files of the tree, and for every link the file, or each file of the folder, that it leads
    to, as a build reads them. `links` has the target of each link by its path. A link that leads out of the
    tree, or in a circle, is dropped.
    """
    files = {path: entry for path, entry in tree.items() if entry.is_file}
    for _ in range(_MAX_STEPS if links else 0):
        entries: dict[str, TreeEntry] = {}
        for path, text in links.items():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            if target in files:
                entries[path] = files[target]
            elif not path.startswith(f"{target}/") and target != ".":
                inside = f"{target}/"
                behind = ((name, entry) for name, entry in files.items() if name.startswith(inside))
                entries.update((f"{path}/{name[len(inside) :]}", entry) for name, entry in behind)
        if entries.items() <= files.items():
            break
        files.update(entries)
    return files


def _llvm_pin(tree: Mapping[str, TreeEntry]) -> str | None:
    path = next((name for name in _LLVM_PINS if name in tree), None)
    if path is None:
        return None
    text = texts(tree, [path])[path].strip()
    match = re.search(r"[0-9a-f]{8,40}", text)
    return match[0] if match else text[:80]


def build_requirements(checkout: Checkout) -> list[str]:
    for text in texts(checkout.tree, ("pyproject.toml", "python/pyproject.toml")).values():
        with contextlib.suppress(tomllib.TOMLDecodeError):
            wanted = tomllib.loads(text).get("build-system", {}).get("requires")
            if isinstance(wanted, list):
                return sorted({*map(str, wanted), "wheel"})
    return ["setuptools", "wheel"]


def texts(files: Mapping[str, TreeEntry], paths: Iterable[str]) -> dict[str, str]:
    """Replaces bytes that are no UTF-8."""
    wanted = {path: files[path] for path in paths if path in files}
    contents = repository.read(list(wanted.values()))
    return {path: contents[entry.path].decode(errors="replace") for path, entry in wanted.items()}


def differing_native(sides: Sides[Checkout]) -> list[str]:
    contents = sides.map(lambda side: {(path, *entry.content) for path, entry in side.native.items()})
    return sorted({path for path, *_ in contents.base ^ contents.head})


def installed_files(site: Path) -> set[str]:
    """By path in site-packages."""
    return {
        str(path.relative_to(site))
        for path in (site / "triton").rglob("*")
        if path.suffix != ".pyc" and path.is_file()
    }


# what each file is for


PACKAGE_MARK = "python/triton/__init__.py"
_PACKAGES = (
    (re.compile(r"python/(triton/.+)"), r"\1"),
    (re.compile(r"third_party/proton/proton/(.+)"), r"triton/profiler/\1"),
    (re.compile(r"third_party/([^/]+)/backend/(.+)"), r"triton/backends/\1/\2"),
    (re.compile(r"third_party/[^/]+/language/(.+/.+)"), r"triton/language/extra/\1"),
    (re.compile(r"third_party/[^/]+/tools/(.+/.+)"), r"triton/tools/extra/\1"),
)
_SOURCES = "|".join(suffix.lstrip(".") for backend in BACKENDS.values() for suffix in backend.SOURCES)
_COMPILED = re.compile(
    rf".*\.(?:c|cc|cpp|cxx|{_SOURCES}|s|h|hh|hpp|hxx|inc|def|td|pdll|cmake|in)|(?:.*/)?CMakeLists\.txt"
)
_NAME_IN_CMAKE = re.compile(r"(?:\$\{\w+\}|[\w.*+-])+\.\w+")
_ANYTHING = re.compile(r"\$\{\w+\}|\*")

E = TypeVar("E")


def is_checkout(paths: Collection[str]) -> bool:
    """True if a tree is a checkout of Triton and no repository of kernels."""
    return PACKAGE_MARK in paths and any(name in paths for name in ("setup.py", "python/setup.py"))


def is_cmake(path: str) -> bool:
    return path.endswith((".cmake", "CMakeLists.txt"))


def names_in_cmake(texts: Iterable[str]) -> re.Pattern[str]:
    """Matches the names of files that CMake names; a variable or `*` in a name matches any text."""
    names = {name for text in texts for name in _NAME_IN_CMAKE.findall(text)}
    patterns = {".*".join(map(re.escape, _ANYTHING.split(name))) for name in names}
    return re.compile("|".join(sorted(patterns)) or "(?!)")


def is_native(path: str, named: re.Pattern[str]) -> bool:
    """True if a build of the native part may read the file; `named` is from `names_in_cmake`."""
    if _COMPILED.fullmatch(path.lower()) or is_cmake(path) or named.fullmatch(PurePosixPath(path).name):
        return True
    return place_of(path) is None and purpose(path) is None


def purpose(path: str) -> str | None:
    """Returns None for a file that belongs to a compiler."""
    pure = PurePosixPath(path)
    folders = set(pure.parts[:-1])
    if any(part.startswith(".") for part in pure.parts):
        return "other files"
    if folders & {"tutorials", "examples"}:
        return "tutorials"
    if folders & {"test", "tests", "unittest", "bench", "benchmark", "benchmarks"}:
        return "tests"
    if "triton_kernels" in folders:
        return "kernels of triton_kernels, not compared"
    documents = (".md", ".rst", ".mlir", ".ipynb", ".pdf", ".png", ".svg", ".jpg", ".gif")
    return "documents" if folders & {"docs", "doc"} or path.lower().endswith(documents) else None


def python_part(tree: Mapping[str, E], installed: Collection[str]) -> dict[str, E]:
    """Returns the Python part by its path in site-packages.

    `installed` holds the files of the installed package that it replaces, by the same kind of path. A folder
    of `third_party` counts if the installed package has it, because setup.py decides that.
    """
    folders = {str(parent) for name in installed for parent in PurePosixPath(name).parents}
    places = {path: place for path in tree if (place := place_of(path)) is not None}
    return {
        place: tree[path]
        for path, place in places.items()
        if not path.startswith("third_party/") or _package_of(place) in folders
    }


def place_of(path: str) -> str | None:
    """Returns the path below site-packages where setup.py installs a path of the tree."""
    for pattern, place in _PACKAGES:
        if match := pattern.fullmatch(path):
            return match.expand(place)
    return None


def _package_of(place: str) -> str:
    """Returns `triton/backends/amd` for `triton/backends/amd/codegen/x.py`, `triton/profiler` for its
    files.
    """
    parts = place.split("/")
    depth = {"backends": 3, "profiler": 2}.get(parts[1], 4)
    return "/".join(parts[:depth])
