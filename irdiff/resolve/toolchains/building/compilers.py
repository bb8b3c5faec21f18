"""Which compilers a build of Triton really runs, by the rules of its setup.py and of CMake."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff import process
from irdiff.errors import ToolchainError

_TRUE = frozenset({"on", "1", "yes", "true", "y"})
"""What setup.py takes for true (`check_env_flag`)."""
_DEFINED = re.compile(r"-D(\w+)(?::\w+)?=(.*)", re.DOTALL)
_PATIENCE_S = 120.0
_VERSION_NUMBER = re.compile(r"\b(\d+)\.\d+")


@dataclass(frozen=True, kw_only=True)
class Program:
    """One program that a build runs."""

    command: str
    path: str | None
    """None where it is not found."""
    version: str
    """The first line that it says of itself, or `none`."""

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version

    @property
    def major(self) -> int | None:
        found = _VERSION_NUMBER.search(self.version)
        return int(found[1]) if found else None


@dataclass(frozen=True, kw_only=True)
class Compilers:
    """Those of one build."""

    cxx: Program
    linker: Program

    def identity(self) -> dict[str, str]:
        return {"c++": self.cxx.version, "linker": self.linker.version}


def is_true(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").lower() in _TRUE


def cmake_arguments(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that `TRITON_APPEND_CMAKE_ARGS` sets."""
    words = shlex.split(environment.get("TRITON_APPEND_CMAKE_ARGS", ""))
    return {found[1]: found[2] for word in words if (found := _DEFINED.fullmatch(word))}


def chosen(environment: Mapping[str, str]) -> Compilers:
    """The compiler and linker that a build in this environment runs. What is appended for CMake wins."""
    with_clang = is_true(environment, "TRITON_BUILD_WITH_CLANG_LLD")
    cxx = "clang++" if with_clang else environment.get("CXX", "c++")
    cxx = cmake_arguments(environment).get("CMAKE_CXX_COMPILER", cxx)
    return Compilers(
        cxx=program(cxx, environment), linker=program("ld.lld" if with_clang else "ld", environment)
    )


def program(command: str, environment: Mapping[str, str]) -> Program:
    """Raises ToolchainError where it does not answer: a machine at its limit is no other compiler."""
    words = shlex.split(command) or ["none"]
    path = shutil.which(words[0], path=environment.get("PATH"))
    version = "none"
    if path:
        try:
            version = process.run([path, *words[1:], "--version"], env=environment, timeout_s=_PATIENCE_S)
            version = next(iter(version.splitlines()), "none")
        except process.TimeoutExpired as error:
            # no version would be the identity of another build: what was built would not be found
            raise ToolchainError(
                f"{path} --version gave no answer in {_PATIENCE_S:g} s",
                hint="the machine has too much to do, or the program waits for something: try again",
            ) from error
        except (process.CommandFailed, OSError):
            path = None
    return Program(command=command, path=str(Path(path)) if path else None, version=version)
