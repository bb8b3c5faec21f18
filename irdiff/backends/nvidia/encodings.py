"""Machine code as the words that execute: 16 bytes an instruction, those of NVIDIA's GPUs since Volta. Pure.

The text of an instruction follows from its word alone, apart from what it says of its own address. So each
distinct word is disassembled once, by whoever has a disassembler, and never a whole kernel. Bits 105 to 125
are for the scheduler (stalls, scoreboards, register reuse) and change no text but `.reuse`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from functools import lru_cache

from irdiff.backends import elf
from irdiff.backends.nvidia import cubin
from irdiff.errors import NormalizeError
from irdiff.ir.sass.instructions import WORD_BYTES

_CODE = ".text."
CONTROL_BIT = 105
CONTROL_BITS = 21
_CONTROL = ((1 << CONTROL_BITS) - 1) << CONTROL_BIT
_REST = (1 << 8 * WORD_BYTES) - 1 - _CONTROL


def codes(binary: bytes) -> Iterator[tuple[str, bytes]]:
    """The kernels and functions of a cubin, each with its code. Raises NormalizeError."""
    for section in elf.read(binary, "cubin").sections:
        if section.name.startswith(_CODE) and section.content:
            whole_words = len(section.content) // WORD_BYTES * WORD_BYTES
            yield section.name.removeprefix(_CODE), section.content[:whole_words]


def code_of(binary: bytes, kernel: str) -> bytes:
    """The code of one kernel. Raises NormalizeError where there is none."""
    for name, code in codes(binary):
        if name == kernel:
            return code
    raise NormalizeError(f"the binary has no code of a kernel {kernel!r}")


@lru_cache(maxsize=256)
def words(code: bytes) -> list[tuple[int, int]]:
    """(what the instruction does, its control bits) of each instruction."""
    whole = [low | high << 64 for low, high in struct.iter_unpack("<QQ", code)]
    return [(word & _REST, (word & _CONTROL) >> CONTROL_BIT) for word in whole]


def is_same_but_for_control_bits(base: bytes, head: bytes) -> bool:
    """Compares the executable contracts of two cubins. Raises NormalizeError."""
    ours, theirs = (cubin.read(binary)[0] for binary in (base, head))
    return ours.keys() == theirs.keys() and all(
        content == theirs[name] or (name.startswith(_CODE) and _have_same_operations(content, theirs[name]))
        for name, content in ours.items()
    )


def _have_same_operations(base: bytes, head: bytes) -> bool:
    if len(base) != len(head) or len(base) % WORD_BYTES:
        return False
    return all(ours == theirs for (ours, _), (theirs, _) in zip(words(base), words(head), strict=True))


def content_of(word: int, control: int) -> bytes:
    """The 16 bytes of an instruction, of what `words` says of it."""
    return (word | control << CONTROL_BIT).to_bytes(WORD_BYTES, "little")
