"""Turns a user's spec of a side into an installed, identified Triton.

    triton==3.8.0        a release from the package index
    wheel:/path/x.whl    a wheel file
    python:/path/python  the Triton of an interpreter: nothing is installed or changed

Each may have settings, as in triton==3.9.0+num_warps=8 (`irdiff.resolve.settings`). `irdiff.resolve.sides`
resolves revisions of a checkout, with `commits.py`. Every kind ends in `identity.identify`, which digests
everything that the interpreter holds.
"""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve import settings
from irdiff.resolve.toolchains import environments, identity
from irdiff.store import sha256_of_file

KINDS = "triton==VERSION, wheel:PATH, python:PATH; for a revision, `irdiff toolchain build REV`"
# Triton up to 3.5 imports setuptools at run time without asking for it.
_COMPANIONS = ("setuptools<81",)
_VERSION = re.compile(r"[0-9][0-9A-Za-z.!+_-]*")
_PYTHON = f"cp{sys.version_info.major}{sys.version_info.minor}"


@dataclass(frozen=True, kw_only=True)
class _Located:
    """An installed Triton whose files were not hashed yet."""

    spec: str
    python: str
    path: Path
    settings: Mapping[str, str]


def resolve(spec: str, config: Config) -> Toolchain:
    """Installs the toolchain of a side if necessary. Raises ToolchainError, UsageError."""
    return _identified(_located(spec, config), config)


def resolve_all(specs: Iterable[str], config: Config) -> dict[str, Toolchain]:
    """Installs one after the other, then hashes the files of all at once: Triton's largest file takes a core
    for seconds. Raises as `resolve`.
    """
    located = {spec: _located(spec, config) for spec in dict.fromkeys(specs)}
    with ThreadPoolExecutor() as pool:
        identified = pool.map(lambda each: _identified(each, config), located.values())
        return dict(zip(located, identified, strict=True))


def _identified(located: _Located, config: Config) -> Toolchain:
    return identity.identify(located.spec, located.python, located.path, config, located.settings)


def _located(spec: str, config: Config) -> _Located:
    plain, chosen = settings.split(spec)
    kind, _, path = plain.partition(":")
    if plain.startswith("triton==") and "," not in plain:
        version = plain.removeprefix("triton==")
        if not _VERSION.fullmatch(version):
            raise UsageError(f"{plain!r}: {version!r} is no version", hint="write it as in triton==3.9.0")
        return _installed(plain, f"triton-{version}-{_PYTHON}", plain, config, chosen)
    if kind == "wheel" and path:
        return _of_wheel(plain, Path(path).expanduser().absolute(), config, chosen)
    if kind == "python" and path:
        return _of_interpreter(plain, path, chosen)
    raise UsageError(f"{plain!r} is not a side", hint=f"write one of: {KINDS}")


def _of_wheel(spec: str, wheel: Path, config: Config, chosen: Mapping[str, str]) -> _Located:
    if not wheel.is_file():
        raise ToolchainError(f"{spec}: there is no such file", hint="give the path of a triton wheel (.whl)")
    return _installed(spec, f"wheel-{sha256_of_file(wheel)[:16]}-{_PYTHON}", str(wheel), config, chosen)


def _of_interpreter(spec: str, path: str, chosen: Mapping[str, str]) -> _Located:
    program = shutil.which(str(Path(path).expanduser()))
    if program is None:
        raise ToolchainError(
            f"{spec}: {path} is not an executable file",
            hint="give the path of an interpreter, as in python:/opt/venv/bin/python",
        )
    # not resolved: a virtual environment's interpreter is a link, and is known by where it lies
    python = Path(program).absolute()
    return _Located(spec=spec, python=str(python), path=python.parent.parent, settings=chosen)


def _installed(spec: str, name: str, requirement: str, config: Config, chosen: Mapping[str, str]) -> _Located:
    def install(path: Path, log: Path) -> dict[str, object]:
        environments.install(path, [requirement, *_COMPANIONS], log, config)
        return {}

    environment = identity.make_environment(spec, name, config, install)
    return _Located(spec=spec, python=environment.python, path=environment.path, settings=chosen)
