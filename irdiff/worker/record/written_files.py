"""Which files of a folder `irdiff capture` may write over: those that it wrote, and nobody has changed since.

Each ends with a comment that holds the SHA-256 of what is above it. Whatever else is there is somebody's
work: a corpus written by hand, or a recording made better.
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
    """The text with its comment."""
    words = f"written by irdiff capture, which replaces it if unchanged: {sha256(_bytes(text))}"
    return text + (f"<!-- {words} -->\n" if name == README else f"# {words}\n")


def strangers(folder, family):
    """Names of what a recording of `family` could write over and must not."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        return ["a file of this name"]
    inner = os.path.join(folder, family)
    if os.path.lexists(inner) and (os.path.islink(inner) or not os.path.isdir(inner)):
        return [family]
    names = [README] if os.path.lexists(os.path.join(folder, README)) else []
    return [name for name in [*names, *_workloads(folder, family)] if not _is_ours(folder, name)]


def left(folder, family, files):
    """Workloads that an earlier recording of `family` wrote, nobody changed since, and `files` has not.

    They stay: whether the program launches them no more, or only not this time, is for its author to say.
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
    found = _END.fullmatch(last)
    return found is not None and found[1] == sha256(_bytes("".join(above)))


def _bytes(text):
    return text.encode(errors="surrogateescape")
