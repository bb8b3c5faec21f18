"""LLVM IR. Its canonical form is in `rules`, its operations in `opcodes`; `llvm_reader` asks LLVM."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding, FindingKind
from irdiff.ir import loops
from irdiff.ir.llir.inferred_attributes import differs_in_inferred_only
from irdiff.ir.llir.opcodes import class_of
from irdiff.ir.llir.program_reader import read
from irdiff.ir.llir.rules import rows
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

TITLE = "LLVM IR"
HAS_REGISTERS = False
NAMES = re.compile(r"%[a-z]*\d+(?![\w.])|!\d+\b")
WIDE_ACCESSES: tuple[str, ...] = ()
PROGRAM: ProgramReader | None = ProgramReader(read=read, is_final=False, may_contract=True, marked=None)
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = ()
_BLANKED = re.compile(r"%[\w.$-]+(?:#\d+)?|![0-9]+\b")
_OPCODE = re.compile(
    r"(?:%[\w.$-]+ = )?(?:(?:tail|musttail|notail) )?([a-z]\w*)"
    r"(?:.*?@([\w.$-]+)\()?(?:.*?asm [a-z ]*\"(\S*))?"
)
_FLAGS = frozenset({
    *("fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"),
    *("nsw", "nuw", "exact", "disjoint", "nneg", "samesign", "inbounds"),
    *("nofree", "readnone", "readonly", "writeonly", "nocapture", "captures(none)", "noundef"),
})  # fmt: skip
_ATTRIBUTE = re.compile(r"[\w-]+(?:\([^()]*\))?")
_JUMPS = Jumps(
    label=re.compile(r"(%?[\w.$-]+)(?=:)"),
    jump=re.compile(r"\bbr\b|\bswitch\b"),
    destination=re.compile(r"label (%[\w.$-]+)"),
    marks=("label %",),
)


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    inferred = differs_in_inferred_only(base, head)
    return (Finding(FindingKind.INFERRED_ATTRIBUTES_ONLY),) if inferred else ()


def facts(stage: str, text: str) -> dict[str, int]:
    return {}


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    operation = _operation(line)
    return ParsedLine(
        text=line,
        kind=LineKind.INSTRUCTION,
        operation=operation,
        klass=class_of(operation, line),
        blank=blank(line),
        flags=_FLAGS.intersection(_ATTRIBUTE.findall(line)),
    )


def _operation(line: str) -> str:
    match = _OPCODE.match(line)
    if not match:
        return line.partition(" ")[0]
    called = match.group(2) or match.group(3)
    return called if match.group(1) == "call" and called else match.group(1)


def blank(text: str) -> str:
    return _BLANKED.sub("%", text)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS)
