"""One revision of a Triton checkout: its Python part, its native inputs and their digest."""

from __future__ import annotations

import contextlib
import os
import posixpath
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Sides
from irdiff.resolve.toolchains import repository, source_parts
from irdiff.resolve.toolchains.repository import Snapshot, TreeEntry
from irdiff.store import key_of

_LLVM_PINS = ("cmake/llvm-hash.txt", "cmake/llvm-info.json", "llvm-hash.txt")
_MAX_STEPS = 16
"""Links that lead through links; the kernel gives up after 40."""


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """The tree of one revision, read."""

    snapshot: Snapshot
    tree: Mapping[str, TreeEntry]
    """What git lists: files, links, and submodules whose objects are not there."""
    files: Mapping[str, TreeEntry]
    """The files of the tree, and under the path of every link what it leads to."""
    native: Mapping[str, TreeEntry]
    """What feeds the native part, by the path at which a build reads it."""
    llvm: str | None
    """The LLVM that the checkout asks for, as its file has it."""

    @property
    def label(self) -> str:
        return self.snapshot.label

    @property
    def native_digest(self) -> str:
        """SHA-256 over path, mode and content of everything that feeds the native part."""
        return key_of("native/3", sorted((path, *entry.content) for path, entry in self.native.items()))

    @property
    def native_paths(self) -> list[str]:
        """Paths of what feeds the native part, and of what is read there through links."""
        return sorted({*self.native, *(entry.path for entry in self.native.values())})

    def python_part(self, installed: Collection[str]) -> dict[str, TreeEntry]:
        """Files of the Python part by their path in site-packages; see `source_parts.python_part`."""
        # the link `_C/include` leads to headers for builds: of what lies behind a link to a folder setup.py
        # takes the packages, and what else it takes is installed already
        files = {
            path: entry
            for path, entry in self.files.items()
            if path in self.tree or path.endswith(".py") or source_parts.place_of(path) in installed
        }
        return source_parts.python_part(files, installed)


def is_triton(snap: Snapshot, config: Config) -> bool:
    return source_parts.is_triton({entry.path for entry in repository.entries(snap, config)})


def read(snap: Snapshot, config: Config) -> Checkout:
    """Raises UsageError where the tree is no checkout of Triton."""
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    if not source_parts.is_triton(tree):
        raise UsageError(
            f"{snap.label} is no checkout of Triton: it has no {source_parts.PACKAGE_MARK}",
            hint="name the checkout with --repo PATH, or describe a repository of kernels in an irdiff.toml "
            "(`irdiff init` writes one)",
        )
    links = repository.read([entry for entry in tree.values() if entry.is_link])
    files = followed(tree, {path: os.fsdecode(target) for path, target in links.items()})
    named = source_parts.names_in_cmake(texts(files, filter(source_parts.is_cmake, files)).values())
    return Checkout(
        snapshot=snap,
        tree=tree,
        files=files,
        native={path: row for path, row in {**tree, **files}.items() if source_parts.is_native(path, named)},
        llvm=_llvm_pin(tree),
    )


def followed(tree: Mapping[str, TreeEntry], links: Mapping[str, str]) -> dict[str, TreeEntry]:
    """The files of the tree, and for every link the file, or each file of the folder, that it leads to: what
    a build that reads the link would read. `links` has the target of each link by its path.

    A link that leads out of the tree, or in a circle, leads to nothing.
    """
    files = {path: entry for path, entry in tree.items() if entry.is_file}
    for _ in range(_MAX_STEPS if links else 0):
        found: dict[str, TreeEntry] = {}
        for path, text in links.items():
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), text))
            if target in files:
                found[path] = files[target]
            elif not path.startswith(f"{target}/") and target != ".":
                inside = f"{target}/"
                behind = ((name, entry) for name, entry in files.items() if name.startswith(inside))
                found.update((f"{path}/{name[len(inside) :]}", entry) for name, entry in behind)
        if found.items() <= files.items():
            break
        files.update(found)
    return files


def _llvm_pin(tree: Mapping[str, TreeEntry]) -> str | None:
    path = next((name for name in _LLVM_PINS if name in tree), None)
    if path is None:
        return None
    text = texts(tree, [path])[path].strip()
    found = re.search(r"[0-9a-f]{8,40}", text)
    return found[0] if found else text[:80]


def build_requirements(checkout: Checkout) -> list[str]:
    """What the checkout's own pyproject.toml asks for to build it."""
    for text in texts(checkout.tree, ("pyproject.toml", "python/pyproject.toml")).values():
        with contextlib.suppress(tomllib.TOMLDecodeError):
            wanted = tomllib.loads(text).get("build-system", {}).get("requires")
            if isinstance(wanted, list):
                return sorted({*map(str, wanted), "wheel"})
    return ["setuptools", "wheel"]


def texts(files: Mapping[str, TreeEntry], paths: Iterable[str]) -> dict[str, str]:
    """The texts by the path that was asked for; bytes that are no UTF-8 are replaced."""
    wanted = {path: files[path] for path in paths if path in files}
    contents = repository.read(list(wanted.values()))
    return {path: contents[entry.path].decode(errors="replace") for path, entry in wanted.items()}


def differing_native(sides: Sides[Checkout]) -> list[str]:
    """Paths of native inputs that are not the same on both sides."""
    rows = sides.map(lambda side: {(path, *entry.content) for path, entry in side.native.items()})
    return sorted({path for path, *_ in rows.base ^ rows.head})


def installed_files(site: Path) -> set[str]:
    """Every file of the installed package by its path in site-packages."""
    return {
        str(path.relative_to(site))
        for path in (site / "triton").rglob("*")
        if path.suffix != ".pyc" and path.is_file()
    }
