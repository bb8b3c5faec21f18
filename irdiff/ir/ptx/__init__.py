"""PTX. Its canonical form is in `rules`, its opcodes are in `opcodes`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding
from irdiff.ir import loops, opcode_classes
from irdiff.ir.lexing import PTX
from irdiff.ir.loops import Jumps
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.ir.program import ProgramReader
from irdiff.ir.ptx.opcodes import OPCODE, TABLE, class_of
from irdiff.ir.ptx.program_reader import read
from irdiff.ir.ptx.rules import rows

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

TITLE = "PTX"
HAS_REGISTERS = False
"""Its registers are virtual: each is written once, or nearly so, and renumbered with every insertion."""
NAMES = re.compile(r"%[a-z]*\d+(?![\w.])|[$.]L\d+\b")
WIDE_ACCESSES: tuple[str, ...] = (
    "load_global_128",
    "store_global_128",
    "load_shared_128",
    "store_shared_128",
)
PROGRAM: ProgramReader | None = ProgramReader(read=read, is_final=True, may_contract=True, marked=None)
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = (
    CountedSynchronization(
        "barrier", "PTX `bar` and `mbarrier`", "PTX has as many `bar` and `mbarrier` as before"
    ),
    CountedSynchronization("fence", "PTX `fence`", "PTX has as many `fence` as before"),
)
_BLANKED = re.compile(r"%(?:[a-z]+)\d+|\$L\d+")
_OPCODE = re.compile(rf"(?:\{{\s*)?(?:@!?%\w+ )?({OPCODE})")
_RAW_OPCODE = re.compile(rf"^[ \t{{]*+(?:@!?%?\w++[ \t]++)?({OPCODE})[ \t;]", re.M)
_FLAGS = frozenset({"rn", "rz", "rm", "rp", "rni", "rzi", "ftz", "sat", "approx", "full", "relu"})
_JUMPS = Jumps(
    label=re.compile(r"([%$\w.-]+)(?=:)"),
    jump=re.compile(r"\bbra\b"),
    destination=re.compile(r"(\$L\w+)"),
    marks=("$L",),
)


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    return ()


def facts(stage: str, text: str) -> dict[str, int]:
    return opcode_classes.counts(text, comments=PTX, opcode=_RAW_OPCODE, class_of=class_of)


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    match = _OPCODE.match(line)
    opcode = match.group(1) if match else line.partition(" ")[0]
    return ParsedLine(
        text=line,
        kind=LineKind.INSTRUCTION,
        operation=opcode,
        klass=opcode_classes.assembly_class(TABLE, opcode),
        blank=blank(line),
        flags=_FLAGS.intersection(opcode.split(".")[1:]),
    )


def blank(text: str) -> str:
    return _BLANKED.sub("%", text)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS)
