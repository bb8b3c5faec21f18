"""Installs packages that kernels and programs import next to a toolchain: `--with torch`.

    irdiff compare main HEAD --with torch
    [kernels] packages = ["torch"]        in irdiff.toml

uv resolves and installs them once for a version of Python, into an environment without Triton. That comes
last on the path of a worker, so the toolchain's Triton is never replaced. The installed packages are part of
the digest of the corpus that imports them. Torch comes from its own index of CPU builds, because nothing is
computed here. UV_TORCH_BACKEND, and uv's other variables, choose another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from irdiff import process
from irdiff.backends import BACKENDS
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve.corpus import Corpus, Packages
from irdiff.resolve.toolchains import environments
from irdiff.resolve.toolchains.environments import Environment
from irdiff.store import key_of

_OF_BACKENDS = (name for backend in BACKENDS.values() for name in backend.DISTRIBUTIONS)
_TRITONS = ("triton", "pytorch-triton", "triton-windows", *_OF_BACKENDS)
"""Distributions of Triton, which are never installed: the toolchain has its own."""


def name_of(requirement: str) -> str:
    """Normalizes the name. Raises UsageError if it is no requirement, or names Triton."""
    name = canonicalize_name(_parsed(requirement).name)
    if name in _TRITONS:
        raise UsageError(f"{requirement}: Triton comes from the toolchain", hint="name it with --triton")
    return name


def is_open(requirement: str) -> bool:
    """True if the requirement names no version."""
    parsed = _parsed(requirement)
    return not parsed.specifier and not parsed.url


def _parsed(requirement: str) -> Requirement:
    try:
        return Requirement(requirement)
    except InvalidRequirement as error:
        raise UsageError(
            f"{requirement!r} is no package", hint='write it as in torch, or "torch==2.13.0"'
        ) from error


def added_to(kernels: Corpus, toolchain: Toolchain, requirements: Sequence[str], config: Config) -> Corpus:
    """Gives packages to every family that has none. Raises ToolchainError."""
    if not requirements:
        return kernels
    environment = _installed(requirements, toolchain, config)
    digest = str(environment.state["digest"])
    packages = Packages(
        site=environment.site, imports=("torch",), kernels=(), torch_compile=True, digest=digest
    )
    families = {name.partition("/")[0] for name in kernels.workloads} - kernels.packages.keys()
    digest = key_of("packages/2", kernels.digest, packages.digest)
    return replace(kernels, packages={**kernels.packages, **dict.fromkeys(families, packages)}, digest=digest)


def note(requirements: Sequence[str]) -> str:
    return f"with {', '.join(requirements)}" if requirements else ""


def site(requirements: Sequence[str], toolchain: Toolchain, config: Config) -> Path:
    """Returns the folder of packages for a program that is recorded under a toolchain."""
    return _installed(requirements, toolchain, config).site


def _installed(requirements: Sequence[str], toolchain: Toolchain, config: Config) -> Environment:
    wanted = sorted({requirement.strip() for requirement in requirements}, key=name_of)

    def fill(path: Path, log: Path) -> dict[str, Any]:
        excluded = path / "excluded.txt"
        excluded.write_text("".join(f"{name}\n" for name in _TRITONS), encoding="utf-8")
        install(["--excludes", str(excluded)], wanted, path, log, config)
        return {"spec": f"with:{','.join(wanted)}", "version": "", "digest": recorded_digest(path)}

    version = "".join(map(str, python_version(toolchain.python, config)))
    name = f"with-cp{version}-{key_of(wanted)[:12]}"
    return environments.make(name, config, fill, python=toolchain.python)


def install(options: Sequence[str], wanted: Sequence[str], path: Path, log: Path, config: Config) -> None:
    """Installs from torch's index first, unless the user's uv has a place for builds. Raises
    ToolchainError.
    """
    variables = environments.uv_environment(config)
    ways = [["--torch-backend", "cpu"], []]
    if variables.get("UV_TORCH_BACKEND"):
        ways = [[]]
    elif variables.get("UV_FIND_LINKS"):
        ways.reverse()
    for way in ways:
        size = "a gigabyte" if way else "a gigabyte for a CPU build, 4 GB for another"
        environments.show_progress(
            f"installing {', '.join(wanted)}, once: minutes; where torch is needed, {size}"
        )
        try:
            return environments.install(path, wanted, log, config, *options, *way)
        except ToolchainError:
            if way is ways[-1]:
                raise
    return None


def python_version(python: str, config: Config) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    words = process.run([python, "-c", code], env=config.compiler_environment, timeout_s=60).split()
    return tuple(map(int, words))


def recorded_digest(environment: Path) -> str:
    """Digests the packages' own records of their files, without bytecode and the installer's notes."""
    records = set()
    for record in environments.site_of(environment).glob("*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            path, _, rest = line.partition(",")
            if "sha256=" in rest and not path.startswith("../") and ".dist-info/" not in path:
                records.add(line)
    return key_of("records/1", sorted(records))
