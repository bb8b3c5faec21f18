"""NVIDIA's machine code as nvdisasm and cuobjdump print it. Its readable form is in `rules`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding, FindingKind
from irdiff.ir import loops, opcode_classes
from irdiff.ir.loops import Jumps
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.ir.program import ProgramReader
from irdiff.ir.sass.registers import same_up_to_registers
from irdiff.ir.sass.rules import rows

__all__ = [
    "HAS_REGISTERS",
    "NAMES",
    "PROGRAM",
    "SYNCHRONIZATION",
    "TITLE",
    "WIDE_ACCESSES",
    "blank",
    "depths",
    "facts",
    "how_different",
    "parse",
    "rows",
]

TITLE = "machine code"
HAS_REGISTERS = True
NAMES = re.compile(r"\bU?[RP]\d+\b")
WIDE_ACCESSES: tuple[str, ...] = ()
PROGRAM: ProgramReader | None = None
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = ()
_BLANKED = re.compile(r"\b(UR|UP|R|P|B)\d+\b|\.L\d+")
_OPCODE = re.compile(r"(?:\{ )?(?:@!?U?P[T\d]+ )?([^\s;]+)")
"""Behind a predicate."""
_JUMPS = Jumps(
    label=re.compile(r"([\w.$-]+)(?=:)"),
    jump=re.compile(r"BRA\b"),
    destination=re.compile(r"(\.L\w+)"),
    marks=(".L",),
)


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    return (Finding(FindingKind.SAME_UP_TO_REGISTERS),) if same_up_to_registers(base, head) else ()


def facts(stage: str, text: str) -> dict[str, int]:
    return {}


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    match = _OPCODE.match(line)
    opcode = match[1] if match else ""
    return ParsedLine(
        text=line,
        kind=LineKind.INSTRUCTION,
        operation=opcode,
        klass=opcode_classes.assembly_class((), opcode),
        blank=blank(line),
    )


def blank(text: str) -> str:
    return _BLANKED.sub(r"\1", text)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS)
