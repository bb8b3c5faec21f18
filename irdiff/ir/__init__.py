"""Every text that irdiff reads, by its IR: one module or folder for each owns all reading of that text.

A canonical form states its rules, with reasons and sources, in `rules.py` of its folder. See README.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from irdiff.findings import Finding
from irdiff.ir import generic, llir, mlir
from irdiff.ir.canonical import Rows
from irdiff.ir.opcode_classes import CountedSynchronization
from irdiff.ir.parsed_line import ParsedLine
from irdiff.ir.program import ProgramReader
from irdiff.stages import Stage


class Ir(Protocol):
    """The functions that read one IR. Lines are canonical lines, as `rows` returns them."""

    TITLE: str
    """How sentences call a text of it; empty for one that is called as its stage is."""
    HAS_REGISTERS: bool
    """True if its names are registers, which are written many times; false if they are values."""
    NAMES: re.Pattern[str]
    """A value, label or register in a line."""
    WIDE_ACCESSES: tuple[str, ...]
    """The counts of accesses to memory that are as wide as they can be."""

    PROGRAM: ProgramReader | None
    """How a text is read as a program; None where it cannot be."""
    SYNCHRONIZATION: tuple[CountedSynchronization, ...]
    """The counts of instructions that synchronize, as titles say them."""

    def rows(self, stage: str, text: str) -> Rows:
        """The canonical form of a text that is not empty.

        Raises NormalizeError where nothing in it is recognized, and UnclearError where no rule may touch it.
        """

    def how_different(self, base: tuple[str, ...], head: tuple[str, ...]) -> tuple[Finding, ...]:
        """Findings about the way in which two unequal canonical texts differ."""

    def facts(self, stage: str, text: str) -> dict[str, int]:
        """Instructions of a raw text by class, each counted once; empty for an IR that has no classes."""

    def parse(self, line: str) -> ParsedLine:
        """Parses one line."""

    def blank(self, text: str) -> str:
        """One or several lines without the numbers of values or registers."""

    def depths(self, lines: Sequence[str]) -> list[int]:
        """How many loops enclose each line."""


SHARED: Mapping[str, Ir] = {
    Stage.SOURCE: mlir,
    Stage.TTIR: mlir,
    Stage.GLIR: mlir,
    Stage.TTGIR: mlir,
    mlir.ON_THE_WAY: mlir,
    Stage.LLIR: llir,
}
"""By stage, the IRs that several backends have. An assembly is listed by its backend."""
UNKNOWN: Ir = generic
"""The IR of every other stage."""
