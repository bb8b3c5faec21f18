"""Makes what each worker has of its own: variables, and a folder for its home and its temporary files."""

from __future__ import annotations

import tempfile

from irdiff.config import Config
from irdiff.model import Toolchain
from irdiff.resolve import settings
from irdiff.store import disk_space


def new_folder(config: Config) -> str:
    """Raises StoreError."""
    above = config.temporary_folder
    try:
        return tempfile.mkdtemp(prefix="irdiff-", dir=above)
    except OSError as error:
        raise disk_space.used_up((above,), error.strerror or str(error)) from error


def environment(toolchain: Toolchain, folder: str, config: Config) -> dict[str, str]:
    own = {"HOME": folder, "TMPDIR": folder}
    return {**config.compiler_environment, **own, **settings.environment(toolchain.settings)}
