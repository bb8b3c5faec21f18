"""Tells which files of a folder `irdiff capture` may replace: those that it wrote, and nobody has changed
since.

Each ends with a comment that holds the SHA-256 of the text above it.
"""

from __future__ import annotations

import os
import re

from ..texts import sha256

README = "README.md"
_END = re.compile(
    r"(?:# |<!-- )written by irdiff capture, which replaces it if unchanged: ([0-9a-f]{64})(?: -->)?\n"
)


def signed(name, text):
    """Appends the comment."""
    words = f"written by irdiff capture, which replaces it if unchanged: {sha256(_bytes(text))}"
    return text + (f"<!-- {words} -->\n" if name == README else f"# {words}\n")


def strangers(folder, family):
    """Lists what a recording of `family` would replace and must not."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        return ["a file of this name"]
    inner = os.path.join(folder, family)
    if os.path.lexists(inner) and (os.path.islink(inner) or not os.path.isdir(inner)):
        return [family]
    names = [README] if os.path.lexists(os.path.join(folder, README)) else []
    return [name for name in [*names, *_workloads(folder, family)] if not _is_ours(folder, name)]


def left(folder, family, files):
    """Lists unchanged workloads of an earlier recording of `family` that are not in `files`. They stay: only
    the author knows whether the program still launches them.
    """
    return [name for name in _workloads(folder, family) if name not in files and _is_ours(folder, name)]


def _workloads(folder, family):
    inner = os.path.join(folder, family)
    names = sorted(os.listdir(inner)) if os.path.isdir(inner) else ()
    return [f"{family}/{name}" for name in names if name.endswith(".py")]


def _is_ours(folder, name):
    path = os.path.join(folder, name)
    if os.path.islink(path) or not os.path.isfile(path):
        return False
    with open(path, encoding="utf-8", errors="surrogateescape", newline="") as file:
        *above, last = file.read().splitlines(keepends=True) or [""]
    signature = _END.fullmatch(last)
    return signature is not None and signature[1] == sha256(_bytes("".join(above)))


def _bytes(text):
    return text.encode(errors="surrogateescape")
