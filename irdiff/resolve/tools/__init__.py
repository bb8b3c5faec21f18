"""Tools below Triton as sides: an LLVM or a ptxas that compiles the stored texts of a run or of a release.

    llvm:/usr/lib/llvm-22            an installed LLVM, by its folder or its llc       llvm.py
    llvm:…/site-packages/llvmlite    the library of llvmlite                           llvm.py
    ptxas:/usr/local/cuda/bin/ptxas  an assembler of CUDA

A tool is known by the content of its programs and of every library that these load.
"""

from __future__ import annotations

import re
from pathlib import Path

from irdiff.errors import ToolchainError, UsageError
from irdiff.resolve.tools import llvm, tool
from irdiff.resolve.tools.tool import Tool, ToolKind

KINDS = ("llvm:", "ptxas:")
_PTXAS_VERSION = re.compile(r"\bV(\d+\.\d+\.\d+)")


def is_tool(spec: str) -> bool:
    return spec.startswith(KINDS)


def resolve(spec: str) -> Tool:
    """Raises UsageError, ToolchainError."""
    kind, _, rest = spec.partition(":")
    if not is_tool(spec) or not rest:
        raise UsageError(f"{spec!r} is no tool", hint="write llvm:/usr/lib/llvm-22 or ptxas:/path/to/ptxas")
    path = Path(rest).expanduser().absolute()
    if not path.exists():
        raise UsageError(f"{spec}: there is no {path}", hint="name an installed LLVM, or a ptxas")
    return llvm.identify(spec, path) if kind == "llvm" else _ptxas(spec, path)


def _ptxas(spec: str, path: Path) -> Tool:
    program = path / "ptxas" if path.is_dir() else path
    found = _PTXAS_VERSION.search(tool.ask(program, "--version"))
    if not found:
        raise ToolchainError(f"{spec}: {program} prints no version", hint="name a ptxas of CUDA")
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
