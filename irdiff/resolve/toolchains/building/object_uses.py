"""Which source files of a build use which: by the symbols of its objects, as the linker resolves them.

Templates and inline functions have weak symbols in every object that uses them, so they tell nothing and
are left out: what is only in headers is not found here.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from irdiff import process

FILE = "irdiff-uses.json"
"""Kept in the environment of a native build."""
_OBJECT = re.compile(r"(?P<folder>.*?)CMakeFiles/[^/]+\.dir/(?P<name>.+)\.o")
_DEFINED = frozenset("TDBRCS")
_BATCH = 64


def index(source: Path, environment: Mapping[str, str]) -> dict[str, list[str]]:
    """By source file, relative to the root: the files whose objects refer to what its object defines."""
    objects = {}
    for path in sorted(source.glob("**/build/cmake*/**/*.o")):
        build = next(parent for parent in path.parents if parent.name.startswith("cmake"))
        if found := _OBJECT.fullmatch(str(path.relative_to(build))):
            objects[str(path)] = f"{found['folder']}{found['name']}"
    rows: list[str] = []
    names = list(objects)
    for begin in range(0, len(names), _BATCH):
        words = ["nm", "-A", "-P", "-g", *names[begin : begin + _BATCH]]
        rows += process.run(words, env=environment, timeout_s=300).splitlines()
    return uses(rows, objects)


def uses(rows: Iterable[str], sources: Mapping[str, str]) -> dict[str, list[str]]:
    """From what `nm -A -P` prints: `OBJECT: SYMBOL TYPE VALUE SIZE`."""
    definers: dict[str, set[str]] = defaultdict(set)
    wanted: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        path, _, rest = row.partition(": ")
        symbol, kind = [*rest.split(" "), "", ""][:2]
        if path not in sources:
            continue
        if kind == "U":
            wanted[symbol].add(sources[path])
        elif kind in _DEFINED:
            definers[symbol].add(sources[path])
    found: dict[str, set[str]] = {name: set() for name in sources.values()}
    for symbol, users in wanted.items():
        for definer in definers.get(symbol, ()):
            found[definer] |= users - {definer}
    return {name: sorted(users) for name, users in sorted(found.items())}
