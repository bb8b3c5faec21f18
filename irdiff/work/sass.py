"""Reads nvdisasm's text of one kernel into instructions and operands.

Only the form is read here; what an instruction does is in `integer`, `accesses` and `execute`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from irdiff.errors import NormalizeError

MAX_INSTRUCTIONS = 200_000
_LINE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(?:\{ )?(?:@(!?U?P[T0-9]+) )?([A-Z][\w.]*)\s*([^;]*);")
_LABEL = re.compile(r"^(\.L[\w.$]*|[\w.$]+):$")
_SPLIT = re.compile(r",\s*(?![^{]*\})")
_REGISTER = re.compile(r"^(U?)(R|P)(Z|T|\d+)$")
_MEMORY_PART = re.compile(r"^(-?)(?:(U?R)(Z|\d+)((?:\.\w+)*)|(0x[0-9a-f]+))$")
_TARGET = re.compile(r"`\(([^)]*)\)")
ZERO = 255
"""The number of RZ; URZ, PT and UPT are numbered so that a lookup never meets a real register."""


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    kind: str
    """`R`, `UR`, `P`, `UP`, `imm`, `const`, `mem`, `float`, `text`."""
    number: int = 0
    """Of a register; the value of an immediate; the byte offset of a constant or of an address."""
    negated: bool = False
    """A minus, or a predicate's `!`."""
    inverted: bool = False
    """`~`."""
    absolute: bool = False
    suffix: str = ""
    registers: tuple[tuple[str, int, bool], ...] = ()
    """Of an address or of a constant's index: (`R` or `UR`, number, whether it is a 64-bit pair)."""
    bank: int = 0
    text: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SassInstruction:
    place: int
    """Index in the function."""
    address: int
    predicate: Operand | None
    opcode: str
    """Without modifiers: `LDG`."""
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    target: int | None
    """Place of the label that an operand names."""
    text: str


@dataclass(frozen=True, slots=True, eq=False)
class SassFunction:
    name: str
    instructions: tuple[SassInstruction, ...]
    place_of: dict[int, int]
    """Address → place."""


def read(text: str, name: str) -> SassFunction:
    """The section `.text.NAME` of nvdisasm's text. Raises NormalizeError where there is none."""
    section = re.search(rf"^\.text\.{re.escape(name)}:\n(.*?)(?=^//-----|\Z)", text, re.M | re.S)
    if section is None:
        raise NormalizeError(f"the disassembly has no kernel {name!r}")
    labels: dict[str, int] = {}
    lines: list[re.Match[str]] = []
    for line in section.group(1).splitlines():
        if instruction := _LINE.match(line):
            lines.append(instruction)
        elif label := _LABEL.match(line.strip()):
            labels[label.group(1)] = len(lines)
    if len(lines) > MAX_INSTRUCTIONS:
        raise NormalizeError(f"{name} has {len(lines)} instructions; at most {MAX_INSTRUCTIONS} are counted")
    instructions = tuple(_instruction(place, line, labels) for place, line in enumerate(lines))
    return SassFunction(name, instructions, {row.address: row.place for row in instructions})


def _instruction(place: int, line: re.Match[str], labels: dict[str, int]) -> SassInstruction:
    address, predicate, name, rest = line.groups()
    opcode, *modifiers = name.split(".")
    target = _TARGET.search(rest)
    rest = rest.strip()
    return SassInstruction(
        place=place,
        address=int(address, 16),
        predicate=operand(predicate) if predicate else None,
        opcode=opcode,
        modifiers=tuple(modifiers),
        operands=tuple(operand(word.strip()) for word in _SPLIT.split(rest)) if rest else (),
        target=labels.get(target.group(1)) if target else None,
        text=f"{name} {rest}",
    )


@lru_cache(maxsize=1 << 14)
def operand(text: str) -> Operand:
    word = text.replace(".reuse", "").partition(" `(")[0]
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
    found = re.match(r"c\[(0x[0-9a-f]+|U?R\d+)\]\[(.*?)\]", word)
    if found is None or found.group(1).startswith(("R", "UR")):
        return Operand("text", text=word)
    registers, offset = _parts(found.group(2))
    return Operand(
        "const",
        offset,
        negated,
        inverted,
        absolute,
        registers=registers,
        bank=int(found.group(1), 16),
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
    for part in text.replace(".reuse", "").replace("+-", "+ -").split("+"):
        found = _MEMORY_PART.match(part.strip())
        if found is None:
            raise NormalizeError(f"an address that cannot be read: {text!r}")
        sign, kind, number, suffix, literal = found.groups()
        if literal:
            offset += int(literal, 16) * (-1 if sign else 1)
        elif number != "Z":
            registers.append((kind, int(number), ".64" in suffix))
    return tuple(registers), offset
