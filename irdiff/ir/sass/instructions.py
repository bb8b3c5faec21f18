"""Reads the instructions of one kernel and their operands.

Only the form is read here; `backends/nvidia/execution` says what an instruction does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from irdiff.errors import NormalizeError
from irdiff.ir.blocks import STRAIGHT_ON, Leads
from irdiff.ir.sass.opcodes import BRANCHES

WORD_BYTES = 16
"""An instruction has as many since Volta."""
MAX_INSTRUCTIONS = 200_000
_FORM = re.compile(r"(?:@(!?U?P[T0-9]+) )?([A-Z][\w.]*)\s*(.*)")
_SPLIT = re.compile(r",\s*(?![^{]*\})")
_REGISTER = re.compile(r"^(U?)(R|P)(Z|T|\d+)$")
_MEMORY_PART = re.compile(r"^(-?)(?:(U?R)(Z|\d+)((?:\.\w+)*)|(0x[0-9a-f]+))$")
_TARGET = re.compile(r"(?:^|[ ,])\.([+-]0x[0-9a-f]+)$")
_INDIRECT = frozenset({"BRX", "BRXU"})
"""Their place is that of a table, added to a register."""
_ENDS = frozenset({"EXIT", "RET", "BRX", "BRXU", "JMX", "KILL", "BPT"})
ZERO = 255
"""The number of RZ; URZ, PT and UPT are numbered so that a lookup never meets a real register."""


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    kind: str
    """`R`, `UR`, `P`, `UP`, `imm`, `const`, `mem`, `float`, `text`."""
    number: int = 0
    """The number of a register, the value of an immediate, or the byte offset of a constant or an address."""
    negated: bool = False
    """A minus, or a predicate's `!`."""
    inverted: bool = False
    """`~`."""
    absolute: bool = False
    suffix: str = ""
    registers: tuple[tuple[str, int, bool], ...] = ()
    """Registers of an address or of a constant's index: (`R` or `UR`, number, is a 64-bit pair)."""
    bank: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class InstructionForm:
    """The parts of an instruction's text that do not depend on its place."""

    predicate: Operand | None
    opcode: str
    """Without modifiers: `LDG`."""
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    jump: int | None
    """Instructions from this one to the one that an operand names."""
    leads: Leads
    text: str


@dataclass(slots=True, eq=False)
class SassInstruction:
    """Not frozen: a large corpus makes a million of them, and a frozen one takes twice as long."""

    place: int
    """Index in the function."""
    address: int
    predicate: Operand | None
    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    target: int | None
    """Place of the instruction that an operand names."""
    text: str
    form: InstructionForm
    control: int
    """The scheduler's bits: stall 0-3, yield 4, write and read scoreboard 5-7 and 8-10, waits 11-16."""

    @property
    def shown_place(self) -> str:
        return f"{self.address:#x}"


@dataclass(frozen=True, slots=True, eq=False)
class SassFunction:
    name: str
    instructions: tuple[SassInstruction, ...]
    place_of: dict[int, int]
    """Address → place."""


def read(name: str, lines: Iterable[tuple[str, int]]) -> SassFunction:
    """From the text and control bits of each instruction; places in it are relative: `BRA .-0x40`.

    Raises NormalizeError.
    """
    instructions: list[SassInstruction] = []
    for text, control in lines:
        place, form = len(instructions), form_of(text)
        instructions.append(
            SassInstruction(
                place, place * WORD_BYTES, form.predicate, form.opcode, form.modifiers, form.operands,
                None if form.jump is None else place + form.jump, form.text, form, control,
            )
        )  # fmt: skip
    if len(instructions) > MAX_INSTRUCTIONS:
        raise NormalizeError(
            f"{name} has {len(instructions)} instructions; at most {MAX_INSTRUCTIONS} are counted"
        )
    for ins in instructions:
        if ins.target is not None and not 0 <= ins.target < len(instructions):
            raise NormalizeError(f"{ins.text} at {ins.address:#x} leads out of {name}")
    return SassFunction(
        name, tuple(instructions), {instruction.address: instruction.place for instruction in instructions}
    )


@lru_cache(maxsize=1 << 17)
def form_of(text: str) -> InstructionForm:
    form = _FORM.fullmatch(text)
    if form is None:
        raise NormalizeError(f"an instruction that cannot be read: {text!r}")
    predicate, name, rest = form.groups()
    opcode, *modifiers = name.split(".")
    has_place = opcode not in _INDIRECT and (".+0x" in rest or ".-0x" in rest)
    target = _TARGET.search(rest) if has_place else None
    operands = tuple(operand(word.strip()) for word in _words(rest)) if rest else ()
    has_flag = predicate is not None or any(each.kind in ("P", "UP") for each in operands)
    return InstructionForm(
        predicate=operand(predicate) if predicate else None,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=operands,
        jump=int(target.group(1), 16) // WORD_BYTES if target else None,
        leads=_leads(opcode, target is not None, predicate is not None, has_flag),
        text=text,
    )


def _leads(opcode: str, has_target: bool, is_guarded: bool, has_flag: bool) -> Leads:
    if opcode == "BRA" and has_target:
        return Leads(is_branch=True, to_target=True, on=has_flag, ends=False)
    if opcode == "CALL" and has_target:
        return Leads(is_branch=True, to_target=True, on=True, ends=False, calls=True)
    if opcode in _ENDS:
        return Leads(is_branch=opcode in BRANCHES, to_target=False, on=is_guarded, ends=True)
    if opcode in BRANCHES:
        return Leads(is_branch=True, to_target=False, on=True, ends=False)
    return STRAIGHT_ON


def _words(operands: str) -> list[str]:
    return _SPLIT.split(operands) if "{" in operands else operands.split(",")


@lru_cache(maxsize=1 << 14)
def operand(text: str) -> Operand:
    word = text.partition(" .")[0]
    negated = inverted = absolute = False
    if word[:1] in "-!~":
        negated, inverted, word = word[0] in "-!", word[0] == "~", word[1:]
    if word.startswith("|") and "|" in word[1:]:
        absolute, word = True, word[1:].replace("|", "", 1)
    head, _, suffix = (
        word.partition(".") if not word.startswith(("c[", "[", "desc", "gdesc")) else (word, "", "")
    )
    register = _REGISTER.match(head)
    if register:
        uniform, kind, number = register.groups()
        at = ZERO if number in "ZT" else int(number)
        return Operand(uniform + kind, at, negated, inverted, absolute, suffix, text=text)
    if word.startswith("0x"):
        return Operand("imm", int(word, 16), negated, inverted, absolute, text=text)
    if word.startswith("c["):
        return _constant(word, negated, inverted, absolute)
    if word.endswith("]") or "[" in word:
        return _memory(word)
    try:
        return Operand("float", 0, negated, inverted, absolute, text=f"{'-' if negated else ''}{float(word)}")
    except ValueError:
        return Operand("text", text=text)


def _constant(word: str, negated: bool, inverted: bool, absolute: bool) -> Operand:
    match = re.match(r"c\[(0x[0-9a-f]+|U?R\d+)\]\[(.*?)\]", word)
    if match is None or match.group(1).startswith(("R", "UR")):
        return Operand("text", text=word)
    registers, offset = _parts(match.group(2))
    return Operand(
        "const",
        offset,
        negated,
        inverted,
        absolute,
        registers=registers,
        bank=int(match.group(1), 16),
        text=word,
    )


def _memory(word: str) -> Operand:
    """`[R2.64+0x10]`, `desc[UR4][R2.64]`, `[UR4]`, `gdesc[UR8].tnspB`."""
    prefix, _, rest = word.partition("[")
    if prefix == "desc":
        rest = rest.partition("[")[2]
    registers, offset = _parts(rest.partition("]")[0])
    return Operand("mem", offset, registers=registers, suffix=rest.partition("]")[2], text=prefix)


def _parts(text: str) -> tuple[tuple[tuple[str, int, bool], ...], int]:
    registers: list[tuple[str, int, bool]] = []
    offset = 0
    for part in text.replace("+-", "+ -").split("+"):
        match = _MEMORY_PART.match(part.strip())
        if match is None:
            raise NormalizeError(f"an address that cannot be read: {text!r}")
        sign, kind, number, suffix, literal = match.groups()
        if literal:
            offset += int(literal, 16) * (-1 if sign else 1)
        elif number != "Z":
            registers.append((kind, int(number), ".64" in suffix))
    return tuple(registers), offset
