"""The sequence of operations of a text: names, numbers and attributes apart, what it does in which order.

No rule renames, drops or moves an operation, so texts whose sequences differ cannot have the same
canonical form. That is much cheaper to find out than the canonical form, and true of most changes.
"""

from __future__ import annotations

import re

_MLIR = re.compile(r"\n(?:%[^\n= ]*(?:, [^\n= ]+)* = )?\"?([a-z_]+\.[a-z_0-9.]+)")
_PATTERNS = {
    "llir": re.compile(
        r"\n(?:%[^ \n]+ = ([a-z]+)|(store|br|ret|call|tail|switch|fence|unreachable)(?=[ \n]))"
    ),
    "ptx": re.compile(r"\n(?:@!?%\w+ )?([a-z][\w.]*+)(?=[ ;])"),
    "amdgcn": re.compile(r"\n([svdbgf][a-z0-9]*+_[a-z0-9_]++)(?=[ \n])"),
    "ttir": _MLIR,
    "ttgir": _MLIR,
    "glir": _MLIR,
    "source": _MLIR,
}
_HEADERS = re.compile(
    r'^(?:\.version|\.amdgcn_target|target (?:triple|datalayout))[^\n]*|"ttng\.two-ctas" = false', re.M
)


def operations(ir: str, stripped: str) -> list[object]:
    """Of a text that the normalizer's `strip` has made; empty for an IR that has no pattern."""
    pattern = _PATTERNS.get(ir)
    return list(pattern.findall(stripped)) if pattern else []


def header_lines(stripped: str) -> list[str]:
    """The lines that end up in the header and differ between toolchains."""
    return _HEADERS.findall(stripped)
