"""Environments that irdiff makes: each built once, by one process, whole or not at all.

    toolchains/NAME/           an environment, with `irdiff.json` written last
    toolchains/NAME.lock       held while it is built
    toolchains/NAME.log        what the build printed

A folder without `irdiff.json` is a build that did not end; it is removed and made again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError

_STATE = "irdiff.json"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One made environment. `state` is what was known of it when it was made."""

    name: str
    path: Path
    state: dict[str, Any]

    @property
    def python(self) -> str:
        return str(self.path / "bin" / "python")


def find(name: str, config: Config) -> Environment | None:
    path = config.toolchains / name
    try:
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return Environment(name=name, path=path, state=state)


def list_all(config: Config) -> list[Environment]:
    names = sorted(path.parent.name for path in config.toolchains.glob(f"*/{_STATE}"))
    return [environment for name in names if (environment := find(name, config))]


def remove(name: str, config: Config) -> None:
    with lock(name, config):
        shutil.rmtree(config.toolchains / name, ignore_errors=True)
        (config.toolchains / f"{name}.log").unlink(missing_ok=True)


def touch(environment: Environment) -> None:
    """Notes that it was used, for `irdiff toolchain prune`."""
    with contextlib.suppress(OSError):
        os.utime(environment.path / _STATE)


def last_used(environment: Environment) -> float:
    """Seconds since the epoch."""
    return (environment.path / _STATE).stat().st_mtime


@contextlib.contextmanager
def lock(name: str, config: Config) -> Iterator[None]:
    """One process at a time builds an environment; the others wait, then find it made."""
    try:
        config.toolchains.mkdir(parents=True, exist_ok=True)
        file = (config.toolchains / f"{name}.lock").open("a")
    except OSError as error:
        raise ToolchainError(
            f"cannot write {config.toolchains}: {error.strerror}",
            hint="name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def make(
    name: str,
    config: Config,
    install: Callable[[Path, Path], dict[str, Any]],
    python: str = sys.executable,
) -> Environment:
    """The environment of this name, made by `install(path, log)` unless it is there.

    `install` gets an empty virtual environment of `python` and a log file, and returns the state to keep.
    Whatever it raises, nothing half-made stays.
    """
    found = find(name, config)
    if found:
        touch(found)
        return found
    with lock(name, config):
        found = find(name, config)
        if found:
            return found
        path, log = config.toolchains / name, config.toolchains / f"{name}.log"
        shutil.rmtree(path, ignore_errors=True)
        log.unlink(missing_ok=True)
        try:
            uv(["venv", "--quiet", "--no-project", "--python", python, path], log, config)
            state = {**install(path, log), "made": time.time()}
            part = path / f"{_STATE}.part"
            part.write_text(json.dumps(state, indent=1), encoding="utf-8")
            part.replace(path / _STATE)
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
    return Environment(name=name, path=path, state=state)


def uv(words: list[str | Path], log: Path, config: Config) -> None:
    """Runs uv with a cache beside the environments, so that files are shared by hard links."""
    import uv as uv_package

    environment = {
        **config.tool_environment,
        "UV_CACHE_DIR": str(config.cache / "uv"),
        "UV_LINK_MODE": "hardlink",
        "UV_PYTHON_DOWNLOADS": "never",
        "UV_NO_CONFIG": config.tool_environment.get("UV_NO_CONFIG", "0"),
    }
    environment.pop("VIRTUAL_ENV", None)
    lines: list[str] = []
    code = process.run_logged(
        [uv_package.find_uv_bin(), *words], log=log, env=environment, on_line=lines.append
    )
    if code:
        raise ToolchainError("\n".join(lines[-12:]), log_path=str(log))
