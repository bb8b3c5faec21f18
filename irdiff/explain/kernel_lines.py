"""The lines of source behind a line of raw MLIR or LLVM IR, by its location: a helper's, and who calls it."""

from __future__ import annotations

import re

Place = tuple[str, int]
"""(file, line)"""

_MLIR_USE = re.compile(r"loc\((#loc\d*)\)\s*$|loc\((.*)\)\s*$")
_MLIR_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.MULTILINE)
_FILE = re.compile(r'"([^"\n]+\.py)":(\d+):(\d+)')
_NAME = re.compile(r"#loc\d*")
_NAMED = re.compile(r'"(?:[^"\\]|\\.)*"\((.*)\)')
_LLVM_USE = re.compile(r"!dbg !(\d+)")
_LLVM_NODE = re.compile(
    r"^!(\d+) = (?:distinct )?!DI(Location|Subprogram|LexicalBlock|LexicalBlockFile|File)\((.*)\)$"
)
_LLVM_NUMBER = re.compile(r"\b(line|scope|inlinedAt|file): !?(\d+)")
_LLVM_FILE = re.compile(r'filename: "([^"]*)", directory: "([^"]*)"')
_MAX_DEPTH = 12
_OWN_LIBRARY = re.compile(r"/triton/(?:language|experimental)/")
"""Triton's functions that kernels call, `tl.sum` or `tl.cdiv`: the kernel's own line says more."""


class Locations:
    """Reads the source locations of one raw text. An unknown location is left out."""

    def __init__(self, raw: str) -> None:
        self._lines = raw.splitlines()
        self._aliases = dict(_MLIR_ALIAS.findall(raw))
        nodes = (_LLVM_NODE.match(line) for line in self._lines if line.startswith("!"))
        self._nodes = {match[1]: match[3] for match in nodes if match}

    def of_line(self, number: int) -> tuple[Place, ...]:
        """Where raw line `number`, from 1, comes from: the innermost place first, then what calls it.

        Triton's own library counts only where nothing calls it.
        """
        if not 0 < number <= len(self._lines):
            return ()
        line = self._lines[number - 1]
        debug, use = _LLVM_USE.search(line), _MLIR_USE.search(line)
        text = use[1] or use[2] if use else ""
        location = self._of_llvm(debug[1], 0) if debug else self._of_mlir(text, 0)
        return tuple(place for place in location if not _OWN_LIBRARY.search(place[0])) or location[-1:]

    def _of_mlir(self, text: str, depth: int) -> tuple[Place, ...]:
        if depth > _MAX_DEPTH:
            return ()
        if text in self._aliases:
            return self._of_mlir(self._aliases[text], depth + 1)
        if text.startswith("callsite(") and text.endswith(")"):
            callee, caller = _halves(text[len("callsite(") : -1])
            return (self._of_mlir(callee, depth) + self._of_mlir(caller, depth))[:_MAX_DEPTH]
        if named := _NAMED.fullmatch(text):
            return self._of_mlir(named[1], depth)
        if place := _FILE.search(text):
            return ((place[1], int(place[2])),)
        names = (name for name in reversed(_NAME.findall(text)) if name in self._aliases)
        return next(filter(None, (self._of_mlir(name, depth + 1) for name in names)), ())

    def _of_llvm(self, name: str, depth: int) -> tuple[Place, ...]:
        numbers = dict(_LLVM_NUMBER.findall(self._nodes.get(name, "")))
        if depth > _MAX_DEPTH or "line" not in numbers:
            return ()
        file = self._file(numbers.get("scope", ""), 0)
        here = ((file, int(numbers["line"])),) if file else ()
        return here + (self._of_llvm(numbers["inlinedAt"], depth + 1) if "inlinedAt" in numbers else ())

    def _file(self, scope: str, depth: int) -> str:
        """Returns the file of a scope, or of the nearest scope around it that names one; or else nothing."""
        text = self._nodes.get(scope, "")
        numbers = dict(_LLVM_NUMBER.findall(text))
        if named := _LLVM_FILE.search(self._nodes.get(numbers.get("file", ""), "")):
            return f"{named[2]}/{named[1]}" if named[2] else named[1]
        return self._file(numbers["scope"], depth + 1) if "scope" in numbers and depth < _MAX_DEPTH else ""


def _halves(text: str) -> tuple[str, str]:
    """Splits a text at the first ` at ` that is in no parentheses or brackets."""
    depth = 0
    for match in re.finditer(r"[()\[\]]| at ", text):
        if match[0] == " at " and depth == 0:
            return text[: match.start()], text[match.end() :]
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(match[0], 0)
    return text, ""
