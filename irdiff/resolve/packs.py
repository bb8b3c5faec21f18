"""Packs: kernels in real use, launched through their published packages' own functions.

    packs/NAME/pack.toml      which packages, at which versions
    packs/NAME/WORKLOAD.py    workloads `NAME/WORKLOAD`, which import them

The packages are installed when a pack is used, into an environment of their own for each version of Python,
and come last on the path of a worker: a toolchain's Triton is never replaced. Nothing is resolved: a pack
names every package that it needs, at one version. The installed packages are part of the digest.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from irdiff.adapters import adapter
from irdiff.config import Config
from irdiff.errors import CorpusError, ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve import corpus as corpora
from irdiff.resolve import extra_packages, toml_file
from irdiff.resolve.corpus import PACK_FILE, PACKS, Corpus, Packages
from irdiff.resolve.toolchains import environments
from irdiff.store import digests_below, key_of

ALL = "all"
_PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.!+_-]*")

_NOTED = re.compile(r"(\w+) \(([\w.-]+)==([^)\s]+)\)")


class Seen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    launches: int
    distinct: int
    """Distinct input digests. A launch that the frontend refuses has none."""
    compiled: int
    date: date
    toolchain: str
    target: str


class Pack(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    summary: str
    packages: tuple[str, ...]
    """All needed packages, `NAME==VERSION`, without Triton."""
    kernels: tuple[str, ...]
    """Import names of the packages that hold the kernels."""
    imports: tuple[str, ...] = ()
    """Modules that every workload imports. A worker imports them once for all cases."""
    python: str = "3.9"
    """The oldest Python that the packages support, as `3.10`."""
    seen: Seen | None = None
    torch_compile: bool = False
    """True if torch.compile writes the kernels for the target."""


def read(folder: Path) -> Pack:
    """Raises CorpusError if the file is no pack's."""
    path = folder / PACK_FILE
    try:
        checked = toml_file.checked(adapter(Pack), toml_file.read(path), str(path), "a pack file")
    except UsageError as error:
        raise CorpusError(error.what, hint="compare it with a pack that irdiff ships") from error
    for pin in checked.packages:
        if not _PIN.fullmatch(pin):
            raise CorpusError(f"{path}: {pin!r} is no pin", hint="write it as in liger-kernel==0.8.5")
    if any(pin.startswith("triton==") for pin in checked.packages):
        raise CorpusError(f"{path}: Triton comes from the toolchain", hint="leave it out of `packages`")
    return checked


def names(root: Path) -> list[str]:
    return sorted(path.parent.name for path in root.glob(f"{PACKS}/*/{PACK_FILE}"))


def load(root: Path, chosen: Sequence[str]) -> Corpus:
    """chosen: names, or `all` for every pack of the folder; None for the corpus itself. Raises
    CorpusError.
    """
    if not chosen:
        return corpora.load(root)
    root = root.expanduser().absolute()
    pack_names = names(root)
    chosen = pack_names if ALL in chosen and pack_names else chosen
    for name in sorted({*chosen} - {*pack_names}):
        raise CorpusError(f"there is no pack {name!r} in {root}", hint=f"packs: {', '.join(pack_names)}")
    folder = root / PACKS
    own = (path for name in {*chosen} for path in (folder / name).rglob("*"))
    return corpora.of_files(folder, (*folder.glob("_*.py"), *own), tuple(sorted({*chosen})))


def named_by(case_id: str, root: Path) -> tuple[str, ...]:
    family = case_id.partition("/")[0]
    return (family,) if family in names(root) else ()


def install(corpus: Corpus, toolchain: Toolchain, config: Config) -> Corpus:
    """Installs the packages for the toolchain's Python. Raises ToolchainError."""
    if not corpus.packs:
        return corpus
    version = extra_packages.python_version(toolchain.python, config)
    installed = {name: _installed(corpus.root / name, toolchain, version, config) for name in corpus.packs}
    digest = key_of("packs/1", corpus.digest, {name: beside.digest for name, beside in installed.items()})
    return replace(corpus, packages=installed, digest=digest)


def note(corpus: Corpus) -> str:
    """Formats the packs of a side with their projects, and the other installed packages, for a run."""
    pins = {name: read(corpus.root / name).packages for name in corpus.packs}
    rest = {pin: None for requirements in pins.values() for pin in requirements[1:]}
    own = ", ".join(f"{name} ({requirements[0]})" for name, requirements in pins.items())
    return f"packs {own}{' with ' if rest else ''}{' '.join(rest)}" if pins else ""


def projects(noted: str) -> dict[str, tuple[str, str]]:
    """Parses {pack: (project, version)} from a run's note."""
    return {pack: (name, version) for pack, name, version in _NOTED.findall(noted)}


def _installed(folder: Path, toolchain: Toolchain, version: tuple[int, ...], config: Config) -> Packages:
    name, pack = folder.name, read(folder)
    if version < tuple(map(int, pack.python.split("."))):
        raise ToolchainError(
            f"pack {name}: its packages need Python {pack.python}; {toolchain.spec} has "
            + ".".join(map(str, version)),
            hint="use a toolchain of a newer Python, or leave the pack out",
        )

    def fill(path: Path, log: Path) -> dict[str, Any]:
        extra_packages.install(["--no-deps"], pack.packages, path, log, config)
        return {
            "spec": f"pack:{name}",
            "version": pack.packages[0].partition("==")[2],
            "digest": extra_packages.recorded_digest(path),
        }

    key = f"pack-{name}-cp{''.join(map(str, version))}-{key_of(sorted(pack.packages))[:12]}"
    environment = environments.make(key, config, fill, python=toolchain.python)
    own = [(name, _digest_of_folder(environment.site / name)) for name in pack.kernels]
    return Packages(
        site=environment.site,
        imports=pack.imports,
        kernels=pack.kernels,
        torch_compile=pack.torch_compile,
        digest=key_of("packages/1", environment.state["digest"], own),
    )


def _digest_of_folder(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return key_of(digests_below(folder, files))
