"""`python:/path/to/python`: an interpreter that already has Triton. Nothing is installed or changed."""

from __future__ import annotations

import shutil
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.model import Toolchain
from irdiff.resolve.toolchains import identity


def use(spec: str, config: Config) -> Toolchain:
    wanted = spec.removeprefix("python:")
    found = shutil.which(str(Path(wanted).expanduser()))
    if found is None:
        raise ToolchainError(
            f"{spec}: {wanted} is not an executable file",
            hint="give the path of an interpreter, as in python:/opt/venv/bin/python",
        )
    # not resolved: a virtual environment's interpreter is a link, and is known by where it lies
    python = Path(found).absolute()
    return identity.identify(spec, str(python), python.parent.parent, config)
