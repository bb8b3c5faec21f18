"""A repository of kernels: what its `irdiff.toml` says, its corpus at a revision, and the Triton it pins.

    [kernels]
    program = "bench/run.py --small"    # what launches the kernels: a command line, or a list of them
    workloads = "irdiff"                # or, in its place, a folder of workloads, FAMILY/NAME.py
    targets = ["sm_90", "gfx942"]       # what is compared where no target is named
    import = [".", "src"]               # folders that the workloads import the kernels from
    toolchain = "triton==3.9.0"         # the compiler, unless a pin says otherwise
    pin = "requirements.txt"            # lock or requirements file with the revision's own versions
    packages = ["torch"]                # what the kernels import beside Triton

A repository is run as it is: the tree of the revision is exported to the cache once, and each comparison runs
in a copy of its own, with the root of the repository as the working folder.
"""

from __future__ import annotations

import atexit
import fcntl
import itertools
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
    TypeAdapter,
    model_validator,
)
from pydantic.dataclasses import dataclass

from irdiff.config import Config
from irdiff.errors import CorpusError, UsageError
from irdiff.resolve import packages, pins, toml_file
from irdiff.resolve.corpus import Corpus
from irdiff.resolve.toolchains import repository
from irdiff.resolve.toolchains.repository import Snapshot
from irdiff.store import key_of

FILE = "irdiff.toml"


def _inside(name: str) -> str:
    path = PurePosixPath(name)
    if not name or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"{name!r} is not a folder of the repository")
    return str(path)


def _one_or_more(value: object) -> object:
    return [value] if isinstance(value, str) else value


def _package(text: str) -> str:
    try:
        packages.name_of(text)
    except UsageError as error:
        raise ValueError(error.what) from error
    return text


_numbers = itertools.count(1)
_Folder = Annotated[StrictStr, AfterValidator(_inside)]
_Name = Annotated[StrictStr, Field(min_length=1)]
_Requirement = Annotated[StrictStr, AfterValidator(_package)]


@dataclass(frozen=True, kw_only=True, config=ConfigDict(extra="forbid"))
class Plan:
    """The table `kernels` of an `irdiff.toml`."""

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


_file = TypeAdapter(_PlanFile)


def has_plan(snap: Snapshot, config: Config) -> bool:
    """Whether the revision, or the working tree, has the file."""
    worktree = snap.store.worktree
    in_tree = any(entry.path == FILE for entry in repository.entries(snap, config))
    return in_tree or (worktree is not None and (worktree / FILE).is_file())


def plan_above(folder: Path) -> Plan | None:
    """What the repository around a folder says of itself, as its files are now."""
    for place in (folder, *folder.parents):
        if (place / FILE).is_file():
            return parse_plan((place / FILE).read_bytes(), str(place / FILE))
        if (place / ".git").exists():
            break
    return None


def plan_of(snap: Snapshot, config: Config) -> Plan:
    """What the revision says of itself. A revision from before the file uses that of the working tree."""
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    if FILE in tree:
        return parse_plan(repository.read([tree[FILE]])[FILE], f"{FILE} of {snap.label}")
    worktree = snap.store.worktree
    if worktree is not None and (worktree / FILE).is_file():
        return parse_plan((worktree / FILE).read_bytes(), str(worktree / FILE))
    raise UsageError(
        f"{snap.label} is neither a checkout of Triton nor has it an {FILE} that says where its kernels are",
        hint="`irdiff init` writes one; --program 'bench/run.py' does without; --repo PATH names a checkout",
    )


def parse_plan(content: bytes, where: str) -> Plan:
    """Raises UsageError with the place of the mistake."""
    hint = 'a table [kernels] with program = "COMMAND" or workloads = "FOLDER"; `irdiff init` writes one'
    rows = toml_file.parse(content, where)
    return toml_file.checked(_file, rows, where, "a description of kernels", hint=hint).kernels


# toolchain and packages


def toolchain_spec(snap: Snapshot, plan: Plan, chosen: str | None, config: Config) -> tuple[str, str]:
    """The compiler of a revision, and why: chosen for both sides, pinned there, named by the file, or that of
    the environment that the working tree has.
    """
    if chosen:
        return chosen, "chosen for both sides"
    for name, content in _pinning(snap, plan, config).items():
        version = pins.version(name, content, read=_reader(snap, config))
        if version:
            return f"triton=={version}", f"pinned in {name}"
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
    """What the kernels of a revision need beside Triton, at the versions that it pins."""
    locks = _pinning(snap, plan, config)
    found = {packages.name_of(requirement): requirement for requirement in (*plan.packages, *chosen)}
    for name, requirement in found.items():
        read = _reader(snap, config)
        versions = (pins.version(file, content, name, read) for file, content in locks.items())
        version = next(filter(None, versions), None) if packages.is_open(requirement) else None
        if version:
            found[name] = f"{requirement.strip()}=={version}"
    return tuple(found.values())


def _pinning(snap: Snapshot, plan: Plan, config: Config) -> dict[str, bytes]:
    """The revision's lock and requirements files, in the order in which they count."""
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    names = [plan.pin] if plan.pin else list(pins.FILES)
    contents = repository.read([tree[name] for name in names if name in tree])
    return {name: contents[name] for name in names if name in contents}


def _reader(snap: Snapshot, config: Config) -> pins.Read:
    tree = {entry.path: entry for entry in repository.entries(snap, config)}
    return lambda name: repository.read([tree[name]])[name] if name in tree and tree[name].is_file else None


def _rooted(spec: str, snap: Snapshot) -> str:
    """A path of a `python:` or `wheel:` side is meant from the repository's root."""
    kind, _, path = spec.partition(":")
    root = snap.store.worktree
    if kind in ("python", "wheel") and path and root and not Path(path).expanduser().is_absolute():
        return f"{kind}:{root / path}"
    return spec


# corpus


def corpus_of(snap: Snapshot, plan: Plan, config: Config, beside: Snapshot | None = None) -> Corpus:
    """The corpus of a revision. Raises CorpusError where its workload folder has no workload.

    A revision from before the folder is launched by the workloads of the one that it is compared with.
    """
    assert plan.workloads is not None
    tree = exported(snap, config)
    looked_at: list[object] = [plan.workloads, plan.imports]
    root = copied(tree)
    if beside is not None and not (tree / plan.workloads).is_dir():
        origin = exported(beside, config)
        looked_at.append(origin.parent.name)
        if (origin / plan.workloads).is_dir():
            shutil.copytree(origin / plan.workloads, root / plan.workloads, symlinks=True)
    families = root / plan.workloads
    if not families.is_dir():
        raise CorpusError(
            f"{snap.label} has no folder {plan.workloads} of workloads",
            hint=f"see workloads = … in {FILE}; `irdiff capture` writes workloads",
        )
    workloads = tuple(
        sorted(
            str(path.relative_to(families).with_suffix(""))
            for path in families.rglob("*.py")
            if not path.name.startswith("_") and path.name != "conftest.py"
        )
    )
    if not workloads:
        raise CorpusError(
            f"{snap.label}: the folder {plan.workloads} has no workload", hint="add FAMILY/NAME.py"
        )
    return Corpus(
        root=root,
        workloads=workloads,
        digest=key_of("kernels/2", tree.parent.name, *looked_at),
        folder=plan.workloads,
        imports=plan.imports,
        kept=tree,
        files=contents(snap, config),
    )


def contents(snap: Snapshot, config: Config) -> dict[str, str]:
    """Git's name of the content of each file, but for those that say how to compile and not what."""
    read_for_the_sides = {FILE, *pins.FILES}
    rows = repository.entries(snap, config)
    return {row.path: f"{row.mode} {row.blob}" for row in rows if row.path not in read_for_the_sides}


def exported(snap: Snapshot, config: Config) -> Path:
    """The whole tree of the revision, in the cache. It is made once: whole, or not at all."""
    rows = [(entry.path, entry.mode, entry.blob) for entry in repository.entries(snap, config)]
    folder = config.cache.resolve() / "exports" / key_of("export/1", rows)[:24]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tree, partial = folder / "tree", folder / "tree.part"
        if not tree.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
            repository.export(snap, partial, config)
            partial.rename(tree)
    return tree


def copied(tree: Path) -> Path:
    """A copy of an exported tree for this process alone: what runs there may write beside its modules."""
    place = tree.parent / f"run-{os.getpid()}-{next(_numbers)}"
    for other in tree.parent.glob("run-*"):
        pid = other.name.split("-")[1]
        if not Path("/proc", pid).exists():
            shutil.rmtree(other, ignore_errors=True)
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return Path(shutil.copytree(tree, place / "tree", symlinks=True))
