"""Names of values and blocks of MLIR, numbered with the scopes that regions give them.

A name means what its last visible definition says. A region opens a scope, which ends with it: sibling
regions use a name twice, and an isolated region may define again what is visible outside. Functions see
nothing from outside, and start to count anew. Names of blocks are those of their own region.

A name used before its definition (blocks need not be printed in the order of dominance) gets its number at
the use; the definition takes it that comes later in that region or in one around it. Where a region uses a
name that is visible from outside and only then defines it, the text does not show which of both is meant
(the second where the region is isolated): such a text is compared as it is (`UnclearError`), and so is one
that goes to a block which its region does not have.
Source: MLIR Language Reference, "Identifiers and Keywords", "Value Scoping"; `addDefinition` in its parser.
"""

from __future__ import annotations

import re

from irdiff.ir.lexing import UnclearError

_NAME = re.compile(r"(%[\w.$-]+|\^[\w.$-]+)")
_RESULTS = re.compile(r"%[\w.$-]+(?::\d+)?(?:, %[\w.$-]+(?::\d+)?)* = ")
_FUNCTION = re.compile(r"(?:tt|llvm|func|gpu)\.func\b")
_LISTS_ARGUMENTS = re.compile(r"\^|(?:tt|llvm|func|gpu)\.func\b|\w+\(%")


class _Visible(dict[str, str]):
    """Name of a value → number; one that nothing visible defines is expected to be defined later."""

    def __init__(self, names: Names) -> None:
        super().__init__()
        self._names = names

    def __missing__(self, name: str) -> str:
        return self._names.expect(name)


class _Region:
    def __init__(self, used: set[str] | None) -> None:
        self.outside: dict[str, str | None] = {}
        """The values it defines, with what their names meant before."""
        self.awaited: set[str] = set()
        """Values and blocks that are used here, or in a region within, and are not defined yet."""
        self.blocks: dict[str, str] = {}
        self.used = used
        """Names that could mean something outside; None where nothing is visible from there."""


class Names:
    """Renames lines in their order: a region begins at the end of a line and ends at the start of one."""

    def __init__(self) -> None:
        self._visible = _Visible(self)
        self._regions = [_Region(None)]
        self._region = self._regions[0]
        self._values = self._blocks = 0

    def rename(self, line: str) -> str:
        parts = _NAME.split(line)
        if len(parts) > 1 and not parts[0] and parts[2][:3] == " = " and line[-1] != "{" and "^" not in line:
            # most lines: one result, no region, no block
            parts[1] = self._define(parts[1])
            names = parts[3::2]
            if self._region.used is not None:
                self._region.used.update(names)
            parts[3::2] = map(self._visible.__getitem__, names)
            return "".join(parts)
        return self._rename_any(line, parts) if line else line

    def _rename_any(self, line: str, parts: list[str]) -> str:
        function = _FUNCTION.match(line)
        if line[0] == "}":
            self._close()
        elif function:
            self._begin_function()
        opens = line[-1] == "{"
        first = self._define_results(line, parts) if len(parts) > 1 else 1
        if opens:
            self._open(isolated=function is not None)
        if opens or line[0] == "^" or function:
            self._rename_head(line, parts, first)
        else:
            parts[first::2] = map(self._use, parts[first::2])
        return "".join(parts)

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
            parts[index] = self._define(name) if defines else self._use(name)

    def _use(self, name: str) -> str:
        if name[0] == "^":
            if name not in self._region.blocks:
                self._region.awaited.add(name)
                self._region.blocks[name] = self._number(name)
            return self._region.blocks[name]
        if self._region.used is not None:
            self._region.used.add(name)
        return self._visible[name]

    def _begin_function(self) -> None:
        self._visible.clear()
        self._region = _Region(None)
        self._regions = [self._region]
        self._values = self._blocks = 0

    def _open(self, *, isolated: bool) -> None:
        self._region = _Region(None if isolated else set())
        self._regions.append(self._region)

    def _close(self) -> None:
        if len(self._regions) == 1:
            return
        closed = self._regions.pop()
        self._region = self._regions[-1]
        for name, before in closed.outside.items():
            if before is None:
                self._visible.pop(name, None)
            else:
                self._visible[name] = before
        if not closed.awaited.isdisjoint(closed.blocks):
            raise UnclearError
        self._region.awaited = _united(self._region.awaited, closed.awaited)
        if self._region.used is not None and closed.used is not None:
            closed.used.difference_update(closed.outside)
            self._region.used = _united(self._region.used, closed.used)

    def _define(self, name: str) -> str:
        region = self._region
        if name in region.awaited:
            region.awaited.discard(name)
            if name[0] == "^":
                return region.blocks[name]
            region.outside[name] = None
            return self._visible[name]
        canonical = self._number(name)
        if name[0] == "^":
            region.blocks[name] = canonical
            return canonical
        if name not in region.outside:
            if region.used is not None and name in region.used:
                raise UnclearError
            region.outside[name] = self._visible.get(name)
        self._visible[name] = canonical
        return canonical

    def expect(self, name: str) -> str:
        self._region.awaited.add(name)
        self._visible[name] = canonical = self._number(name)
        return canonical

    def _number(self, name: str) -> str:
        if name[0] == "^":
            self._blocks += 1
            return f"^b{self._blocks - 1}"
        self._values += 1
        return f"%{self._values - 1}"


def _united(one: set[str], other: set[str]) -> set[str]:
    """The larger of both with what the smaller has: over all regions, no name is moved often."""
    larger, smaller = (one, other) if len(one) > len(other) else (other, one)
    larger |= smaller
    return larger
