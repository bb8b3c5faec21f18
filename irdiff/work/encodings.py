"""Machine code as the words that execute: 16 bytes an instruction, those of NVIDIA's GPUs since Volta. Pure.

The text of an instruction follows from its word alone, apart from what it says of its own address. So each
distinct word is disassembled once, by whoever has a disassembler, and never a whole kernel. Bits 105 to 125
are for the scheduler (stalls, scoreboards, register reuse) and change no text but `.reuse`.
"""

from __future__ import annotations

from collections.abc import Iterator

from irdiff.backends import elf
from irdiff.errors import NormalizeError

WORD_BYTES = 16
CONTROL_BIT = 105
CONTROL_BITS = 21
_CONTROL = ((1 << CONTROL_BITS) - 1) << CONTROL_BIT
_REST = (1 << 8 * WORD_BYTES) - 1 - _CONTROL


def code_of(binary: bytes, kernel: str) -> bytes:
    """The section that holds a kernel. Raises NormalizeError where there is none."""
    for section in elf.read(binary, "cubin").sections:
        if section.name == f".text.{kernel}" and section.content:
            return section.content[: len(section.content) // WORD_BYTES * WORD_BYTES]
    raise NormalizeError(f"the binary has no code of a kernel {kernel!r}")


def words(code: bytes) -> Iterator[tuple[int, int]]:
    """(what the instruction does, its control bits) of each instruction."""
    for place in range(0, len(code), WORD_BYTES):
        word = int.from_bytes(code[place : place + WORD_BYTES], "little")
        yield word & _REST, (word & _CONTROL) >> CONTROL_BIT
