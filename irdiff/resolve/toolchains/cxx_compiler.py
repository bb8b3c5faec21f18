"""Finds the C++ compiler and the LLVM that a build of Triton uses, by the rules of its setup.py and
of CMake.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff import process
from irdiff.errors import ToolchainError
from irdiff.store import key_of

_DEFINED = re.compile(r"-D(\w+)(?::\w+)?=(.*)", re.DOTALL)
_TIMEOUT_S = 120.0
_VERSION_OF_LLVM = re.compile(r"set\(LLVM_PACKAGE_VERSION \"?([^)\"\s]+)")


@dataclass(frozen=True, kw_only=True)
class CxxCompiler:
    path: Path | None
    """None if it is not found."""
    version: str
    """The first line of its `--version`, or `none`."""

    @property
    def is_clang(self) -> bool:
        return "clang" in self.version


def cmake_arguments(environment: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that `TRITON_APPEND_CMAKE_ARGS` sets."""
    words = shlex.split(environment.get("TRITON_APPEND_CMAKE_ARGS", ""))
    return {match[1]: match[2] for word in words if (match := _DEFINED.fullmatch(word))}


def chosen(environment: Mapping[str, str]) -> CxxCompiler:
    """Returns the compiler that a build in this environment runs. Raises ToolchainError if it prints no
    version: it could not be told from another compiler.
    """
    with_clang = environment.get("TRITON_BUILD_WITH_CLANG_LLD", "").lower() in ("on", "1", "yes", "true", "y")
    command = "clang++" if with_clang else environment.get("CXX", "c++")
    words = shlex.split(cmake_arguments(environment).get("CMAKE_CXX_COMPILER", command)) or ["none"]
    path = shutil.which(words[0], path=environment.get("PATH"))
    if path is None:
        return CxxCompiler(path=None, version="none")
    try:
        output = process.run([path, *words[1:], "--version"], env=environment, timeout_s=_TIMEOUT_S)
    except process.TimeoutExpired as error:
        raise ToolchainError(
            f"{path} --version gave no answer in {_TIMEOUT_S:g} s",
            hint="the machine has too much to do, or the program waits for something: try again",
        ) from error
    except (process.CommandFailed, OSError):
        return CxxCompiler(path=None, version="none")
    return CxxCompiler(path=Path(path), version=next(iter(output.splitlines()), "none"))


def missing_of_llvm(folder: Path) -> list[str]:
    """Lists files that a build of Triton reads and this LLVM lacks, relative to its folder."""
    wanted = ("llvm/LLVMConfig.cmake", "mlir/MLIRConfig.cmake", "lld/LLDConfig.cmake")
    return [path for path in (f"lib/cmake/{name}" for name in wanted) if not (folder / path).is_file()]


def llvm_title(folder: Path) -> str:
    """`LLVM 22.1.8`."""
    try:
        text = (folder / "lib/cmake/llvm/LLVMConfig.cmake").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    match = _VERSION_OF_LLVM.search(text)
    return f"LLVM {match[1] if match else 'of unknown version'}"


def llvm_identity(folder: Path) -> str:
    """Identifies one state of an LLVM by the size and time of each library, and the text of its CMake files.
    The version does not: distributions rebuild one version with other patches.
    """
    libraries = ((path.name, path.stat()) for path in sorted((folder / "lib").glob("lib*")) if path.is_file())
    library_states = [(name, stat.st_size, stat.st_mtime_ns) for name, stat in libraries]
    described = sorted((folder / "lib" / "cmake").glob("*/*.cmake"))
    return key_of(
        "llvm/3", library_states, [path.read_text(encoding="utf-8", errors="replace") for path in described]
    )
