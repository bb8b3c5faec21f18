"""The content of one line of an IR. Each IR parses its own lines (`parse`); everyone else reads this."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum, auto

_ASSEMBLY = re.compile(r'(?:asm|inline_asm) [^"]*"([^"]*)"')
_ESCAPED = re.compile(r"\\[0-9A-Fa-f]{2}")
_IN_ASSEMBLY = re.compile(r"(?:^|[;{]\s*)(?:@!?[$%\w]+\s+)?([a-z]\w*(?:\.[\w:]+)+)")


class LineKind(Enum):
    """How near to the machine."""

    OPERATION = auto()
    """An operation of a dialect of MLIR: its name says what it does."""
    TRANSLATED = auto()
    """An operation of a dialect of MLIR that becomes LLVM IR as it stands."""
    INSTRUCTION = auto()
    """An instruction of LLVM IR or of an assembly."""


@dataclass(frozen=True, kw_only=True)
class ParsedLine:
    """One line, parsed: an instruction, an operation, a label or a declaration."""

    text: str
    kind: LineKind
    operation: str
    """`tt.load`, `fadd`, `ld.global.b32`; of a call in LLVM IR what it calls."""
    klass: str
    """Its name in a change: a class of operations, or the operation itself where a reader must see it
    by name."""
    blank: str
    """The line without the numbers of values or registers."""
    flags: frozenset[str] = frozenset()
    """Flags that change its result: fast-math, wrapping, inferred attributes, rounding."""

    # of MLIR alone

    @property
    def types(self) -> tuple[str, ...]:
        """Types and attributes that have parameters, without the numbers of values."""
        return ()

    @property
    def typeless(self) -> str:
        """The blank line without the parameters of types."""
        return ""

    @property
    def form(self) -> str:
        """The typeless line without numbers and scalar types."""
        return ""

    @property
    def layouts(self) -> frozenset[str]:
        """`ttg.blocked`, `ttg.nvidia_mma`: the kinds of layouts in it."""
        return frozenset()


def inline_assembly(text: str) -> tuple[str, ...]:
    """The instructions of inline assembly in one line of MLIR or LLVM IR, in their order."""
    match = _ASSEMBLY.search(text)
    return tuple(_IN_ASSEMBLY.findall(_ESCAPED.sub(_unescaped, match.group(1)))) if match else ()


def _unescaped(match: re.Match[str]) -> str:
    return chr(int(match.group()[1:], 16))
