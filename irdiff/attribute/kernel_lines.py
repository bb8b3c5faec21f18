"""The line of a kernel's source behind a line of raw MLIR or LLVM IR, through its location."""

from __future__ import annotations

import re

_MLIR_USE = re.compile(r"loc\((#loc\d*)\)\s*$|loc\((.*)\)\s*$")
_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'"([^"\n]+\.py)":(\d+):(\d+)')
_NAME = re.compile(r"#loc\d*")
_LLVM_USE = re.compile(r"!dbg !(\d+)")
_LLVM_LOCATION = re.compile(r"^!(\d+) = (?:distinct )?!DILocation\(line: (\d+),", re.MULTILINE)
_MAX_DEPTH = 16


class Locations:
    """Of one raw text. Unknown stays unknown: None."""

    def __init__(self, raw: str) -> None:
        self._lines = raw.splitlines()
        self._aliases = dict(_MLIR_ALIAS.findall(raw))
        self._llvm = {name: int(line) for name, line in _LLVM_LOCATION.findall(raw)}

    def of_line(self, number: int) -> tuple[str, int] | None:
        """(file, line) of raw line `number`, from 1; the file is empty in LLVM IR."""
        if not 0 < number <= len(self._lines):
            return None
        line = self._lines[number - 1]
        debug = _LLVM_USE.search(line)
        if debug:
            found = self._llvm.get(debug.group(1))
            return ("", found) if found else None
        use = _MLIR_USE.search(line)
        return self._resolve(use.group(1) or use.group(2), 0) if use else None

    def _resolve(self, text: str, depth: int) -> tuple[str, int] | None:
        if depth > _MAX_DEPTH:
            return None
        if text.startswith("callsite("):  # `callsite(callee at caller)`: the caller is the kernel
            found = self._resolve(text.rpartition(" at ")[2], depth + 1)
            if found:
                return found
        place = _FILE.search(text)
        if place:
            return place.group(1), int(place.group(2))
        for name in reversed(_NAME.findall(text)):
            found = self._resolve(self._aliases[name], depth + 1) if name in self._aliases else None
            if found:
                return found
        return None
