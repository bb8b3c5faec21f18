"""The compiler of head once more, built to count which lines of an edit run.

It is no side of a comparison: it compiles the cases again and reports its lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from irdiff.config import Config
from irdiff.errors import ToolchainError, UsageError
from irdiff.model import Sides, Toolchain
from irdiff.resolve.toolchains import checkout as checkouts
from irdiff.resolve.toolchains import commits, edited_lines, edited_passes, native
from irdiff.resolve.toolchains.building import compiler, line_counting
from irdiff.resolve.toolchains.building.line_counting import CountedUnits
from irdiff.resolve.toolchains.checkout import Checkout

_UNITS = (".cpp", ".cc", ".cxx")
_CODE = (*_UNITS, ".h", ".hpp")
_INCLUDE = re.compile(r'^\s*#\s*include\s*["<](?:[^">]*/)?([^">/]+)[">]', re.MULTILINE)
Resolve = Callable[[str, Config], Toolchain]


@dataclass(frozen=True, kw_only=True)
class NativeEdit:
    """What head's native code has that base's has not, by line."""

    counted: CountedUnits
    lines: Mapping[str, Mapping[int, str]]
    """By path and number, the text of each line of C++ that was added or changed."""
    without_lines: tuple[str, ...]
    """Native inputs that differ and have no lines that run: `.td`, CMake, tables."""


@dataclass(frozen=True, kw_only=True)
class CountingToolchain:
    """A compiler that counts the lines of an edit."""

    toolchain: Toolchain
    library: Path
    """What holds the counted code."""
    tools: Path
    """The folder of the programs that read its counters."""
    edit: NativeEdit


def edit_of(sides: Sides[Checkout]) -> NativeEdit:
    differing = edited_passes.differing(sides)
    code = [path for path in differing if path.endswith(_CODE) and path in sides.head.files]
    others = [path for path in differing if path not in code and path in sides.head.files]
    everything = (path for path in sides.head.native if path.endswith(_CODE))
    texts = checkouts.texts(sides.head.files, everything)
    before = checkouts.texts(sides.base.files, code)
    lines = {}
    for path in code:
        after = edited_lines.split(texts[path])
        numbers = edited_lines.numbers(before.get(path, ""), texts[path])
        lines[path] = {number: after[number - 1] for number in numbers}
    units = units_with((path for path in code if lines[path]), texts)
    return NativeEdit(counted=CountedUnits(units=tuple(units)), lines=lines, without_lines=tuple(others))


def units_with(edited: Iterable[str], texts: Mapping[str, str]) -> list[str]:
    """The units of compilation among `texts` that are one of these files or include one, however deep.

    Headers are told apart by their names alone: where two have one name, both are taken.
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


def find(sides: Sides[Checkout], config: Config, resolve: Resolve) -> CountingToolchain | None:
    """None where it was not built."""
    edit = edit_of(sides)
    if not edit.counted.units or native.find(sides.head, config, edit.counted) is None:
        return None
    return _made(sides.head, edit, config, resolve, build=False, progress=lambda _: None)


def build(
    sides: Sides[Checkout], config: Config, resolve: Resolve, progress: Callable[[str], None]
) -> CountingToolchain:
    """Raises ToolchainError; UsageError where no line of C++ differs."""
    edit = edit_of(sides)
    if not edit.counted.units:
        raise UsageError(
            f"{sides.base.label} and {sides.head.label} differ in no line of C++ that is compiled",
            hint="only lines of C++ are counted; name another base: --coverage BASE",
        )
    return _made(sides.head, edit, config, resolve, build=True, progress=progress)


def _made(
    head: Checkout,
    edit: NativeEdit,
    config: Config,
    resolve: Resolve,
    *,
    build: bool,
    progress: Callable[[str], None],
) -> CountingToolchain:
    tools = line_counting.require(compiler.chosen(config.tool_environment))
    toolchain = commits.toolchain_of(
        head, config, resolve, build=build, progress=progress, counted=edit.counted
    ).toolchain
    library = Path(toolchain.root).parent / "triton" / "_C" / "libtriton.so"
    if not library.exists():
        raise ToolchainError(f"{toolchain.path} has no libtriton.so whose lines could be counted")
    return CountingToolchain(toolchain=toolchain, library=library, tools=tools, edit=edit)
