"""A ptxas by its path."""

from __future__ import annotations

import re
from pathlib import Path

from irdiff.errors import ToolchainError
from irdiff.resolve.tools import tool
from irdiff.resolve.tools.tool import Tool, ToolKind

_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


def identify(spec: str, path: Path) -> Tool:
    """Raises ToolchainError where it is no ptxas that runs."""
    program = path / "ptxas" if path.is_dir() else path
    found = _VERSION.search(tool.ask(program, "--version"))
    if not found:
        raise ToolchainError(f"{spec}: {program} tells no version", hint="name a ptxas of CUDA")
    return Tool(
        kind=ToolKind.PTXAS,
        spec=spec,
        version=f"ptxas {found[1]}",
        path=program,
        digest=tool.digest_of(program),
        programs={"ptxas": program.resolve()},
        backends=frozenset({"cuda"}),
        notes=(),
    )
