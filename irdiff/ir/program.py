"""The form in which every reader returns a text: functions of blocks of instructions. Pure.

An operand is a register (`str`), an integer (`int`) or text that stays as it is (`Verbatim`): a symbol, a
literal of floating point, a special register. Registers may be written several times.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple


class ReadError(Exception):
    """A text, or a part of it, is not understood; the message says what."""


class Verbatim(NamedTuple):
    text: str


class Slot(NamedTuple):
    """A register, by its place among those that the instruction reads."""

    place: int


Operand = str | int | Verbatim


class Act(StrEnum):
    """The kind of effect that an instruction has besides computing its results."""

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
    address: tuple[tuple[Operand | Slot, int], ...] = ()
    """Each part with the bytes that are added to it."""
    size: int = 0
    """Bytes from the address on; 0 where that is not known."""
    whole: int = 0
    """The first piece of an access that is read as several has the bytes of all, to which it is aligned."""


class Early(NamedTuple):
    """Results of other instructions that an instruction needs and does not wait for."""

    registers: int = 0
    """Registers that a load has not written yet."""
    memory: int = 0
    """The kinds of accesses of memory that other threads would not see yet, a bit for each."""
    copies: int = 0
    """The copies to shared memory that run."""
    atomics: int = 0
    """1 for an atomic that other ones may overtake: nothing in the text says whether their order counts."""


EARLY = "‼"
"""Behind the name of an instruction that does not wait for what it needs, with what `Early` counts."""
WAITS_FOR_LOADS = "tcgen05.wait::ld"
PRIVATE = "local"
"""The space of memory that only its own thread sees."""
COPY = "copy", 0
PIECES = 1 << 16
"""`piece` takes the place of a part times this, and which parts there are (`parts`)."""
CACHE_POLICY = "cache policy "
"""The beginning of a declaration that stands for the cache hint of an access."""
_KEEPS_ORDER = re.compile(r"acquire|acq_rel|release|volatile|seq_cst|\bmmio\b|\bsc0 sc1\b|\bglc\b")
"""Matches accesses of PTX (memory consistency model: acquire and release patterns, volatile) and of AMD
assembly (those that go past the caches of a compute unit).
"""
_READS_ANEW = re.compile(r"volatile|acquire|relaxed|mmio|atomic|\.cv\b|\b(?:sc[01]|glc)\b")
_COPY_ADDS = re.compile(r"(?:cp\.reduce|multimem)\b.*\.add\b")
"""A descriptor names the amount, if anything does."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Operation:
    """An instruction without its registers."""

    name: str
    """With all modifiers that count."""
    operands: tuple[Slot | int | Verbatim, ...] = ()
    """Without those of the address."""
    compute: tuple[str, int] | None = None
    """A function of `Values` and its width, where the operation is one of these."""
    commutes: bool = False
    """The first two operands may change places."""
    associates: bool = False
    """Neither order, grouping nor repetition of operands counts, as for a maximum."""
    is_guarded: bool = False
    """It does nothing without its predicate, which is the last register that it reads."""
    negated: bool = False
    masked: bool = False
    """It acts only in the lanes of `exec`."""
    effect: Effect | None = None
    is_float: bool = False
    early: Early | None = None
    """Where it does not wait for what it needs."""

    @property
    def word(self) -> str:
        """The name as the text has it."""
        return self.name.partition(EARLY)[0]

    @property
    def keeps_order(self) -> bool:
        """Other threads see this access in the order of the program."""
        return _KEEPS_ORDER.search(self.name) is not None

    @property
    def reads_anew(self) -> bool:
        """A load that says that it reads what other threads wrote meanwhile."""
        return _READS_ANEW.search(self.name) is not None

    @property
    def sums_up(self) -> bool:
        """It may add floats in memory; no program fixes the order in which threads do this."""
        act = self.effect.act if self.effect else None
        return (
            "add" in self.name
            if act is Act.ATOMIC and self.is_float
            else _COPY_ADDS.match(self.name) is not None
        )


def parts(count: int, width: int = 32) -> int:
    """How many parts a value has, and of how many bits each is, as one number: `count` for registers."""
    return count | (width ^ 32) << 8


class Instruction(NamedTuple):
    operation: Operation
    results: tuple[str, ...]
    reads: tuple[str, ...]
    line: int = 0
    """Its place in the canonical text, from 1; 0 for what no line of its own makes."""
    pending: frozenset[int] = frozenset()
    """Where those accesses of memory stand that may still run when it is reached, and that it needs."""

    def at(self, line: int) -> Instruction:
        return Instruction(self.operation, self.results, self.reads, line)

    def guarded(self, predicate: str, *, negated: bool) -> Instruction:
        operation = replace(self.operation, is_guarded=True, negated=negated)
        return Instruction(operation, self.results, (*self.reads, predicate))


class Line(NamedTuple):
    """The instructions of one line, and how it leaves its block."""

    instructions: tuple[Instruction, ...] = ()
    unknown: tuple[str, ...] = ()
    exit: tuple[str, str | None, str, bool] | None = None
    """As of `Body.leave`."""
    hints: tuple[str, ...] = ()
    """Cache policies, which change no result."""


class Template:
    """A line in which registers have some names, to be read as the same line of other registers."""

    def __init__(self, line: Line, names: Sequence[str]) -> None:
        places = {name: place for place, name in enumerate(names)}

        def taken(own_names: Sequence[str]) -> Callable[[Sequence[str]], tuple[str, ...]]:
            indices = [places.setdefault(name, len(places)) for name in own_names]
            return (
                operator.itemgetter(*indices)
                if len(indices) > 1
                else lambda all_: tuple([all_[n] for n in indices])
            )

        self._line = line
        self._rows = [(each.operation, taken(each.results), taken(each.reads)) for each in line.instructions]
        self._predicate = taken([line.exit[1]] if line.exit and line.exit[1] else [])
        self._others = tuple(places)[len(names) :]

    def named(self, names: Iterable[str]) -> Line:
        all_, end = (*names, *self._others), self._line.exit
        instructions = tuple(
            [Instruction(operation, written(all_), read(all_)) for operation, written, read in self._rows]
        )
        if end and end[1]:
            end = (end[0], self._predicate(all_)[0], *end[2:])
        return self._line._replace(instructions=instructions, exit=end)


def instruction(
    name: str, results: tuple[str, ...] = (), operands: Iterable[Operand] = (),
    compute: tuple[str, int] | None = None, *, effect: Effect | None = None, commutes: bool = False,
    associates: bool = False,
    masked: bool = False, is_float: bool = False,
) -> Instruction:  # fmt: skip
    reads: list[str] = []

    def slot(operand: Operand | Slot) -> Slot | int | Verbatim:
        if not isinstance(operand, str):
            return operand
        reads.append(operand)
        return Slot(len(reads) - 1)

    slots = tuple([slot(operand) for operand in operands])
    if effect and effect.address:
        effect = effect._replace(address=tuple([(slot(part), offset) for part, offset in effect.address]))
    operation = Operation(
        name=name, operands=slots, compute=compute, commutes=commutes, associates=associates,
        masked=masked, effect=effect, is_float=is_float,
    )  # fmt: skip
    return Instruction(operation, results, tuple(reads))


class CodeBlock(NamedTuple):
    label: str
    instructions: tuple[Instruction, ...]
    exit: str
    """`jump`, `branch`, or the instruction that ends the function."""
    condition: Operand | None
    targets: tuple[str, ...]
    """The first of two targets is taken if the condition is true."""
    line: int = 0
    """That of its exit, as of `Instruction`."""


class Function(NamedTuple):
    blocks: tuple[CodeBlock, ...]
    """The first is the entry."""
    asynchronous: frozenset[str]
    """Registers that a matrix unit writes in the background: they are there after a wait."""
    parameters: tuple[str, ...]
    """Registers that have a value at entry, by place."""
    loaded_late: frozenset[str] = frozenset()
    """Registers that loads of tensor memory write in the background, until the thread waits for its loads."""


class Spacing(NamedTuple):
    """How far apart two instructions are of which the later needs that the earlier has ended."""

    states: int
    """Wait states between both."""
    enough: int
    """Wait states that every pair of this kind has enough of."""
    lines: tuple[int, int]
    is_straight: bool
    """True if no jump lies between both: whoever executes the one executes the other."""


class Program(NamedTuple):
    functions: Mapping[str, Function]
    declarations: tuple[str, ...]
    """All that stands outside of instructions and counts: parameters, data."""
    threads: int
    """How many a block has; 0 where the text does not say."""
    unknown: tuple[str, ...]
    """Operations that no rule names. They are compared as they stand."""
    spacings: Mapping[str, Sequence[Spacing]] = MappingProxyType({})
    """Pairs of instructions that the hardware does not keep apart, by kind, in the order of the text."""
    has_early: bool = False
    """True if instructions stand closer together, on some path, than the hardware allows."""


class BlockNode(NamedTuple):
    block: CodeBlock
    is_turned: bool
    """Its branch is taken by the opposite condition."""
    targets: tuple[int, ...]
    sources: tuple[int, ...]
    """The blocks that lead here, by number, each as often as it does."""
    live: tuple[str, ...]
    """The registers that are read after it is entered, before they are written."""


Graph = tuple[BlockNode, ...]


class Awaited(NamedTuple):
    """An effect that counts or needs that others are finished; empty at the end of a block."""

    name: str
    limits: Mapping[str, int]
    """By counter, how many operations are unfinished at most, as the waits in front of the effect say."""


class ProgramReader(NamedTuple):
    """How an IR whose canonical text can be read as a program is read."""

    read: Callable[[Sequence[str]], Program]
    """Raises ReadError; IndexError, ValueError or TypeError for a line of a form that it does not expect."""
    is_final: bool
    """Its operations are those that execute: no later step may round in another way."""
    may_contract: bool
    """A later step may fuse a product and a sum that do not say how they round."""
    marked: Callable[[Graph], Graph] | None
    """Where instructions of its own wait for loads: leaves these out, and says what comes too early."""
    unfinished: Callable[[Iterable[Graph], Graph], Sequence[Sequence[Sequence[Awaited]]]] = lambda _, __: ()
    """By graph and block, what decides whether accesses are finished that a marked graph leaves unfinished
    where others may need them.
    """
