"""A corpus: a folder of workloads, `family/name.py`, each with a table `LAUNCHES`. Its folder `packs` is no
family: `irdiff.resolve.packs` turns it into corpora.
"""

from __future__ import annotations

import glob
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from irdiff.errors import CorpusError
from irdiff.model import Target
from irdiff.store import digests_below, key_of
from irdiff.worker.protocol import WorkloadPlace

PACKS = "packs"
PACK_FILE = "pack.toml"


@dataclass(frozen=True, kw_only=True)
class Packages:
    """Published packages that the workloads of a family import, installed next to a toolchain."""

    site: Path
    """Comes last on the path of a worker, so it never replaces a package of the toolchain."""
    imports: tuple[str, ...]
    """Modules that a worker imports once for all of its cases."""
    kernels: tuple[str, ...]
    """Packages that hold kernels; these are compiled under paths relative to `site`."""
    torch_compile: bool
    """True if torch.compile writes kernels for the target; false if it writes code for the CPU."""
    digest: str


@dataclass(frozen=True, kw_only=True)
class ExtraPackages:
    """The packages of a worker besides Triton: torch, if its interpreter has it, and `packages`. They are
    imported as if there were a GPU of this target.
    """

    packages: Packages | None
    target: Target


@dataclass(frozen=True, kw_only=True)
class IgnoredFiles:
    """No revision has files that git ignores, but a program that runs in the working tree may read them."""

    worktree: Path
    names: frozenset[str]
    """Ignored files, and wholly ignored folders, which end in `/`."""

    def at(self, place: str) -> str | None:
        """Includes the ignored module at a path without its suffix."""
        folder, _, stem = place.rpartition("/")
        names = [place, f"{place}.py", f"{place}/__init__.py"]
        libraries = (self.worktree / folder).glob(f"{glob.escape(stem)}.*so")
        names += [f"{folder}/{path.name}".lstrip("/") for path in libraries]
        return next((name for name in names if self._has(name)), None)

    def _has(self, name: str) -> bool:
        folders = (f"{folder}/" for folder in PurePosixPath(name).parents)
        is_ignored = name in self.names or not self.names.isdisjoint(folders)
        return is_ignored and (self.worktree / name).is_file()


@dataclass(frozen=True, kw_only=True)
class Corpus:
    root: Path
    workloads: tuple[str, ...]
    """The names of the workloads, as `family/name` without the suffix."""
    digest: str
    """SHA-256 over the path and content of every file below the root that a workload could import, and over
    the packages.
    """
    packs: tuple[str, ...] = ()
    """Families that need packages."""
    packages: Mapping[str, Packages] = field(default_factory=dict)
    """The packages of each family, once they are installed for a side's toolchain."""
    folder: str = "."
    """The folder of the workloads, relative to the root. The root is the working folder of a worker."""
    imports: tuple[str, ...] = ()
    """Folders on the module search path after that one, relative to the root."""
    kept: Path | None = None
    """For a revision: the folder where its files stay. The root is a copy for this process alone."""
    files: Mapping[str, str] | None = None
    """For an exported revision, by path: git's name of each file's content."""

    pointers: Mapping[str, str] = field(default_factory=dict)
    """By path, the name of the content of each file that git-lfs keeps elsewhere."""
    absent_submodules: Mapping[str, str] = field(default_factory=dict)
    """By path, the commit of each submodule that was never fetched."""
    ignored: IgnoredFiles | None = None
    """For a revision of a repository with a working tree."""

    borrowed: Mapping[str, str] = field(default_factory=dict)
    """By workload, a program that the revision lacks and that is taken from another revision."""
    borrowed_workloads: str = ""
    """The folder of workloads, if the revision lacks it and the other one's is used."""

    self_contained: bool = False
    """True if it imports only itself, its packages and Triton, like the corpus that irdiff ships."""

    @property
    def place(self) -> WorkloadPlace:
        return {"root": str(self.root), "workloads": self.folder, "imports": list(self.imports)}

    def extra_packages(self, name: str, target: Target) -> ExtraPackages | None:
        """Returns None if a workload or a launch needs only the toolchain."""
        workload = name.partition(":")[0]
        packages = self.packages.get(workload.partition("/")[0])
        is_alone = packages is None and self.self_contained
        return None if is_alone else ExtraPackages(packages=packages, target=target)


def load(root: Path) -> Corpus:
    """Raises CorpusError if there is no corpus."""
    root = root.expanduser().absolute()
    if not root.is_dir():
        raise CorpusError(f"there is no corpus folder {root}", hint="name one with --corpus DIR")
    packs = {path.parents[1] for path in root.glob(f"{PACKS}/*/{PACK_FILE}")}
    return of_files(root, (path for path in root.rglob("*") if packs.isdisjoint(path.parents)))


def of_files(root: Path, paths: Iterable[Path], packs: tuple[str, ...] = ()) -> Corpus:
    """Raises CorpusError if no file is a workload."""
    files = sorted(path for path in paths if path.is_file() and "__pycache__" not in path.parts)
    digests = digests_below(root, (path for path in files if path.suffix != ".md"))
    workloads = workloads_in(root, files)
    if not workloads:
        raise CorpusError(
            f"the corpus folder {root} has no workload", hint="add FAMILY/NAME.py; see the README"
        )
    return Corpus(root=root, workloads=workloads, digest=key_of("corpus/1", digests), packs=packs)


def workloads_in(root: Path, paths: Iterable[Path]) -> tuple[str, ...]:
    """Names workloads as `family/name`."""
    files = (path for path in paths if path.suffix == ".py" and path.name != "conftest.py")
    named = (str(path.relative_to(root).with_suffix("")) for path in files if not path.name.startswith("_"))
    return tuple(sorted(named))
