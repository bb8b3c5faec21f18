"""Tools below Triton as sides: an LLVM or a ptxas that compiles the stored texts of a run or of a release.

    llvm:/usr/lib/llvm-22            an installed LLVM, by its folder or its llc       llvm.py
    llvm:…/site-packages/llvmlite    the library of llvmlite                           llvm.py
    ptxas:/usr/local/cuda/bin/ptxas  an assembler of CUDA                              ptxas.py

A tool is known by the content of its programs and of every library that these load.
"""

from __future__ import annotations

from pathlib import Path

from irdiff.errors import UsageError
from irdiff.resolve.tools import llvm, ptxas
from irdiff.resolve.tools.tool import Tool

KINDS = ("llvm:", "ptxas:")


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
    found = llvm.identify if kind == "llvm" else ptxas.identify
    return found(spec, path)
