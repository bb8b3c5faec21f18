"""What every reader makes of its text: functions of blocks of instructions. Pure.

An operand is a register (`str`), an integer (`int`) or text that stays as it is (`Verbatim`): a symbol, a
literal of floating point, a special register. Registers may be written several times.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class ReadError(Exception):
    """A text, or a part of it, is not understood; the message says what."""


class Verbatim(NamedTuple):
    text: str


Operand = str | int | Verbatim


class Act(StrEnum):
    """What an instruction does besides computing its results."""

    LOAD = "load"
    STORE = "store"
    ATOMIC = "atomic operation"
    COPY = "copy"
    """In the background: `cp.async`, TMA."""
    MATRIX = "matrix instruction"
    """Reads or writes memory by itself: wgmma, tcgen05."""
    SYNC = "synchronization"
    LANES = "lane exchange"
    """Counts in its block, in no order with memory."""
    STATES = "wait states"
    """`s_nop`: likewise."""
    OPAQUE = "opaque"
    """Calls, traps, whatever no rule names. In order with everything."""


class Effect(NamedTuple):
    act: Act
    space: str = ""
    """`global`, `shared`, …; empty for one that may touch any memory."""
    address: tuple[tuple[Operand, int], ...] = ()
    """Each part with the bytes that are added to it."""
    size: int = 0
    """Bytes from the address on; 0 where that is not known."""


class Instruction(NamedTuple):
    name: str
    """The operation with all modifiers that count."""
    results: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()
    """Without those of the address."""
    compute: tuple[str, int] | None = None
    """A function of `Values` and its width, where the operation is one of these."""
    commutes: bool = False
    """Whether the first two operands may change places."""
    guard: str | None = None
    """The predicate without which it does nothing."""
    negated: bool = False
    masked: bool = False
    """Whether it acts only in the lanes that `exec` has."""
    effect: Effect | None = None
    is_float: bool = False


class CodeBlock(NamedTuple):
    label: str
    instructions: tuple[Instruction, ...]
    exit: str
    """`jump`, `branch`, or the instruction that ends the function."""
    condition: Operand | None
    targets: tuple[str, ...]
    """Of two, the first is taken where the condition is true."""


class Function(NamedTuple):
    blocks: tuple[CodeBlock, ...]
    """The first is the entry."""
    asynchronous: frozenset[str]
    """Registers that a matrix unit writes in the background: they are there after a wait."""
    parameters: tuple[str, ...]
    """Registers that have a value at entry, by place."""


class Program(NamedTuple):
    functions: Mapping[str, Function]
    declarations: tuple[str, ...]
    """All that stands outside of instructions and counts: parameters, data, launch bounds."""
    unknown: tuple[str, ...]
    """Operations that no rule names. They are compared as they stand."""
