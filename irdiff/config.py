"""Flags, environment and defaults brought together, once. The only reader of `os.environ`."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import resources
from pathlib import Path

import platformdirs

from irdiff.errors import UsageError

_MIB = 1 << 20
DAY_S = 86400.0

PINNED_ENVIRONMENT = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
"""These only make a compilation repeatable: a side compiles with its release's own defaults."""
_OF_TRITON, _OF_TOOLS = "TRITON|AMDGCN|NVPTX", "LLVM|MLIR|PTXAS"
OF_COMPILERS = f"{_OF_TRITON}|{_OF_TOOLS}"
"""The first words of variables that compilers read, as a regular expression."""
_REACHES_A_COMPILER = re.compile(rf"(?:{_OF_TRITON})_|(?:\w+_)?(?:{_OF_TOOLS})_")
"""How variables that change what a compiler does begin. Others of the caller do not reach it either."""
_OF_EVERY_SHELL = re.compile(
    r"(?:LC|XDG|SSH|PYTHON|IRDIFF)\w*|\w+_VISIBLE_DEVICES|USER|USERNAME|LOGNAME|SHELL|SHLVL|PWD|OLDPWD|HOSTNAME|LANG"
    r"|LANGUAGE|TERM|COLORTERM|COLUMNS|LINES|NO_COLOR|FORCE_COLOR|DISPLAY|EDITOR|VISUAL|PAGER|TZ|VIRTUAL_ENV|_"
)
"""Variables of the user, the terminal, the language and the interpreter, and those that choose a GPU."""
_OF_FOLDERS = frozenset({"TRITON_HOME", "TRITON_CACHE_DIR", "TRITON_DUMP_DIR"})
"""They say where things are kept, and irdiff keeps them elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one compilation."""

    timeout_s: float
    memory_bytes: int


class StoreMode(StrEnum):
    """Says how a run uses a shared store."""

    READ = "read"
    WRITE = "write"
    """It leaves there what it made, and reads too."""


@dataclass(frozen=True, kw_only=True)
class SharedStoreConfig:
    """A store that many machines read: where it is, and whether this one fills it."""

    url: str
    mode: StoreMode


@dataclass(frozen=True, kw_only=True)
class Config:
    """Everything that decides how irdiff runs, apart from what it compares."""

    cache: Path
    runs: Path
    jobs: int
    limits: Limits
    compiler_environment: Mapping[str, str]
    """The whole environment of a worker. Nothing else of the caller's leaks in."""
    tool_environment: Mapping[str, str] = field(repr=False)
    """For uv, git and a compiler's own build: the caller's environment."""
    shipped: Path
    """Folder that holds `corpus`, `targets` and `reports`."""
    github_token: str | None = field(repr=False)
    github_api_url: str
    github_repository: str | None
    """`OWNER/NAME`, as GitHub's runners set it."""
    shared_store: SharedStoreConfig | None

    @property
    def store(self) -> Path:
        return self.cache / "results"

    @property
    def cleared_variables(self) -> tuple[str, ...]:
        """Names of the caller's variables that would change a compilation, and that no compiler sees."""
        names = (name for name in self.tool_environment if _REACHES_A_COMPILER.match(name))
        return tuple(sorted({*names} - _OF_FOLDERS - self.compiler_environment.keys()))

    @property
    def withheld_variables(self) -> frozenset[str]:
        """Names of the caller's variables that programs do not get, and that may matter to one that looks for
        them. Those of compilers are in `cleared_variables`.
        """
        names = (name for name in self.tool_environment if not _OF_EVERY_SHELL.fullmatch(name))
        others = {*self.compiler_environment, *self.cleared_variables, *_OF_FOLDERS}
        return frozenset(names) - others

    @property
    def pages(self) -> Path:
        return self.cache / "pages"

    @property
    def changed_files(self) -> Path:
        """The folder in which the worker keeps the names of shared files that captures changed."""
        return self.cache / "changed-files"

    @property
    def toolchains(self) -> Path:
        return self.cache / "toolchains"

    @property
    def temporary_folder(self) -> Path:
        """TMPDIR of workers, even if it is full: `tempfile.gettempdir` returns another folder then."""
        folder = Path(self.compiler_environment.get("TMPDIR", ""))
        return folder if folder.is_absolute() and folder.is_dir() else Path(tempfile.gettempdir())


def load(
    *,
    cache: Path | None = None,
    jobs: int | None = None,
    timeout_s: float = 300.0,
    memory_mib: int = 8192,
    store_mode: str | None = None,
) -> Config:
    """The configuration of this process, from arguments first, then variables, then defaults. Raises
    UsageError.
    """
    environment = dict(os.environ)
    root = cache or Path(environment.get("IRDIFF_CACHE") or platformdirs.user_cache_dir("irdiff"))
    root = root.expanduser().absolute()
    chosen_jobs = jobs or _jobs(environment) or len(os.sched_getaffinity(0))
    return Config(
        cache=root,
        runs=root / "runs",
        jobs=max(1, chosen_jobs),
        limits=Limits(timeout_s=timeout_s, memory_bytes=memory_mib * _MIB),
        compiler_environment=_compiler_environment(environment),
        tool_environment=environment,
        shipped=_shipped(),
        github_token=environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN"),
        github_api_url=environment.get("GITHUB_API_URL") or "https://api.github.com",
        github_repository=environment.get("GITHUB_REPOSITORY"),
        shared_store=_shared_store(environment, store_mode),
    )


def _jobs(environment: Mapping[str, str]) -> int:
    """Returns 0 if the variable is not set."""
    text = environment.get("IRDIFF_JOBS") or "0"
    if not text.isdecimal():
        raise UsageError(
            f"the variable IRDIFF_JOBS is {text!r}, which is no number of processes", hint="IRDIFF_JOBS=4"
        )
    return int(text)


def _shared_store(environment: Mapping[str, str], mode: str | None) -> SharedStoreConfig | None:
    url = environment.get("IRDIFF_STORE")
    return SharedStoreConfig(url=url, mode=StoreMode(mode or StoreMode.READ)) if url else None


@contextmanager
def variables(**values: str) -> Iterator[None]:
    """Sets variables for a library that reads them while it is imported, and for nothing else."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _compiler_environment(caller: Mapping[str, str]) -> dict[str, str]:
    # HOME and TMPDIR are where the interpreter lives and where temporary files go: neither reaches code.
    kept = {name: caller[name] for name in ("PATH", "HOME", "TMPDIR", "LD_LIBRARY_PATH") if name in caller}
    return {**kept, **PINNED_ENVIRONMENT}


def _shipped() -> Path:
    """Inside an installed wheel, or the checkout that this file lies in."""
    package = Path(str(resources.files("irdiff")))
    inside = package / "_shipped"
    return inside if inside.is_dir() else package.parent
