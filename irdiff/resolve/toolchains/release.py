"""`triton==3.8.0` and `wheel:/path/to.whl`: a Triton installed by uv into an environment of its own."""

from __future__ import annotations

import hashlib
import re
import sys
from pathlib import Path
from typing import Any

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import environments, identity

# Triton up to 3.5 imports setuptools at run time without asking for it.
_COMPANIONS = ("setuptools<81",)
_VERSION = re.compile(r"^[0-9][0-9A-Za-z.!+_-]*$")


def install_release(spec: str, config: Config) -> Toolchain:
    version = spec.removeprefix("triton==")
    if not _VERSION.match(version):
        raise UsageError(f"{spec!r}: {version!r} is no version", hint="write it as in triton==3.9.0")
    name = f"triton-{version}-{_python_tag()}"
    try:
        return _installed(spec, name, spec, config)
    except ToolchainError as error:
        raise _explained(spec, error) from error


def install_wheel(spec: str, config: Config) -> Toolchain:
    wheel = Path(spec.removeprefix("wheel:")).expanduser().absolute()
    if not wheel.is_file():
        raise ToolchainError(f"{spec}: there is no such file", hint="give the path of a triton wheel (.whl)")
    with wheel.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    name = f"wheel-{digest[:16]}-{_python_tag()}"
    try:
        return _installed(spec, name, str(wheel), config)
    except ToolchainError as error:
        raise _explained(spec, error) from error


def _installed(spec: str, name: str, requirement: str, config: Config) -> Toolchain:
    def install(path: Path, log: Path) -> dict[str, Any]:
        python = path / "bin" / "python"
        environments.install(python, [requirement, *_COMPANIONS], log, config)
        toolchain = identity.identify(spec, str(python), path, config)
        return {"spec": spec, "version": toolchain.version, "digest": toolchain.digest}

    environment = environments.make(name, config, install)
    return identity.identify(spec, environment.python, environment.path, config)


def _python_tag() -> str:
    return f"cp{sys.version_info.major}{sys.version_info.minor}"


def _explained(spec: str, error: ToolchainError) -> ToolchainError:
    """What uv said, in one sentence with what to do."""
    text = error.what
    if re.search(
        r"no version of|no matching distribution|not found in the package registry|no wheels with", text
    ):
        what = f"{spec}: the package index has no such Triton for Python {_python_tag()} on this machine"
        hint = "releases are listed by `pip index versions triton`; 3.2.0 and later are supported"
    elif re.search(r"(?i)dns|connect|network|timed out|offline|failed to fetch|resolve host", text):
        what = f"{spec}: the package index cannot be reached"
        hint = "check the network or proxy; a wheel file works without it: wheel:/path/to/triton.whl"
    else:
        return error
    return ToolchainError(what, hint=hint, log_path=error.log_path)
