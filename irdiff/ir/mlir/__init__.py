"""MLIR in Triton's dialects. Its canonical form is in `rules`, the parts of a line are in `lines`."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.findings import Finding
from irdiff.ir import loops
from irdiff.ir.llir.opcodes import class_of
from irdiff.ir.loops import Jumps
from irdiff.ir.mlir import lines as parts
from irdiff.ir.mlir.counts import operations_by_class
from irdiff.ir.mlir.lines import blank
from irdiff.ir.mlir.rules import rows
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import LineKind, ParsedLine
from irdiff.ir.program import ProgramReader
from irdiff.stages import Stage

__all__ = [
    "HAS_REGISTERS",
    "NAMES",
    "NAMESPACES",
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

TITLE = ""
HAS_REGISTERS = False
NAMES = re.compile(r"%[a-z]*\d+(?![\w.])|\^b\d+\b|!\d+\b")
WIDE_ACCESSES: tuple[str, ...] = ()
PROGRAM: ProgramReader | None = None
SYNCHRONIZATION: tuple[CountedSynchronization, ...] = ()
ON_THE_WAY = "mlir"
"""Stands for the stage of a text between two passes on the way to LLVM IR."""
NAMESPACES = {"tt": rb"", "ttg": rb"gpu::", "ttng": rb"nvidia_gpu::", "amdg": rb"amdgpu::"}
"""Triton's dialects, and where below `mlir::triton` their C++ classes are."""
_COUNTED = (Stage.TTGIR, Stage.GLIR)
_TRANSLATED = ("llvm.", "nvvm.", "rocdl.")
_QUOTED_OR_CALLED = re.compile(r'"([^"]*)"|@([\w.$-]+)')
_LOOP = re.compile(r"(?:%[^=]*= )?(?:scf\.(?:for|while|parallel|forall)|affine\.for)\b")
_JUMPS = Jumps(
    label=re.compile(r"(\^\w+)(?=[:(])"),
    jump=re.compile(r"\bbr\b|\bcond_br\b|cf\.|\bswitch\b"),
    destination=re.compile(r"(\^\w+)"),
    marks=("^",),
)


def how_different(base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
    return ()


def facts(stage: str, text: str) -> dict[str, int]:
    return operations_by_class(text) if stage in _COUNTED else {}


@functools.lru_cache(maxsize=1 << 12)
def parse(line: str) -> ParsedLine:
    operation = parts.operation(line)
    translated = operation.startswith(_TRANSLATED)
    return MlirLine(
        text=line,
        kind=LineKind.TRANSLATED if translated else LineKind.OPERATION,
        operation=operation,
        klass=_translated_class(operation, line) if translated else operation,
        blank=blank(line),
    )


class MlirLine(ParsedLine):
    """Takes types apart for who asks: on the way to LLVM IR they are most of a line, and nobody does."""

    @functools.cached_property
    def types(self) -> tuple[str, ...]:
        return parts.types(self.text)

    @functools.cached_property
    def typeless(self) -> str:
        return parts.typeless(self.text)

    @functools.cached_property
    def form(self) -> str:
        return parts.without_numbers(self.typeless)

    @functools.cached_property
    def layouts(self) -> frozenset[str]:
        return parts.layout_kinds(self.text)


def _translated_class(operation: str, line: str) -> str:
    """The class of an operation of MLIR's LLVM, NVVM or ROCDL dialect, as that of LLVM IR."""
    short = operation.split(".", 1)[1]
    if short.startswith("call") or short == "inline_asm":
        match = _QUOTED_OR_CALLED.search(line)
        short = next((text for text in (match.groups() if match else ()) if text), short)
    return class_of(short, line)


def depths(lines: Sequence[str]) -> list[int]:
    return loops.depths(lines, _JUMPS, _LOOP)
