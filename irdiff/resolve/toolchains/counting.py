"""Builds the compiler of head again so that it counts which lines of an edit run. It is no side of a
comparison: it compiles the cases again and reports its lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Sides, Toolchain
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import commits, cxx_compiler, line_counting, native
from irdiff.resolve.toolchains.checkout import Checkout
from irdiff.resolve.toolchains.line_counting import Units

_UNITS = (".cpp", ".cc", ".cxx")
_CODE = (*_UNITS, ".h", ".hpp")
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?:[^">]*/)?([^">/]+)[">]', re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class NativeEdit:
    """The lines of native code that head added or changed."""

    units: Units
    """Units of compilation that hold these lines."""
    lines: Mapping[str, Mapping[int, str]]
    """By path and number, the text of each added or changed line of C++."""
    without_lines: tuple[str, ...]
    """Native inputs that differ and have no lines that run: `.td`, CMake, tables."""


@dataclass(frozen=True, kw_only=True)
class CountingToolchain:
    toolchain: Toolchain
    library: Path
    """The library that holds the counted code."""
    tools: Path
    """The folder of the programs that read its counters."""
    edit: NativeEdit


def edit_of(sides: Sides[Checkout]) -> NativeEdit:
    differing = [path for path in checkouts.differing_native(sides) if path in sides.head.files]
    code = [path for path in differing if path.endswith(_CODE)]
    texts = checkouts.texts(sides.head.files, (path for path in sides.head.native if path.endswith(_CODE)))
    before = checkouts.texts(sides.base.files, code)
    lines = {path: edited_lines(before.get(path, ""), texts[path]) for path in code}
    units = units_with((path for path in code if lines[path]), texts)
    others = tuple(path for path in differing if path not in lines)
    return NativeEdit(units=tuple(units), lines=lines, without_lines=others)


def edited_lines(before: str, after: str) -> dict[int, str]:
    """Maps line numbers from 1. Removed lines cannot run."""
    old, new = before.split("\n"), after.split("\n")  # as compilers count lines: no other character ends one
    changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return {
        index + 1: new[index]
        for kind, _, _, first, last in changes
        if kind in ("insert", "replace")
        for index in range(first, last)
    }


def units_with(edited: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """Returns the units of compilation among `texts` that are one of these files or include one, directly or
    not. Headers are identified by their names alone: if two have the same name, both count.
    """
    included = {path: set(_INCLUDE.findall(text)) for path, text in texts.items()}
    pending = [path for path in edited if path in texts]
    seen = set(pending)
    while pending:
        name = pending.pop().rpartition("/")[2]
        users = {path for path, names in included.items() if name in names} - seen
        seen |= users
        pending += users
    return sorted(path for path in seen if path.endswith(_UNITS))


def find(sides: Sides[Checkout], config: Config) -> CountingToolchain | None:
    """Returns None if it was not built."""
    edit = edit_of(sides)
    if not edit.units or native.find(sides.head, config, edit.units) is None:
        return None
    return _made(sides.head, edit, config, build=False)


def build(sides: Sides[Checkout], config: Config) -> CountingToolchain:
    """Raises ToolchainError; UsageError if no line of C++ differs."""
    edit = edit_of(sides)
    if not edit.units:
        raise UsageError(
            f"{sides.base.label} and {sides.head.label} differ in no line of C++ that is compiled",
            hint="only lines of C++ are counted; name another base: --coverage BASE",
        )
    return _made(sides.head, edit, config, build=True)


def _made(head: Checkout, edit: NativeEdit, config: Config, *, build: bool) -> CountingToolchain:
    tools = line_counting.require(cxx_compiler.chosen(config.tool_environment))
    toolchain, _ = commits.toolchain_of(head, config, build=build, counted=edit.units)
    library = Path(toolchain.root).parent / "triton" / "_C" / "libtriton.so"
    if not library.exists():
        raise ToolchainError(
            f"{toolchain.path} has no libtriton.so, so the lines that run cannot be counted",
            hint="leave out --exercised, or build it again: irdiff toolchain build REVISION",
        )
    return CountingToolchain(toolchain=toolchain, library=library, tools=tools, edit=edit)
