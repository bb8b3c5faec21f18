"""PTX without what cannot reach machine code, and otherwise to the byte: the input of an assembler.

Only debug information and comments go: lines `.loc` and `.file`, `.section .debug_* { … }`, `// …`. No name,
number or blank of anything else changes: `ptxas` allocates by them (renaming a kernel alone gave other
machine code in 3 of 10 cases for sm_100). Where a text is not as compilers print it, less is taken out:

- a line keeps its comment where a quotation mark stands before it;
- a text with a block comment, a backslash, a character that is not printable ASCII, or a line with an odd
  number of quotation marks is kept whole: a comment could begin in a string, or a string in a comment.
"""

from __future__ import annotations

import re

_IN_DOUBT = re.compile(r'/\*|\*/|\\|[^\t\n -~]|^[^"\n]*"(?:[^"\n]*"[^"\n]*")*+[^"\n]*$', re.M)
_LINE_TABLE = re.compile(
    r"^[ \t]*+(?:\.loc[ \t]+\d+[ \t]+\d+[ \t]+\d+"
    r"(?:,[ \t]*function_name[ \t]+[\w$]+(?:[ \t]*\+[ \t]*\d+)?,[ \t]*inlined_at[ \t]+\d+[ \t]+\d+[ \t]+\d+)?"
    r'|\.file[ \t]+\d+[ \t]+"[^"\n]*"(?:,[ \t]*\d+)*+)[ \t]*+\n',
    re.M,
)
_DEBUG_SECTION = re.compile(
    r"^[ \t]*+\.section[ \t]+\.debug_\w+\s*+\{\s*+"
    r"(?:(?:\.b(?:8|16|32|64)[ \t][^{}\n]*+|[\w$]++:)\s*+)*+\}[ \t]*+\n",
    re.M,
)


def assembler_input(ptx: str) -> str:
    """Equal here, under the same assembler and flags, is equal machine code."""
    if _IN_DOUBT.search(ptx):
        return ptx
    text = "".join(map(_without_comment, ptx.split("\n")))
    return _DEBUG_SECTION.sub("", _LINE_TABLE.sub("", text))


def _without_comment(line: str) -> str:
    start = line.find("//")
    if start < 0 or '"' in line[:start]:
        return f"{line}\n"
    kept = line[:start].rstrip(" \t")
    return f"{kept}\n" if kept else ""
