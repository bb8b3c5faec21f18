"""Packages that kernels and programs import, installed beside a toolchain: `--with torch`.

    irdiff compare main HEAD --with torch
    [kernels] packages = ["torch"]        in irdiff.toml

uv resolves and installs them once for a version of Python, into an environment that holds no Triton: it comes
last on the path of a worker, so that the Triton of a toolchain is never replaced. What was installed is part
of the digest of the corpus that imports it. Torch and its like come from torch's own index of CPU
builds, since nothing is computed here. UV_TORCH_BACKEND, and whatever else uv is told, chooses another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve.corpus import Corpus, Packages
from irdiff.resolve.toolchains import environments, install_progress
from irdiff.store import key_of

_REQUIREMENT = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\s*\[[^\]]*\])?\s*((?:[<>=!~]=?=?|@).*)?")
_TRITONS = ("triton", "pytorch-triton", "pytorch-triton-rocm", "triton-rocm", "triton-windows")
"""Distributions of Triton: that of the toolchain is there."""


def name_of(requirement: str) -> str:
    """The normalized name of a package. Raises UsageError where it is no requirement, or names Triton."""
    found = _REQUIREMENT.fullmatch(requirement.strip())
    if found is None:
        raise UsageError(f"{requirement!r} is no package", hint='write it as in torch, or "torch==2.13.0"')
    name = re.sub(r"[-_.]+", "-", found[1]).lower()
    if name in _TRITONS:
        raise UsageError(f"{requirement}: Triton is that of the toolchain", hint="name it with --triton")
    return name


def is_open(requirement: str) -> bool:
    """Whether it leaves the version to whoever installs it."""
    found = _REQUIREMENT.fullmatch(requirement.strip())
    return found is not None and not found[3]


def beside(kernels: Corpus, toolchain: Toolchain, requirements: Sequence[str], config: Config) -> Corpus:
    """The corpus with packages for every family that has none of its own. Raises ToolchainError."""
    if not requirements:
        return kernels
    found = _installed(requirements, toolchain, config)
    families = {name.partition("/")[0] for name in kernels.workloads} - kernels.packages.keys()
    digest = key_of("packages/2", kernels.digest, found.digest)
    return replace(kernels, packages={**kernels.packages, **dict.fromkeys(families, found)}, digest=digest)


def note(requirements: Sequence[str]) -> str:
    return f"with {', '.join(requirements)}" if requirements else ""


def site(requirements: Sequence[str], toolchain: Toolchain, config: Config) -> Path:
    """The folder of packages that a program recorded under a toolchain is given."""
    return _installed(requirements, toolchain, config).site


def _installed(requirements: Sequence[str], toolchain: Toolchain, config: Config) -> Packages:
    wanted = sorted({requirement.strip() for requirement in requirements}, key=name_of)
    version = "".join(map(str, python_version(toolchain.python, config)))

    def fill(path: Path, log: Path) -> dict[str, Any]:
        install_progress.say(f"installing {', '.join(wanted)}, once: minutes, and a gigabyte for torch")
        _install(wanted, path, log, config)
        place = site_of(path)
        return {"spec": f"with:{','.join(wanted)}", "version": "", "digest": recorded_digest(place)}

    name = f"with-cp{version}-{key_of(wanted)[:12]}"
    made = environments.make(name, config, fill, python=toolchain.python)
    return Packages(
        site=site_of(made.path),
        imports=("torch",),
        kernels=(),
        torch_compile=True,
        digest=str(made.state["digest"]),
    )


def _install(wanted: Sequence[str], path: Path, log: Path, config: Config) -> None:
    """From torch's index first, unless the user's uv is told where builds lie; then as uv is told."""
    excluded = path / "excluded.txt"
    excluded.write_text("".join(f"{name}\n" for name in _TRITONS), encoding="utf-8")
    words: list[str | Path] = ["pip", "install", "--compile-bytecode", "--python", path]
    words += ["--excludes", excluded]
    told = environments.uv_environment(config)
    ways: list[list[str]] = [["--torch-backend", "cpu"], []]
    if told.get("UV_TORCH_BACKEND"):
        ways = [[]]
    elif told.get("UV_FIND_LINKS"):
        ways.reverse()
    for number, way in enumerate(ways, 1):
        try:
            environments.uv([*words, *way, *wanted], log, config)
        except ToolchainError as error:
            if number < len(ways):
                continue
            raise ToolchainError(
                f"the packages {', '.join(wanted)} cannot be installed:\n{error.what}",
                hint="check their names and the network; UV_INDEX, UV_FIND_LINKS and UV_TORCH_BACKEND name "
                "other places",
                log_path=error.log_path,
            ) from error
        else:
            return


def python_version(python: str, config: Config) -> tuple[int, ...]:
    code = "import sys; print(*sys.version_info[:2])"
    words = process.run([python, "-c", code], env=config.compiler_environment, timeout_s=60).split()
    return tuple(map(int, words))


def site_of(environment: Path) -> Path:
    return next(environment.glob("lib/python*/site-packages"))


def recorded_digest(place: Path) -> str:
    """A digest of the packages' own records of their files, without bytecode and the installer's notes."""
    rows = set()
    for record in place.glob("*.dist-info/RECORD"):
        for line in record.read_text(encoding="utf-8").splitlines():
            path, _, rest = line.partition(",")
            if "sha256=" in rest and not path.startswith("../") and ".dist-info/" not in path:
                rows.add(line)
    return key_of("records/1", sorted(rows))
