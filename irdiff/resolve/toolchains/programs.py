"""Programs that a compilation may run, each by the file that it resolves to.

A program is a function of its input, its flags and its own content only where it is machine code. A script
may run anything, so it is no program of which the same can be said twice: it is not listed, and nothing that
it made is ever "the same by rule". It counts by its text and by every file that the text names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from irdiff.resolve.toolchains.layers import LayerKind
from irdiff.resolve.toolchains.loaded import CountedFile

_MACHINE_CODE, _SCRIPT = b"\x7fELF", b"#!"
_NAMED_FILE = re.compile(r"/[^\s\"'`;|&()<>$=:]+")
_SCRIPT_LIMIT_BYTES = 1 << 20


@dataclass(frozen=True, kw_only=True)
class Programs:
    files: tuple[CountedFile, ...]
    """The programs that are machine code."""
    scripts: tuple[CountedFile, ...]
    named: tuple[CountedFile, ...]
    """Files that the scripts name."""


def find_programs(files: Iterable[CountedFile]) -> Programs:
    found: list[CountedFile] = []
    scripts: list[CountedFile] = []
    named: list[CountedFile] = []
    for file in files:
        if not _may_run(file):
            continue
        start = _start_of(file.path)
        if start.startswith(_MACHINE_CODE):
            found.append(file)
        elif start.startswith(_SCRIPT) or file.name.startswith("program:"):
            scripts.append(file)
            named.extend(_named_in(file, start.decode(errors="replace")))
    return Programs(files=tuple(found), scripts=tuple(scripts), named=tuple(named))


def _may_run(file: CountedFile) -> bool:
    if file.name.startswith("program:"):
        return True
    is_library = ".so" in file.path.suffixes
    ours = file.layer.kind is LayerKind.BACKEND and file.module is None
    return ours and not is_library and os.access(file.path, os.X_OK)


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        start = file.read(len(_MACHINE_CODE))
        return start if start == _MACHINE_CODE else start + file.read(_SCRIPT_LIMIT_BYTES)


def _named_in(script: CountedFile, text: str) -> Iterator[CountedFile]:
    for path in sorted(set(_NAMED_FILE.findall(text))):
        if Path(path).is_file():
            name = f"{script.name}>{Path(path).name}"
            yield replace(script, name=name, path=Path(path), module=None)
