"""A text of which irdiff knows nothing, as a third-party backend makes it.

Rule: blanks at the ends of lines and blank lines are dropped. White space at a line's end separates nothing
in any assembly or IR. Nothing else is known to be meaningless here, so source paths in such a text show as
changes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding
from irdiff.ir import loops, opcode_classes
from irdiff.ir.canonical import Rows, unrecognized
from irdiff.ir.loops import Jumps
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.ir.program import ProgramReader

TITLE = ""
HAS_REGISTERS = False
NAMES = re.compile(r"%[a-z]*\d+(?![\w.])|\^b\d+\b|[$.]L\d+\b|!\d+\b")
WIDE_ACCESSES: tuple[str, ...] = ()
PROGRAM: ProgramReader | None = None
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = ()
_BLANKED = re.compile(r"[%^][\w.$-]+(?:#\d+)?|![0-9]+\b")
_FIRST_WORD = re.compile(r"\S+")
_JUMPS = Jumps(
    label=re.compile(r"(\^\w+|%?[\w.$-]+|\$L\d+|\.L\w+)(?=[:(])"),
    jump=re.compile(r"\bbra?\b|\bcond_br\b|branch|jump|\bswitch\b"),
    destination=re.compile(r"((?<=label )%[\w.$-]+|\^\w+|\$L\w+|\.L\w+)"),
    marks=("label %", "^", "$L", ".L"),
)


def rows(stage: str, text: str) -> Rows:
    body = [line.rstrip() for line in text.split("\n")]
    if not any(body):
        raise unrecognized(stage, "any visible character")
    return Rows(body=body, tail=[], header={})


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    return ()


def facts(stage: str, text: str) -> dict[str, int]:
    return {}


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    word = _FIRST_WORD.match(line)
    name = word.group() if word else ""
    return ParsedLine(
        text=line,
        kind=LineKind.INSTRUCTION,
        operation=name,
        klass=opcode_classes.assembly_class((), name),
        blank=blank(line),
    )


def blank(text: str) -> str:
    return _BLANKED.sub("%", text)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS)
