"""One revision of a Triton checkout: its Python part, its native inputs and their digest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import cmake, interpreter_answers, links, repository, source_parts
from irdiff.resolve.toolchains.repository import Snapshot, TreeEntry
from irdiff.store import Store, key_of


@dataclass(frozen=True, kw_only=True)
class Checkout:
    """The tree of one revision, read."""

    snapshot: Snapshot
    tree: Mapping[str, TreeEntry]
    files: Mapping[str, TreeEntry]
    """The files of the tree, and under the path of every link what it leads to."""
    native_digest: str
    """SHA-256 over path and content of everything that feeds the native part."""
    native_rows: Mapping[str, str]
    """What the digest is made of: by path, what a file counts by."""
    native_paths: tuple[str, ...]
    """Paths of what feeds the native part, and of what is read there through links."""
    llvm: str | None

    @property
    def label(self) -> str:
        return self.snapshot.label

    def python_part(self, installed: Collection[str]) -> dict[str, TreeEntry]:
        """Files of the Python part by their path in site-packages; see `layout.python_part`."""
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
    read_links = links.targets(tree)
    files = links.followed(tree, read_links)
    rows = _native_rows(snap, tree, files, read_links, config)
    through = [path for path in read_links if path in rows or source_parts.is_installed(path)]
    behind = [files[name].path for name in files for path in through if _is_at(name, path)]
    pins = {name: tree[name] for name in tree if name.endswith((".txt", ".json"))}
    return Checkout(
        snapshot=snap,
        tree=tree,
        files=files,
        native_digest=key_of("native/2", sorted(rows.items())),
        native_rows=rows,
        native_paths=tuple(sorted({*rows, *behind})),
        llvm=source_parts.llvm_pin(pins, lambda paths: contents(files, paths)),
    )


def _native_rows(
    snap: Snapshot,
    tree: Mapping[str, TreeEntry],
    files: Mapping[str, TreeEntry],
    targets: Mapping[str, str],
    config: Config,
) -> dict[str, str]:
    """The result is kept by tree: parsing the CMake of a checkout takes longer than anything else here."""
    store = Store(config.cache / "digests")
    submodules = [entry.blob for entry in tree.values() if entry.store != snap.store or not entry.is_file]
    key = key_of("native-rows/2", _own_digest(), snap.tree, submodules)
    rows: dict[str, str] | None = store.get_record("native", key)
    if rows is None:
        counted = {path: _counted(entry) for path, entry in tree.items() if entry.is_file}
        for path, target in targets.items():
            behind = [(name, _counted(files[name])) for name in sorted(files) if _is_at(name, path)]
            counted[path] = key_of("link", target, behind)
        rows = source_parts.native_inputs(counted, lambda paths: contents(files, paths))
        rows.update((path, e.blob) for path, e in tree.items() if e.is_missing_submodule)
        store.put_record("native", key, rows)
    return rows


def _counted(entry: TreeEntry) -> str:
    """What a file counts by: its content, and its mode where that is a special one."""
    return entry.blob if entry.mode == "100644" else f"{entry.mode} {entry.blob}"


def _is_at(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}/")


def contents(files: Mapping[str, TreeEntry], paths: Iterable[str]) -> dict[str, bytes]:
    """The contents by the path that was asked for. A link that leads out of the tree has none."""
    wanted = {path: files[path] for path in paths if path in files}
    read = repository.read(list(wanted.values()))
    return {path: read[entry.path] for path, entry in wanted.items()}


def texts(files: Mapping[str, TreeEntry], paths: Iterable[str]) -> dict[str, str]:
    """The same as text; bytes that are no UTF-8 are replaced."""
    return {path: content.decode(errors="replace") for path, content in contents(files, paths).items()}


def _own_digest() -> str:
    sources = (Path(str(module.__file__)) for module in (source_parts, cmake, links))
    return key_of([source.read_text(encoding="utf-8") for source in sources])


def site_packages(toolchain: Toolchain, config: Config) -> Path:
    """The folder that holds the `triton` of a toolchain."""
    found = sorted(Path(toolchain.path).glob("lib/python3*/site-packages/triton/__init__.py"))
    if len(found) == 1:
        return found[0].parent.parent
    return Path(interpreter_answers.ask(toolchain.python, config)["root"]).parent


def installed_files(site: Path) -> set[str]:
    """Every file of the installed package by its path in site-packages."""
    return {
        str(path.relative_to(site))
        for path in (site / "triton").rglob("*")
        if path.suffix != ".pyc" and path.is_file()
    }
