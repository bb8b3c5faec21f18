"""Which files of a folder `irdiff capture` may write over: those that it wrote, and nobody has changed since.

README.md ends with a comment that holds the SHA-256 of every file it wrote, of the README itself without that
comment. Whatever else is there is somebody's work: a corpus written by hand, or a recording made better.
"""

from __future__ import annotations

import hashlib
import os
import re

_README = "README.md"
_START = "\n<!-- irdiff capture wrote these, and writes over them where they are unchanged:\n"
_END = "-->\n"
_ROW = re.compile(r"([0-9a-f]{64})  (.+)")


def strangers(folder, family):
    """Names of what a recording of `family` could write over and must not."""
    if os.path.lexists(folder) and not os.path.isdir(folder):
        return ["a file of this name"]
    inner = os.path.join(folder, family)
    if os.path.lexists(inner) and (os.path.islink(inner) or not os.path.isdir(inner)):
        return [family]
    known = _written(folder)
    names = [_README] if os.path.lexists(os.path.join(folder, _README)) else []
    if os.path.isdir(inner):
        names += [f"{family}/{name}" for name in sorted(os.listdir(inner)) if name.endswith(".py")]
    return [name for name in names if name not in known or known[name] != _digest(folder, name)]


def left(folder, family, files):
    """Workloads that an earlier recording of `family` wrote, nobody changed since, and `files` has not.

    They stay: whether the program launches them no more, or only not this time, is for its author to say.
    """
    known = _written(folder)
    return [
        name
        for name in sorted(known)
        if name.startswith(f"{family}/") and name not in files and _digest(folder, name) == known[name]
    ]


def readme(folder, text, files):
    """README.md with its comment, which lists these files (name → text) and earlier unchanged ones."""
    rows = {name: digest for name, digest in _written(folder).items() if _digest(folder, name) == digest}
    rows.update((name, _sha256(content)) for name, content in files.items())
    rows[_README] = _sha256(text)
    return text + _START + "".join(f"{digest}  {name}\n" for name, digest in sorted(rows.items())) + _END


def _written(folder):
    """The table {name: digest} of the README that is there."""
    comment = _read(folder, _README).partition(_START)[2]
    return {found[2]: found[1] for line in comment.splitlines() if (found := _ROW.fullmatch(line))}


def _digest(folder, name):
    text = _read(folder, name)
    if name == _README:
        head, _, comment = text.partition(_START)
        return _sha256(head) if comment.endswith(_END) else None
    return _sha256(text) if text else None


def _read(folder, name):
    path = os.path.join(folder, name)
    if os.path.islink(path) or not os.path.isfile(path):
        return ""
    with open(path, encoding="utf-8", errors="replace", newline="") as file:
        return file.read()


def _sha256(text):
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()
