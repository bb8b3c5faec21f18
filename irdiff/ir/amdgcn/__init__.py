"""Assembly of LLVM's AMDGPU backend. Its canonical form is in `rules`, its opcodes are in `opcodes`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding
from irdiff.ir import loops, opcode_classes
from irdiff.ir.amdgcn.opcodes import TABLE, class_of
from irdiff.ir.amdgcn.operand_texts import NAMES
from irdiff.ir.amdgcn.program_reader import read
from irdiff.ir.amdgcn.rules import rows
from irdiff.ir.amdgcn.waits import marked, unfinished
from irdiff.ir.lexing import AMDGCN
from irdiff.ir.loops import Jumps
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.ir.program import ProgramReader

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

TITLE = "assembly"
HAS_REGISTERS = True
WIDE_ACCESSES: tuple[str, ...] = ("load_global_128", "store_global_128", "load_shared_128")
PROGRAM: ProgramReader | None = ProgramReader(
    read=read, is_final=True, may_contract=False, marked=marked, unfinished=unfinished
)
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = (
    CountedSynchronization("barrier", "`s_barrier`", "the assembly has as many `s_barrier` as before"),
    CountedSynchronization("wait", "`s_waitcnt`", "the assembly has as many `s_waitcnt` as before"),
)
_BLANKED = re.compile(r"\b([avs])(?:\d+\b|\[\d+:\d+\])|\.L\d+")
_FIRST_WORD = re.compile(r"\S+")
_RAW_OPCODE = re.compile(r"^[ \t]+((?:s|v|ds|global|buffer|flat|scratch|tensor)_[a-z0-9_]+)", re.M)
_JUMPS = Jumps(
    label=re.compile(r"([\w.$-]+)(?=:)"),
    jump=re.compile(r"s_c?branch"),
    destination=re.compile(r"(\.L\w+)"),
    marks=(".L",),
)


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    return ()


def facts(stage: str, text: str) -> dict[str, int]:
    return opcode_classes.counts(text, comments=AMDGCN, opcode=_RAW_OPCODE, class_of=class_of)


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    word = _FIRST_WORD.match(line)
    opcode = word.group() if word else ""
    return ParsedLine(
        text=line,
        kind=LineKind.INSTRUCTION,
        operation=opcode,
        klass=opcode_classes.assembly_class(TABLE, opcode),
        blank=blank(line),
    )


def blank(text: str) -> str:
    return _BLANKED.sub(r"\1", text)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS)
