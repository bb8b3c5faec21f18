"""From what a user writes for a side to an installed, identified Triton.

    triton==3.8.0        a release from the package index            release.py
    wheel:/path/x.whl    a wheel file                                release.py
    python:/path/python  an existing interpreter that has Triton     interpreter.py

Revisions of a checkout are resolved by `irdiff.resolve.sides` with `commits.py`. Every kind ends in
`identity.identify`, which asks the interpreter what it holds and takes the digest of all of it.
"""

from __future__ import annotations

from irdiff.config import Config
from irdiff.errors import UsageError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import interpreter, release

KINDS = "triton==VERSION, wheel:PATH, python:PATH; for a revision, `irdiff toolchain build REV`"


def resolve(spec: str, config: Config) -> Toolchain:
    """The toolchain of one side, installed if need be. Raises ToolchainError, UsageError."""
    kind, _, rest = spec.partition(":")
    if spec.startswith("triton==") and "," not in spec:
        return release.install_release(spec, config)
    if kind == "wheel" and rest:
        return release.install_wheel(spec, config)
    if kind == "python" and rest:
        return interpreter.use(spec, config)
    raise UsageError(f"{spec!r} is not a side", hint=f"write one of: {KINDS}")
