"""Names of values and blocks of MLIR, numbered with the scopes that regions give them.

A name means what its last visible definition says. A region opens a scope, which ends with it: sibling
regions use a name twice, and an isolated region may define again what is visible outside. Functions see
nothing from outside, and start to count anew. A name used before its definition (blocks need not be
printed in the order of dominance) gets its number at the use, and the definition in that region takes it.
Source: MLIR Language Reference, "Identifiers and Keywords", "Value Scoping".
"""

from __future__ import annotations

import re

_NAME = re.compile(r"(%[\w.$-]+|\^[\w.$-]+)")
_RESULTS = re.compile(r"%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)* = ")
_FUNCTION = re.compile(r"(?:tt|llvm|func|gpu)\.func\b")
_LISTS_ARGUMENTS = re.compile(r"\^|(?:tt|llvm|func|gpu)\.func\b|\w+\(%")


class _Visible(dict[str, str]):
    """Name → number; a name that nothing visible defines is expected to be defined later."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> str:
        return self._names.expect(name)


class Names:
    """Renames lines in their order: a region begins at the end of a line and ends at the start of one."""

    def __init__(self) -> None:
        self._visible = _Visible(self)
        self._scopes: list[dict[str, str | None]] = [{}]
        """For each open region the names it defines, with what they meant outside."""
        self._expected: set[str] = set()
        self._values = self._blocks = 0

    def rename(self, line: str) -> str:
        parts = _NAME.split(line)
        if len(parts) > 1 and not parts[0] and parts[2].startswith(" = ") and line[-1] != "{":
            # most lines: one result, no region
            parts[1] = self._define(parts[1])
            parts[3::2] = map(self._visible.__getitem__, parts[3::2])
            return "".join(parts)
        return self._rename_any(line, parts) if line else line

    def _rename_any(self, line: str, parts: list[str]) -> str:
        function = _FUNCTION.match(line)
        if line[0] == "}":
            self._close()
        elif function:
            self._begin_function()
        opens = line[-1] == "{"
        if len(parts) > 1:
            first = self._define_results(line, parts)
            if opens:
                self._scopes.append({})
            if opens or line[0] == "^" or function:
                self._rename_head(line, parts, first)
            else:
                parts[first::2] = map(self._visible.__getitem__, parts[first::2])
            return "".join(parts)
        if opens:
            self._scopes.append({})
        return line

    def _define_results(self, line: str, parts: list[str]) -> int:
        """Index of the first name that is no result."""
        if line[0] != "%":
            return 1
        results = _RESULTS.match(line)
        first = 1 + 2 * results.group().count("%") if results else 1
        for index in range(1, first, 2):
            parts[index] = self._define(parts[index])
        return first

    def _rename_head(self, line: str, parts: list[str], first: int) -> None:
        """A line that can define arguments of a block, a function or a loop."""
        lists_arguments = _LISTS_ARGUMENTS.match(line) is not None
        for index in range(first, len(parts), 2):
            name, after = parts[index], parts[index + 1]
            if name[0] == "^":
                defines = index == 1 and not parts[0]
            else:
                defines = after.startswith(" = ") or (lists_arguments and after.startswith(": "))
            parts[index] = self._define(name) if defines else self._visible[name]

    def _begin_function(self) -> None:
        self._visible.clear()
        self._expected.clear()
        self._scopes = [{}]
        self._values = self._blocks = 0

    def _close(self) -> None:
        if len(self._scopes) == 1:
            return
        for name, outer in self._scopes.pop().items():
            if outer is None:
                self._visible.pop(name, None)
            else:
                self._visible[name] = outer

    def _define(self, name: str) -> str:
        scope = self._scopes[-1]
        visible = self._visible
        if name in self._expected and name in scope:
            self._expected.discard(name)
            return visible[name]
        if name not in scope:
            scope[name] = visible.get(name)
        if name[0] == "%":
            canonical = f"%{self._values}"
            self._values += 1
        else:
            canonical = self._number(name)
        visible[name] = canonical
        return canonical

    def expect(self, name: str) -> str:
        self._expected.add(name)
        self._scopes[-1].setdefault(name, None)
        self._visible[name] = canonical = self._number(name)
        return canonical

    def _number(self, name: str) -> str:
        if name[0] == "^":
            self._blocks += 1
            return f"^b{self._blocks - 1}"
        self._values += 1
        return f"%{self._values - 1}"
