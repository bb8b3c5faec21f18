"""Reads the operands of a PTX instruction."""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from irdiff.ir.program import Operand, ReadError, Verbatim

_SPECIAL = re.compile(
    r"%(?:[\w]+\.[xyz]|laneid|n?warpid|gridid|n?smid|lanemask_\w+|n?cluster\w*|cluster\w*|is_ex\w+"
    r"|\w+_smem_size)$"
)
_ATOM = re.compile(r"(!?)([^+|]+?)\s*(?:\+\s*(-?\w+))?$")
_TOKEN = re.compile(r'([,\[\]{}()<>"])')


class PtxOperand(NamedTuple):
    values: tuple[Operand, ...] = ()
    """All that it names, in order."""
    offset: int = 0
    is_negated: bool = False
    address: tuple[PtxOperand, ...] = ()
    is_vector: bool = False

    @property
    def registers(self) -> tuple[str, ...]:
        """The registers of a destination; a discarded one (`_`) has a name that nobody reads."""
        return tuple(value if isinstance(value, str) else "_" for value in self.values)


@functools.lru_cache(maxsize=1 << 15)
def operand_of(text: str) -> PtxOperand:
    if text[0] == "[":
        return PtxOperand(address=tuple(operand_of(part) for part in split(text[1:-1])))
    if text[0] in "{(" or "|" in text:
        parts = text.split("|") if "|" in text else split(text[1:-1])
        operands = [operand_of(part.strip()) for part in parts]
        return PtxOperand(
            tuple(value for each in operands for value in each.values), is_vector=text[0] == "{"
        )
    atom = _ATOM.match(text)
    if not atom:
        raise ReadError(f"PTX: the operand {text[:40]}")
    offset = atom.group(3)
    if offset is not None and not re.fullmatch(r"-?(?:0x[0-9a-fA-F]+|\d+)", offset):
        return PtxOperand((Verbatim(text),))
    return PtxOperand((_value(atom.group(2)),), int(offset or "0", 0), bool(atom.group(1)))


def _value(text: str) -> Operand:
    if re.fullmatch(r"-?(?:0[xX][0-9a-fA-F]+|\d+)U?", text):
        return int(text.rstrip("U"), 0)
    if "%" in text[1:]:
        raise ReadError(f"PTX: the operand {text[:40]}")
    return Verbatim(text) if text[0] != "%" or _SPECIAL.match(text) else text


def split(text: str) -> list[str]:
    """Parts between the commas outside of brackets."""
    if not any(each in text for each in '[{(<"'):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    parts, now, depth, is_quoted = [], "", 0, False
    for each in _TOKEN.split(text):
        is_quoted ^= each == '"'
        if each == "," and not depth and not is_quoted:
            parts.append(now.strip())
            now = ""
            continue
        if not is_quoted:
            depth += (each in ("[", "{", "(", "<")) - (each in ("]", "}", ")", ">"))
        now += each
    return [*parts, now.strip()] if now.strip() else parts
