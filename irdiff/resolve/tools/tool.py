"""What is known of one tool, and the digest of the programs that it consists of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from irdiff import process
from irdiff.errors import ToolchainError

ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
"""The whole environment of a tool: nothing of the caller's reaches it."""
_LIBRARY = re.compile(r"^\s*(?:\S+ => )?(/\S+) \(0x[0-9a-f]+\)$", re.M)
_TIMEOUT_S = 60


class ToolKind(StrEnum):
    LLVM = "llvm"
    PTXAS = "ptxas"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One LLVM, or one ptxas."""

    kind: ToolKind
    spec: str
    version: str
    """`LLVM 22.1.8`, `ptxas 13.5.37`."""
    path: Path
    digest: str
    """SHA-256 over the content of its programs and of the libraries that they load."""
    programs: Mapping[str, Path]
    """By name: `llc`, `opt`, `llvm-mc`, `ld.lld`; `llvmlite`, the folder of the package; `ptxas`."""
    backends: frozenset[str]
    """Names of the backends of targets that it compiles for."""
    notes: tuple[str, ...]

    @property
    def links(self) -> bool:
        """Whether it makes a binary of AMD's assembly."""
        return "ld.lld" in self.programs and not {"llvm-mc", "llvmlite"}.isdisjoint(self.programs)


def ask(program: Path, *words: str) -> str:
    """What a program prints. Raises ToolchainError where it does not run."""
    try:
        return process.run([program, *words], env=ENVIRONMENT, timeout_s=_TIMEOUT_S)
    except (process.CommandFailed, process.TimeoutExpired, OSError) as error:
        text = error.tail(3) if isinstance(error, process.CommandFailed) else str(error)
        raise ToolchainError(f"{program} does not run:\n{text}", hint=f"try `{program} --version`") from error


def content_of(programs: Iterable[Path]) -> list[tuple[str, str]]:
    """Name and SHA-256 of each program and of every library that one of them loads.

    The system's loader lists the libraries, and starts nothing.
    """
    files: dict[Path, None] = {}
    for program in programs:
        files[program] = None
        traced = {**ENVIRONMENT, "LD_TRACE_LOADED_OBJECTS": "1"}
        try:
            listed = process.run([program, "--version"], env=traced, timeout_s=_TIMEOUT_S)
        except (process.CommandFailed, process.TimeoutExpired, OSError) as error:
            raise ToolchainError(f"{program} does not run: {error}", hint="install it again") from error
        files.update((Path(path), None) for path in _LIBRARY.findall(listed))
    return sorted((path.resolve().name, digest_of(path)) for path in files)


def digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
