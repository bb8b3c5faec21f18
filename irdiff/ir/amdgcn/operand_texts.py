"""Reads the operands and modifiers of one line of AMD assembly. Pure. Source: AMD Instinct MI300 ISA."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from irdiff.ir.program import Operand, ReadError, Verbatim
from irdiff.ir.ptx.operands import split

NAMES = re.compile(r"\b[vsa](?:\d+\b|\[\d+:\d+\])")
"""Registers whose numbers are assigned."""
HALVES_OF_EXEC = "exec_lo", "exec_hi"
_RANGE = re.compile(r"([vsa]|ttmp)\[(\d+):(\d+)\]$")
_SINGLE = re.compile(r"(?:[vsa]\d+|vcc|vcc_lo|vcc_hi|exec|exec_lo|exec_hi|m0|scc|ttmp\d+|flat_scratch\w*)$")
NUMBER = re.compile(r"-?(?:0x[0-9a-fA-F]+|\d+)$")
_MODIFIER = re.compile(
    r"[a-z_0-9]+:\[[^\]]*\]|[a-z_0-9]+:\S+|[a-z]\w*\([^)]*\)|(?:sc[01]|nt|glc|slc|dlc|lds|clamp|offen|idxen"
    r"|gds|tfe"
    r"|bound_ctrl|high|off)\b"
)
_TWO = re.compile(r"ds_(?:read|write)2(st64)?_b(32|64)$")
_SEVERAL = re.compile(r"(?:global|buffer|scratch|ds)_(?:load|store|read|write)_(dwordx[234]|b64|b96|b128)$")
BYTES = {
    name: size
    for size, names in (
        (1, "ubyte sbyte byte u8 i8 b8"), (2, "ushort sshort short u16 i16 b16"), (4, "dword b32"),
        (8, "dwordx2 b64"), (12, "dwordx3 b96"), (16, "dwordx4 b128"),
    )
    for name in names.split()
}  # fmt: skip
SCALAR_LOAD = re.compile(r"s_(buffer_)?load_(?:dword(?:x(\d+))?|b(\d+)|([ui]\d+))$")
_PACKED = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi):\[([01,]+)\]$")
_TAKEN = re.compile(r"(-?)(sext|abs|neg)\((\S+)\)$")
REGISTER = re.compile(r"(?<![\w.$@])(?:([vsa])\[(\d+):(\d+)\]|([vsa]\d+|vcc|exec|m0)(?:_lo|_hi)?\b)")
_SHORT_LITERAL = re.compile(r"s_movk_i32$|s_cmpk_\w+_i32$")
"""Instructions whose literals have 16 bits and a sign (MI300 ISA, "SOPK Instructions")."""
_LEAST_INLINE = -16
"""Smaller numbers are written without a sign."""
_FIELD = re.compile(r"0x[0-9a-f]+$|\d+$")


def word_offsets(opcode: str, modifiers: Sequence[str], offset: int) -> list[int]:
    """Returns the offset of each 32 bits of a wider access; empty for any other instruction."""
    if match := _TWO.match(opcode):
        width = int(match[2]) // 8
        unit = width * (64 if match[1] else 1)
        places = dict(re.findall(r"offset([01]):(\d+)", " ".join(modifiers)))
        begins = [int(places.get(each, 0)) * unit for each in "01"]
        return [begin + word for begin in begins for word in range(0, width, 4)]
    match = _SEVERAL.match(opcode)
    return [offset + word for word in range(0, BYTES[match[1]], 4)] if match else []


def with_literals_as_read(name: str, parts: list[str]) -> list[str]:
    """Returns the operands, with a literal replaced by the numbers that the instruction reads from it.

    For example, one literal holds the first bit of a field and the number of its bits (MI300 ISA,
    "S_BFE_U32").
    """
    literal = parts[-1] if parts and NUMBER.match(parts[-1]) else ""
    if _SHORT_LITERAL.match(name) and literal and int(literal, 0) >> 15 == 1:  # 0xff80 is -128
        value = int(literal, 0) - (1 << 16)
        return [*parts[:-1], str(value if value >= _LEAST_INLINE else value + (1 << 32))]
    if name == "s_bfe_u32" and _FIELD.match(parts[2]):
        field = int(parts[2], 0)
        return [*parts[:2], str(field & 31), str(field >> 16 & 127)]
    return parts


def halves_of(sources: Sequence[str], modifiers: tuple[str, ...]) -> list[list[str]]:
    """Returns the operands of the two instructions that a packed one consists of (MI300 ISA, "VOP3P"); empty
    if they are not known.
    """
    matches = [_PACKED.match(each) for each in modifiers]
    chosen, halves = (
        {modifier[1]: modifier[2].split(",") for modifier in matches if modifier},
        list[list[str]](),
    )
    for place, names in enumerate((("op_sel", "neg_lo"), ("op_sel_hi", "neg_hi"))):
        which, signs = (
            chosen.get(name, [str(n)] * len(sources)) for name, n in zip(names, (place, 0), strict=True)
        )
        pairs = [registers_of(text) or (text,) for text in sources]
        if not all(matches) or any(int(at) >= len(pair) for pair, at in zip(pairs, which, strict=True)):
            return []  # the upper half of a constant
        if any(text[0] == "-" and int(sign) for text, sign in zip(sources, signs, strict=True)):
            return []
        halves.append(
            ["-" * int(sign) + pair[int(at)] for pair, at, sign in zip(pairs, which, signs, strict=True)]
        )
    return halves


@functools.lru_cache(maxsize=1 << 14)
def parts_of(rest: str) -> tuple[tuple[str, ...], list[str]]:
    """Returns (the modifiers behind the operands, the operands)."""
    last = (split(rest) or [""])[-1]
    first, _, behind = last.partition(" ")
    if _MODIFIER.fullmatch(first) and first != "off" and not REGISTER.search(first):
        behind = last
    words = re.findall(r"[a-z_0-9]+:\[[^\]]*\]|\w+\([^)]*\)|\S+", behind)
    if any(map(REGISTER.search, words)):
        raise ReadError(f"AMDGCN: the modifiers {behind}")
    rest = rest[: len(rest) - len(behind)].rstrip() if behind else rest
    return tuple(words), [part for part in split(rest.rstrip(", ")) if part]


def change_of(text: str) -> str:
    """Returns how an operand is negated, extended or made positive; empty for a register or a number as it
    is.
    """
    if match := _TAKEN.match(text):
        return match[1] + match[2]
    if text[0] not in "-|" or NUMBER.match(text):
        return ""
    return "-" * (text[0] == "-") + "|" * ("|" in text)


def unchanged(text: str) -> str:
    """Returns the operand without what `change_of` returns."""
    return match[3] if (match := _TAKEN.match(text)) else text.strip("-|")


@functools.lru_cache(maxsize=1 << 12)
def registers_of(text: str) -> tuple[str, ...]:
    if match := _RANGE.match(text):
        return tuple(f"{match[1]}{number}" for number in range(int(match[2]), int(match[3]) + 1))
    if text in HALVES_OF_EXEC:
        raise ReadError(f"AMDGCN: {text} is written, or read by an access")
    return ("vcc_lo", "vcc_hi") if text == "vcc" else (text,) if _SINGLE.match(text) else ()


def literal_of(text: str) -> Operand:
    if REGISTER.search(text):
        raise ReadError(f"AMDGCN: the operand {text}")
    return int(text, 0) if NUMBER.match(text) else Verbatim(text)


def as_register(number: int) -> int:
    """Returns the number that a register of 32 bits holds, with a sign: 0x80000000 is -2147483648."""
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


@functools.lru_cache(maxsize=1 << 14)
def registers_in(text: str) -> frozenset[str]:
    """Returns all registers that a text names; the halves of a pair such as `vcc` have the pair's name."""
    names = set[str]()
    for kind, first, last, single in REGISTER.findall(text):
        names |= {f"{kind}{n}" for n in range(int(first), int(last) + 1)} if kind else {single}
    return frozenset(names)
