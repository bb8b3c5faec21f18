"""Which MLIR passes of a checkout use a source file.

A pass is what a `.td` file defines as `def NAME : Pass<…>`; its file is the one that names `NAMEBase`. A pass
uses another file where its object refers to a symbol of that file's object, or of one that does, as the
linker resolves them (`building.object_uses`), and a header where it includes it. This is a bound from above:
what is linked need not be called. A file that no pass reaches (Python bindings) is said to be of none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from irdiff.resolve.toolchains import includes
from irdiff.resolve.toolchains.includes import HEADERS

_PASS = re.compile(r"^\s*def\s+(\w+)\s*:\s*Pass<", re.MULTILINE)
_BASE = re.compile(r"\b(\w+)Base\b")
_CODE = (".cpp", ".cc", *HEADERS)
SOURCES = (*_CODE, ".td")
_BESIDE = re.compile(r"(?:^|/)(?:test|unittest|examples|bin)/")


class PassIndex:
    """The passes of one revision by the files that they use."""

    def __init__(self, texts: Mapping[str, str], uses: Mapping[str, Sequence[str]]) -> None:
        """`texts` of all sources by path; `uses` as of `object_uses.index`."""
        kept = {path: text for path, text in texts.items() if not _BESIDE.search(path)}
        self._defined = {
            path: set(_PASS.findall(text)) for path, text in kept.items() if path.endswith(".td")
        }
        known = {name for names in self._defined.values() for name in names}
        code = {path: text for path, text in kept.items() if path.endswith(_CODE)}
        self._own = {path: set(_BASE.findall(text)) & known for path, text in code.items()}
        self._uses = uses
        self._includers = includes.includers(code)

    def passes_of(self, edited: Iterable[str]) -> dict[str, list[str]]:
        """For each edited source the passes that use it, as MLIR prints them."""
        chosen = sorted(path for path in edited if path.endswith(SOURCES) and not _BESIDE.search(path))
        return {path: self._of(path) for path in chosen}

    def _of(self, path: str) -> list[str]:
        if path in self._defined:
            return sorted(self._defined[path])
        found: set[str] = set()
        seen, pending = {path}, [path]
        while pending:
            one = pending.pop()
            own = self._own.get(one, set())
            found |= own
            if own:
                continue  # what refers to a pass's file runs the pass, and is not part of it
            users = self._includers.get(one, set()) if one.endswith(HEADERS) else set(self._uses.get(one, ()))
            pending += users - seen
            seen |= users
        return sorted(found)
