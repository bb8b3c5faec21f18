"""Environments that irdiff installs: each by one process, once, whole or not at all.

    toolchains/NAME/           an environment, with `irdiff.json` written last
    toolchains/NAME.lock       held while it is built
    toolchains/NAME.log        what the build printed

A folder with a lock and without `irdiff.json` is a build that did not end: it is removed and built again. A
folder with neither is not irdiff's, whatever the cache folder was set to: it is not touched.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from irdiff import process
from irdiff.config import Config
from irdiff.errors import ToolchainError
from irdiff.store import write_whole

_STATE = "irdiff.json"
_STEPS_OF_UV = ("Downloading ", "Prepared ", "Installed ")
_OTHER_PLACES = (
    "check names, versions and the network; UV_INDEX, UV_FIND_LINKS and UV_TORCH_BACKEND name other places"
)
_FREE_SPACE = (
    "the disk is full: free space, with `irdiff toolchain prune` or `irdiff store prune --max-size 2GB`, or "
    "name a cache on another disk: --cache DIR or the variable IRDIFF_CACHE"
)
_shown: ContextVar[Callable[[str], None]] = ContextVar("shown", default=lambda _: None)


@dataclass(frozen=True, kw_only=True)
class Environment:
    """`state` describes the environment as it was installed."""

    name: str
    path: Path
    state: dict[str, Any]

    @property
    def python(self) -> str:
        return python_of(self.path)

    @property
    def site(self) -> Path:
        return site_of(self.path)


def python_of(path: Path) -> str:
    return str(path / "bin" / "python")


def site_of(path: Path) -> Path:
    return next(path.glob("lib/python*/site-packages"))


def find(name: str, config: Config) -> Environment | None:
    path = config.toolchains / name
    try:
        state = json.loads((path / _STATE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(state, dict) or not {"spec", "version", "digest"} <= state.keys():
        return None  # somebody else's file of this name
    return Environment(name=name, path=path, state=state)


def list_all(config: Config) -> list[Environment]:
    names = sorted(path.parent.name for path in config.toolchains.glob(f"*/{_STATE}"))
    return [environment for name in names if (environment := find(name, config))]


def touch(environment: Environment) -> None:
    """Counts as a use for `irdiff toolchain prune`."""
    with contextlib.suppress(OSError):
        os.utime(environment.path / _STATE)


def last_used(environment: Environment) -> float:
    """Returns seconds since the epoch."""
    return (environment.path / _STATE).stat().st_mtime


# removal


def remove(name: str, config: Config) -> None:
    """Raises ToolchainError if the folder is not irdiff's."""
    if find(name, config) is None and not _is_torn(name, config):
        raise ToolchainError(
            f"{config.toolchains / name} was not made by irdiff, so it was not removed",
            hint="remove it yourself; `irdiff toolchain list` shows what irdiff made",
        )
    with lock(name, config):
        _remove(name, config)


def remove_torn(config: Config) -> list[str]:
    """Removes what killed builds left. Returns the names. Does not wait for running builds."""
    removed = []
    for name in sorted(path.name for path in config.toolchains.glob("*/")):
        if not _is_torn(name, config):
            continue
        with _lock_file(name, config) as file:
            # it may have been made whole a moment ago
            if _try_lock(file) and _is_torn(name, config):
                _remove(name, config)
                removed.append(name)
    return removed


def _remove(name: str, config: Config) -> None:
    shutil.rmtree(config.toolchains / name, ignore_errors=True)
    (config.toolchains / f"{name}.log").unlink(missing_ok=True)


def _is_torn(name: str, config: Config) -> bool:
    """True if a build of irdiff did not end: it has a lock, which is created first, and no state."""
    path = config.toolchains / name
    began = (config.toolchains / f"{name}.lock").is_file()
    return began and path.is_dir() and not path.is_symlink() and not (path / _STATE).exists()


# locks


def is_at_work(name: str, config: Config) -> bool:
    """True if a process builds or removes this environment now."""
    with _lock_file(name, config) as file:
        return not _try_lock(file)


@contextlib.contextmanager
def lock(name: str, config: Config) -> Iterator[None]:
    """Lets one process at a time build an environment. The others show what they wait for."""
    with _lock_file(name, config) as file:
        if not _try_lock(file):
            log = config.toolchains / f"{name}.log"
            show_progress(f"another process makes {name}: waiting for it; follow it: tail -f {log}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock_file(name: str, config: Config) -> TextIO:
    try:
        config.toolchains.mkdir(parents=True, exist_ok=True)
        return (config.toolchains / f"{name}.lock").open("a+")
    except OSError as error:
        raise ToolchainError(
            f"cannot write {config.toolchains}: {error.strerror}",
            hint="name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        ) from error


def _try_lock(file: TextIO) -> bool:
    """Returns whether this process now holds the lock."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


# installation


def make(
    name: str,
    config: Config,
    install: Callable[[Path, Path], dict[str, Any]],
    *,
    python: str = sys.executable,
) -> Environment:
    """Fills the environment by `install(path, log)` if it is missing.

    `install` gets an empty virtual environment of `python` and a log file, and returns the state to keep. If
    it raises an error, nothing half-done stays.
    """
    if environment := find(name, config):
        touch(environment)
        return environment
    path, log = config.toolchains / name, config.toolchains / f"{name}.log"
    if path.exists() and not _is_torn(name, config) and not find(name, config):
        raise ToolchainError(
            f"{path} is there and was not made by irdiff: it is left as it is",
            hint="name another cache folder: --cache DIR or the variable IRDIFF_CACHE",
        )
    with lock(name, config):
        if environment := find(name, config):
            return environment
        _remove(name, config)
        show_progress(f"installing {name}, once: this can download a gigabyte")
        try:
            uv(["venv", "--quiet", "--no-project", "--python", python, path], log, config)
            state = {**install(path, log), "made": time.time()}
            write_whole(path / _STATE, json.dumps(state, indent=1).encode())
        except BaseException:
            shutil.rmtree(path, ignore_errors=True)
            raise
    return Environment(name=name, path=path, state=state)


@contextlib.contextmanager
def showing(show: Callable[[str], None]) -> Iterator[None]:
    """Shows the progress of everything that this thread installs or builds while this is open."""
    token = _shown.set(show)
    try:
        yield
    finally:
        _shown.reset(token)


def show_progress(text: str) -> None:
    """Shows a slow step to the user who waits for an installation."""
    _shown.get()(text)


def install(
    path: Path, requirements: Sequence[str | Path], log: Path, config: Config, *options: str | Path
) -> None:
    """Raises ToolchainError with the output of uv."""
    words = ["pip", "install", "--compile-bytecode", "--python", path, *options, *requirements]
    try:
        uv(words, log, config)
    except ToolchainError as error:
        raise ToolchainError(
            f"{', '.join(map(str, requirements))} cannot be installed:\n{error.what}",
            hint=_FREE_SPACE if os.strerror(errno.ENOSPC) in error.what else _OTHER_PLACES,
            log_path=error.log_path,
        ) from error


def uv(words: Sequence[str | Path], log: Path, config: Config) -> None:
    """Raises ToolchainError with the end of its output."""
    import uv as uv_package

    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if line.startswith(_STEPS_OF_UV):
            show_progress(f"installing {log.stem}: {line}")

    command = [uv_package.find_uv_bin(), *words]
    if process.run_logged(command, log=log, env=uv_environment(config), on_line=on_line):
        raise ToolchainError("\n".join(lines[-12:]), log_path=str(log))


def uv_environment(config: Config) -> dict[str, str]:
    """Returns the caller's variables, pip's variables where uv has none of its own (it reads none of pip's),
    and a cache next to the environments, so that files are shared by hard links.
    """
    caller = {name: value for name, value in config.tool_environment.items() if name != "VIRTUAL_ENV"}
    pips = {
        "UV_FIND_LINKS": ",".join(caller.get("PIP_FIND_LINKS", "").split()),
        "UV_DEFAULT_INDEX": caller.get("PIP_INDEX_URL", ""),
        "UV_INDEX": caller.get("PIP_EXTRA_INDEX_URL", ""),
        "SSL_CERT_FILE": caller.get("PIP_CERT", ""),
    }
    return {
        **{name: value for name, value in pips.items() if value},
        "UV_NO_CONFIG": "0",
        **caller,
        "UV_CACHE_DIR": str(config.cache / "uv"),
        "UV_LINK_MODE": "hardlink",
        "UV_PYTHON_DOWNLOADS": "never",
    }
