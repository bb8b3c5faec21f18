"""One revision of a Triton checkout: its Python part, its native inputs and their digest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Toolchain
from irdiff.store import Store, key_of
from irdiff.toolchains import answers, layout, repository
from irdiff.toolchains.repository import Entry, Snapshot


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """The tree of one revision, read."""

    snapshot: Snapshot
    tree: Mapping[str, Entry]
    native_digest: str
    """SHA-256 over path and content of everything that feeds the native part."""
    native_paths: tuple[str, ...]
    llvm: str | None

    @property
    def label(self) -> str:
        return self.snapshot.label

    def python_part(self, installed: Collection[str]) -> dict[str, Entry]:
        """Files of the Python part by their path in site-packages; see `layout.python_part`."""
        found = layout.python_part(self.tree, installed)
        return {place: entry for place, entry in found.items() if entry.is_file}


def is_triton(snap: Snapshot, config: Config) -> bool:
    return layout.is_triton({entry.path for entry in repository.entries(snap, config)})


def read(snap: Snapshot, config: Config) -> Checkout:
    """Raises UsageError where the tree is no checkout of Triton."""
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    if not layout.is_triton(tree):
        raise UsageError(
            f"{snap.label} is no checkout of Triton: it has no {layout.PACKAGE_MARK}",
            hint="name the checkout with --repo PATH, or describe a repository of kernels in an irdiff.toml "
            "(`irdiff init` writes one)",
        )
    rows = _native_rows(snap, tree, config)
    pins = {name: tree[name] for name in tree if name.endswith((".txt", ".json"))}
    return Checkout(
        snapshot=snap,
        tree=tree,
        native_digest=key_of("native/1", sorted(rows.items())),
        native_paths=tuple(rows),
        llvm=layout.llvm_pin(pins, lambda paths: _contents(tree, paths)),
    )


def _native_rows(snap: Snapshot, tree: Mapping[str, Entry], config: Config) -> dict[str, str]:
    """Kept by tree: parsing the CMake of a checkout again takes longer than anything else here."""
    store = Store(config.cache / "digests")
    submodules = [entry.blob for entry in tree.values() if entry.store != snap.store or not entry.is_file]
    key = key_of("native-rows/1", _own_digest(), snap.tree, submodules)
    rows: dict[str, str] | None = store.get_record("native", key)
    if rows is None:
        blobs = {path: entry.blob for path, entry in tree.items() if entry.is_file}
        rows = layout.native_inputs(blobs, lambda paths: _contents(tree, paths))
        rows.update((path, e.blob) for path, e in tree.items() if e.is_missing_submodule)
        store.put_record("native", key, rows)
    return rows


def _contents(tree: Mapping[str, Entry], paths: Iterable[str]) -> dict[str, bytes]:
    return repository.read([tree[path] for path in paths])


def _own_digest() -> str:
    return key_of(Path(layout.__file__).read_text(encoding="utf-8"))


def site_packages(toolchain: Toolchain, config: Config) -> Path:
    """The folder that holds the `triton` of a toolchain."""
    found = sorted(Path(toolchain.path).glob("lib/python3*/site-packages/triton/__init__.py"))
    if len(found) == 1:
        return found[0].parent.parent
    return Path(answers.ask(toolchain.python, config)["root"]).parent


def installed_files(site: Path) -> set[str]:
    """Every file of the installed package by its path in site-packages."""
    return {
        str(path.relative_to(site))
        for path in (site / "triton").rglob("*")
        if path.suffix != ".pyc" and path.is_file()
    }
