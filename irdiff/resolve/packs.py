"""Packs: kernels that people run, launched by their published packages' own functions.

    packs/NAME/pack.toml      which packages, at which versions
    packs/NAME/WORKLOAD.py    workloads `NAME/WORKLOAD`, which import them

The packages are installed when a pack is asked for, into an environment of their own for each version of
Python, and come last on the path of a worker: a toolchain's Triton is never replaced. Nothing is resolved:
a pack names every package that it needs, at one version. What was installed is part of the digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from irdiff.config import Config
from irdiff.errors import CorpusError, ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve import corpus as corpora
from irdiff.resolve import packages, toml_file
from irdiff.resolve.corpus import PACK_FILE, PACKS, Corpus, Packages
from irdiff.resolve.toolchains import environments
from irdiff.store import key_of

_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*")


class _PackFile(BaseModel):
    model_config = ConfigDict(extra="forbid")

    summary: str
    packages: tuple[str, ...]
    kernels: tuple[str, ...]
    imports: tuple[str, ...] = ()
    indexes: dict[str, str] = {}
    python: str = "3.9"
    torch_compile: bool = False


_file = TypeAdapter(_PackFile)


@dataclass(frozen=True, kw_only=True)
class Pack:
    """A pack, as its `pack.toml` describes it."""

    name: str
    summary: str
    packages: tuple[str, ...]
    """Every package that is needed, `NAME==VERSION`. Triton is not among them."""
    kernels: tuple[str, ...]
    """Import names of the packages whose kernels these are."""
    imports: tuple[str, ...]
    """Modules that every workload imports. Importing them once for all is quicker."""
    indexes: dict[str, str]
    """NAME → index that has this build of a package, asked after those that the user's uv knows."""
    python: str
    """The oldest Python that the packages know, as `3.10`."""
    torch_compile: bool
    """Whether the kernels are those that torch.compile writes for the target."""


def read(folder: Path) -> Pack:
    """Raises CorpusError where the file is not that of a pack."""
    path = folder / PACK_FILE
    try:
        found = toml_file.checked(_file, toml_file.read(path), str(path), "a pack file")
    except UsageError as error:
        raise CorpusError(error.what, hint="compare it with a pack that irdiff ships") from error
    for pin in found.packages:
        if not _PIN.fullmatch(pin):
            raise CorpusError(f"{path}: {pin!r} is no pin", hint="write it as in liger-kernel==0.8.5")
    names = {pin.partition("==")[0] for pin in found.packages}
    if "triton" in names:
        raise CorpusError(f"{path}: Triton is that of the toolchain", hint="leave it out of `packages`")
    if unknown := set(found.indexes) - names:
        raise CorpusError(f"{path}: `indexes` names {unknown.pop()!r}, which is not among `packages`")
    return Pack(name=folder.name, **found.model_dump())


def names(root: Path) -> list[str]:
    """The packs of a corpus folder."""
    return sorted(path.parent.name for path in root.glob(f"{PACKS}/*/{PACK_FILE}"))


def load(root: Path, chosen: Sequence[str]) -> Corpus:
    """The corpus below a folder or, where packs are chosen, theirs alone. Raises CorpusError."""
    if not chosen:
        return corpora.load(root)
    known = names(root.expanduser().absolute())
    for name in chosen:
        if name not in known:
            raise CorpusError(f"there is no pack {name!r} in {root}", hint=f"packs: {', '.join(known)}")
    folder = root.expanduser().absolute() / PACKS
    packs = tuple(sorted(set(chosen)))
    return corpora.of_files(folder, (path for name in packs for path in (folder / name).rglob("*")), packs)


def named_by(case_id: str, root: Path) -> tuple[str, ...]:
    """The pack that a case belongs to, if it belongs to one."""
    family = case_id.partition("/")[0]
    return (family,) if family in names(root) else ()


def install(corpus: Corpus, toolchain: Toolchain, config: Config) -> Corpus:
    """The corpus with what its packs need, for the Python of a toolchain. Raises ToolchainError."""
    if not corpus.packs:
        return corpus
    version = packages.python_version(toolchain.python, config)
    found = {name: _installed(read(corpus.root / name), toolchain, version, config) for name in corpus.packs}
    digests = {name: beside.digest for name, beside in found.items()}
    return replace(corpus, packages=found, digest=key_of("packs/1", corpus.digest, digests))


def note(corpus: Corpus) -> str:
    """What a run says of a side that has packs."""
    pins = {pin: None for name in corpus.packs for pin in read(corpus.root / name).packages}
    return f"packs {', '.join(corpus.packs)}: {' '.join(pins)}" if pins else ""


def _installed(pack: Pack, toolchain: Toolchain, version: tuple[int, ...], config: Config) -> Packages:
    if version < tuple(map(int, pack.python.split("."))):
        raise ToolchainError(
            f"pack {pack.name}: its packages need Python {pack.python}; {toolchain.spec} has "
            + ".".join(map(str, version)),
            hint="use a toolchain of a newer Python, or leave the pack out",
        )
    key = key_of(sorted(pack.packages))[:12]
    name = f"pack-{pack.name}-cp{''.join(map(str, version))}-{key}"

    def fill(path: Path, log: Path) -> dict[str, Any]:
        _install_packages(pack, path, log, config)
        site = packages.site_of(path)
        return {
            "spec": f"pack:{pack.name}",
            "version": pack.packages[0].partition("==")[2],
            "digest": packages.recorded_digest(site),
        }

    made = environments.make(name, config, fill, python=toolchain.python)
    site = packages.site_of(made.path)
    own = [(kernels, _digest_of_folder(site / kernels)) for kernels in pack.kernels]
    return Packages(
        site=site,
        imports=pack.imports,
        kernels=pack.kernels,
        torch_compile=pack.torch_compile,
        digest=key_of("packages/1", made.state["digest"], own),
    )


def _install_packages(pack: Pack, path: Path, log: Path, config: Config) -> None:
    def pip(pins: Sequence[str], *more: str) -> None:
        words: list[str | Path] = ["pip", "install", "--no-deps", "--compile-bytecode", "--python", path]
        environments.uv([*words, *more, *pins], log, config)

    apart = [pin for pin in pack.packages if pin.partition("==")[0] in pack.indexes]
    try:
        pip([pin for pin in pack.packages if pin not in apart])
    except ToolchainError as error:
        raise _explained(
            pack, "its packages", "check the network or proxy, or name an index", error
        ) from error
    for pin in apart:
        index = pack.indexes[pin.partition("==")[0]]
        try:
            pip([pin])
        except ToolchainError:
            try:
                pip([pin], "--default-index", index)
            except ToolchainError as error:
                hint = f"it comes from {index}; name a folder or an index that has it"
                raise _explained(pack, pin, hint, error) from error


def _explained(pack: Pack, what: str, hint: str, error: ToolchainError) -> ToolchainError:
    return ToolchainError(
        f"pack {pack.name}: {what} cannot be installed:\n{error.what}",
        hint=f"{hint} by uv's variables UV_FIND_LINKS or UV_INDEX",
        log_path=error.log_path,
    )


def _digest_of_folder(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return key_of(
        [(str(path.relative_to(folder)), hashlib.sha256(path.read_bytes()).hexdigest()) for path in files]
    )
