"""A repository of kernels: its `irdiff.toml`, its corpus at a revision, and the Triton it pins.

    [kernels]
    program = "bench/run.py --small"    # what launches the kernels: a command line, or a list of them
    workloads = "irdiff"                # or, in its place, a folder of workloads, FAMILY/NAME.py
    targets = ["sm_90", "gfx942"]       # what is compared where no target is named
    import = [".", "src"]               # folders that the workloads import the kernels from
    toolchain = "triton==3.9.0"         # the compiler of revisions without a pin
    pin = "requirements.txt"            # lock or requirements file with the revision's own versions
    packages = ["torch"]                # what the kernels import in addition to Triton

A repository is run as it is: the tree of the revision is exported to the cache once, and each comparison runs
in a copy of its own, with the root of the repository as the working folder.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictStr,
    model_validator,
)
from pydantic.dataclasses import dataclass

from irdiff.adapters import adapter
from irdiff.config import Config
from irdiff.errors import CorpusError, UsageError
from irdiff.model import Sides
from irdiff.resolve import corpus as corpora
from irdiff.resolve import extra_packages, pins, toml_file
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.store import disk_space, key_of, owned_folders, sha256_of_file, write_whole
from irdiff.words import first_few

FILE = "irdiff.toml"
_MAX_PINS = 3


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not a folder of the repository")
    return str(path)


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _package(text: str) -> str:
    try:
        extra_packages.name_of(text)
    except UsageError as error:
        raise ValueError(error.what) from error
    return text


_POINTER = b"version https://git-lfs.github.com/spec/"
_MAX_POINTER_BYTES = 1024
"""https://github.com/git-lfs/git-lfs/blob/main/docs/spec.md"""
_MOST_REASONS = 200
"""Characters."""
_POINTERS = "pointers.json"
_checked: set[Path] = set()
"""Exported trees that this process made or found whole."""
_copies = contextlib.ExitStack()
"""Copies of trees for this process."""
atexit.register(_copies.close)
_Folder = Annotated[StrictStr, AfterValidator(_inside)]
_Name = Annotated[StrictStr, Field(min_length=1)]
_Requirement = Annotated[StrictStr, AfterValidator(_package)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Plan:
    workloads: _Folder | None = None
    program: Annotated[tuple[_Name, ...], BeforeValidator(_one_or_more)] = ()
    targets: Annotated[tuple[_Name, ...], BeforeValidator(_one_or_more)] = ()
    imports: Annotated[tuple[_Folder, ...], BeforeValidator(_one_or_more), Field(alias="import")] = (".",)
    toolchain: _Name | None = None
    pin: _Name | None = None
    packages: Annotated[tuple[_Requirement, ...], BeforeValidator(_one_or_more)] = ()

    @model_validator(mode="after")
    def _one_kind(self) -> Plan:
        if (self.workloads is None) == (not self.program):
            raise ValueError('program = "COMMAND" or workloads = "FOLDER" says what launches the kernels')
        return self


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class _PlanFile:
    kernels: Plan


def has_plan(snap: Snapshot, config: Config) -> bool:
    """Includes the working tree's `irdiff.toml`."""
    return _plan_file(snap, config) is not None


def plan_above(folder: Path) -> Plan | None:
    """Reads the current files of the repository around a folder."""
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return parse_plan((place / FILE).read_bytes(), str(place / FILE))
        if (place / ".git").exists():
            break
    return None


def plan_of(snap: Snapshot, config: Config) -> Plan:
    """Falls back to the working tree's file. Raises UsageError."""
    plan_file = _plan_file(snap, config)
    if plan_file is None:
        raise UsageError(
            f"{snap.label} is not a Triton checkout and has no {FILE}",
            hint=f"`irdiff init bench/run.py` writes {FILE}; --program bench/run.py works without it; "
            "--repo PATH names another checkout",
        )
    return parse_plan(*plan_file)


def _plan_file(snap: Snapshot, config: Config) -> tuple[bytes, str] | None:
    """Returns its content and a description of its place."""
    if content := _reader(snap, config)(FILE):
        return content, f"{FILE} of {snap.label}"
    worktree = snap.store.worktree
    if worktree is not None and (worktree / FILE).is_file():
        return (worktree / FILE).read_bytes(), str(worktree / FILE)
    return None


def parse_plan(content: bytes, where: str) -> Plan:
    """Raises UsageError with the place of the mistake."""
    hint = 'a table [kernels] with program = "COMMAND" or workloads = "FOLDER"; `irdiff init` writes one'
    tables = toml_file.parse(content, where)
    return toml_file.checked(adapter(_PlanFile), tables, where, "a description of kernels", hint=hint).kernels


# toolchain and packages


def toolchain_spec(snap: Snapshot, plan: Plan, chosen: str | None, config: Config) -> tuple[str, str]:
    """Returns the compiler of a revision, and why: chosen for both sides, pinned there, named by the file, or
    that of the working tree's environment.
    """
    if chosen:
        return chosen, "chosen for both sides"
    if pinned := _pinned("triton", snap, plan, config):
        return f"triton=={pinned[0]}", f"pinned in {pinned[1]}"
    if plan.toolchain:
        return _rooted(plan.toolchain, snap), f"toolchain of {FILE}"
    own = pins.interpreter(snap.store.worktree)
    if own:
        return f"python:{own}", "the project's own environment"
    raise UsageError(
        f"{snap.label} does not say which Triton to use",
        hint=f'--triton triton==3.9.0, or toolchain = "triton==3.9.0" in {FILE}',
    )


def packages_of(snap: Snapshot, plan: Plan, chosen: Sequence[str], config: Config) -> tuple[str, ...]:
    """Returns packages besides Triton, at the versions that the revision pins."""
    requirements = {
        extra_packages.name_of(requirement): requirement for requirement in (*plan.packages, *chosen)
    }
    for name, requirement in requirements.items():
        is_open = extra_packages.is_open(requirement)
        if pinned := _pinned(name, snap, plan, config) if is_open else None:
            requirements[name] = f"{requirement.strip()}=={pinned[0]}"
    return tuple(requirements.values())


def _pinned(package: str, snap: Snapshot, plan: Plan, config: Config) -> tuple[str, str] | None:
    """Returns the version of a package, and the first of the revision's files that pins it."""
    read = _reader(snap, config)
    for name in [plan.pin] if plan.pin else pins.FILES:
        content = read(name)
        version = pins.version(name, content, package, read) if content else None
        if version:
            return version, name
    return None


def unfollowed_pins(
    snaps: Sides[Snapshot], plans: Sides[Plan], followed: Sides[frozenset[str]], config: Config
) -> tuple[str, ...]:
    """Lists pins that differ between the sides and that chose neither a compiler nor a package: `torch in
    requirements.txt`. followed: the names of followed pins, of each side.
    """
    read = snaps.map(lambda snap: _reader(snap, config))
    pins_by_file: dict[str, list[str]] = {}
    for name in dict.fromkeys([*filter(None, (plan.pin for plan in plans)), *pins.FILES, pins.PROJECT]):
        base, head = (pins.requirements(name, side(name) or b"", side) for side in read)
        for package in sorted(base.keys() | head.keys()):
            is_followed = all(
                package in names or package not in versions
                for versions, names in zip((base, head), followed, strict=True)
            )
            if base.get(package) != head.get(package) and not is_followed:
                pins_by_file.setdefault(name, []).append(package)
    return tuple(f"{first_few(names, _MAX_PINS)} in {file}" for file, names in pins_by_file.items())


def followed_pins(snap: Snapshot, plan: Plan, chosen: Sequence[str], config: Config) -> frozenset[str]:
    """Returns the packages whose versions came from a pin. Triton is among them unless it was chosen."""
    required = {extra_packages.name_of(requirement): requirement for requirement in (*plan.packages, *chosen)}
    names = [name for name, requirement in required.items() if extra_packages.is_open(requirement)]
    return frozenset(name for name in ("triton", *names) if _pinned(name, snap, plan, config))


def _reader(snap: Snapshot, config: Config) -> pins.Read:
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    return lambda name: repository.read([tree[name]])[name] if name in tree and tree[name].is_file else None


def _rooted(spec: str, snap: Snapshot) -> str:
    """Resolves a path of a `python:` or `wheel:` side relative to the repository's root."""
    kind, _, path = spec.partition(":")
    root = snap.store.worktree
    if kind in ("python", "wheel") and path and root and not Path(path).expanduser().is_absolute():
        return f"{kind}:{root / path}"
    return spec


# corpus


def corpus_of(snap: Snapshot, plan: Plan, config: Config, other: Snapshot | None = None) -> Corpus:
    """Raises CorpusError if the workload folder has no workload. A revision without the folder is launched by
    the workloads of the revision that it is compared with.
    """
    assert plan.workloads is not None
    tree = exported(snap, config)
    parts: list[object] = [plan.workloads, plan.imports]
    root = copied(tree)
    families = root / plan.workloads
    has_own = families.is_dir()
    if other is not None and not has_own:
        origin = exported(other, config)
        parts.append(origin.parent.name)
        if (origin / plan.workloads).is_dir():
            shutil.copytree(origin / plan.workloads, families, symlinks=True)
    workloads = corpora.workloads_in(families, families.rglob("*"))
    if not workloads:
        raise CorpusError(
            f"{snap.label} has no workload {plan.workloads}/FAMILY/NAME.py",
            hint=f"see workloads = … in {FILE}; `irdiff capture` writes workloads",
        )
    return Corpus(
        root=root,
        workloads=workloads,
        digest=key_of("kernels/2", tree.parent.name, *parts),
        folder=plan.workloads,
        imports=plan.imports,
        kept=tree,
        files=contents(snap, config),
        pointers=pointers(tree),
        absent_submodules=absent_submodules(snap, config),
        ignored=repository.ignored(snap.store),
        borrowed_workloads="" if has_own else plan.workloads,
    )


def contents(snap: Snapshot, config: Config) -> dict[str, str]:
    """Returns git's names of the files' contents, except of those that choose the compiler."""
    read_for_the_sides = {FILE, *pins.FILES}
    tree = repository.entries(snap, config)
    return {
        entry.path: f"{entry.mode} {entry.blob}" for entry in tree if entry.path not in read_for_the_sides
    }


def exported(snap: Snapshot, config: Config) -> Path:
    """Exports the tree of the revision to the cache, whole or not at all. If something changed its files
    there since, it is exported again.
    """
    tree_contents = [(entry.path, *entry.content) for entry in repository.entries(snap, config)]
    folder = config.cache.resolve() / "exports" / key_of("export/2", tree_contents)[:24]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tree, partial, digest = folder / "tree", folder / "tree.part", folder / "tree.sha256"
        if tree not in _checked and not (digest.is_file() and digest.read_text() == _digest_of(tree)):
            for place in (tree, partial, folder / _POINTERS):
                _remove(place)
            repository.export(snap, partial, config, may_lack_submodules=True)
            partial.rename(tree)
            write_whole(digest, _digest_of(tree).encode())
        _checked.add(tree)
    return tree


def _digest_of(tree: Path) -> str:
    def content(path: Path) -> str:
        if path.is_symlink():
            return f"to {path.readlink()}"
        if not path.is_file():
            return ""
        return f"{os.access(path, os.X_OK)} {sha256_of_file(path)}"

    return key_of(sorted((str(path.relative_to(tree)), content(path)) for path in tree.rglob("*")))


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def pointers(tree: Path) -> dict[str, str]:
    """By path, the name of the content of each file that git-lfs keeps elsewhere."""
    names = tree.parent / _POINTERS
    if not names.is_file():
        files = (path for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
        small = (path for path in files if path.stat().st_size <= _MAX_POINTER_BYTES)
        texts = {str(path.relative_to(tree)): path.read_bytes() for path in small}
        names_by_path = {path: text.decode() for path, text in texts.items() if text.startswith(_POINTER)}
        write_whole(names, json.dumps(names_by_path).encode())
    pointers_by_path: dict[str, str] = json.loads(names.read_bytes())
    return pointers_by_path


def absent_submodules(snap: Snapshot, config: Config) -> dict[str, str]:
    """By path, the commit of each submodule that was never fetched. Its folder is empty."""
    return {entry.path: entry.blob for entry in repository.entries(snap, config) if entry.is_submodule}


def copied(tree: Path) -> Path:
    """Copies the tree for this process alone, because programs may write next to their modules."""
    owned_folders.remove_left(tree.parent)
    try:
        place = _copies.enter_context(owned_folders.entered(tree.parent))
        return Path(shutil.copytree(tree, place / "tree", symlinks=True))
    except OSError as error:  # that of `copytree` has the reasons of all files
        raise disk_space.used_up((tree,), error.strerror or str(error)[:_MOST_REASONS]) from error
