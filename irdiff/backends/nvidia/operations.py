"""Floating-point and memory operations of NVIDIA's machine code, told apart by their words alone. Pure.

A disassembler takes half a second to start, and most pairs of programs need none: where two have as many
words of each kind, they have as many operations of each name. A word's kind is its opcode with its
modifiers: all bits but those of registers, immediates and the scheduler. Among 494,000 distinct words of
sm_90 and sm_100, of 621 kinds, no kind has two names. Programs whose kinds differ may still have the same
operations: then one word of each form is disassembled (`operation_counter`). A form is narrower than a kind:
it holds immediates, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from irdiff.backends.nvidia import encodings

_OTHERS: dict[str, tuple[int, ...]] = {
    "MOV": (0x002,), "P2R": (0x003,), "R2P": (0x004,), "CS2R": (0x005,), "VOTE": (0x006,), "SEL": (0x007,),
    "FSEL": (0x008,), "FSET": (0x00a,), "FSETP": (0x00b,), "ISETP": (0x00c,), "VIMNMX3": (0x00f,),
    "IADD3": (0x010,), "LEA": (0x011,), "LOP3": (0x012,), "IABS": (0x013,), "PRMT": (0x016,),
    "SHF": (0x019,), "SGXT": (0x01a,), "PLOP3": (0x01c,), "IMAD": (0x024, 0x025, 0x027), "ELECT": (0x02f,),
    "HSETP2": (0x034,), "VIADD": (0x036,), "VIADDMNMX": (0x046,), "VIMNMX": (0x048,),
    "UVIRTCOUNT": (0x04c,), "UMOV": (0x082,), "VOTEU": (0x086,), "USEL": (0x087,), "UISETP": (0x08c,),
    "UIADD3": (0x090, 0x097), "ULEA": (0x091,), "ULOP3": (0x092,), "UPRMT": (0x096,), "USHF": (0x099,),
    "USGXT": (0x09a,), "UPLOP3": (0x09c,), "UIMAD": (0x0a4, 0x0a5), "ULDC": (0x0b9,), "UFLO": (0x0bd,),
    "UPOPC": (0x0bf,), "R2UR": (0x0ca,), "FLO": (0x100,), "POPC": (0x109,), "NOP": (0x118,),
    "S2R": (0x119,), "DEPBAR": (0x11a,), "BAR": (0x11d,), "CCTL": (0x140, 0x18f), "BSYNC": (0x141,),
    "BREAK": (0x142,), "CALL": (0x143, 0x144), "BSSY": (0x145,), "BRA": (0x147,), "WARPSYNC": (0x148,),
    "BRX": (0x149,), "EXIT": (0x14d,), "LEPC": (0x14e,), "RET": (0x150,), "BMOV": (0x155, 0x156),
    "BPT": (0x15c,), "NANOSLEEP": (0x15d,), "LDC": (0x182,), "LDL": (0x183,), "STL": (0x187,),
    "SHFL": (0x189,), "MEMBAR": (0x192,), "SYNCS": (0x1a7, 0x1b1, 0x1b2), "CGAERRBAR": (0x1ab,),
    "ERRBAR": (0x1ab,), "LDCU": (0x1ac,), "LDGDEPBAR": (0x1af,), "S2UR": (0x1c3,), "WARPGROUP": (0x1c5,),
    "FENCE": (0x1c6,), "UCGABAR_ARV": (0x1c7,), "UCGABAR_WAIT": (0x1c7,), "USETMAXREG": (0x1c8,),
    "UTCBAR": (0x1e9,),
}  # fmt: skip
"""Opcodes that neither round a floating-point number nor access memory that others see. Any other opcode,
one that nobody knows too, makes a kind."""
_IS_OTHER = frozenset(opcode for opcodes in _OTHERS.values() for opcode in opcodes)
_REGISTERS = (24, 32, 64)
"""The first bit of each operand. With a zero register in it, a sum or a product is a plain move."""
_OUTPUT_AND_OPERANDS = (16, *_REGISTERS)
_OUTPUT_AND_OTHERS = (16, 24, 64)
"""The first bit of each register of an instruction whose second operand, at bit 32, is no register."""
_ZERO = 255
_REGISTER_FORM = 1
"""An instruction whose second operand is a register, and no immediate, constant or uniform register."""
_GUARD = 12
_NEVER = 15
"""The guard `@!PT`."""

Kind = tuple[int, int, tuple[bool, ...]]


def kinds(binary: bytes) -> Counter[Kind]:
    """How many words of each kind the code of a cubin has. Raises NormalizeError."""
    return Counter(_kind(word) for word, _ in _counted_words(binary))


def forms(binary: bytes) -> tuple[Counter[int], dict[int, tuple[int, bytes]]]:
    """How many words of each form the code of a cubin has, and one word of each, with its content. Words of
    one form have one name, and zero registers and immediates in the same places. Raises NormalizeError.
    """
    counts, examples = Counter[int](), dict[int, tuple[int, bytes]]()
    for word, control in _counted_words(binary):
        form = _form(word)
        counts[form] += 1
        if form not in examples:
            examples[form] = word, encodings.content_of(word, control)
    return counts, examples


def _counted_words(binary: bytes) -> Iterator[tuple[int, int]]:
    for _, code in encodings.codes(binary):
        yield from (each for each in encodings.words(code) if _counts(each[0]))


def _counts(word: int) -> bool:
    return _bits(word, 0, 9) not in _IS_OTHER and _bits(word, _GUARD, 4) != _NEVER


def _kind(word: int) -> Kind:
    zeros = tuple(_bits(word, start, 8) == _ZERO for start in _REGISTERS)
    return _bits(word, 0, 9), _bits(word, 72, 33), zeros


def _form(word: int) -> int:
    """The word with register 0 in place of any register but the zero register, and without its guard."""
    form = word & ~(15 << _GUARD)
    for start in _OUTPUT_AND_OPERANDS if _bits(word, 9, 3) == _REGISTER_FORM else _OUTPUT_AND_OTHERS:
        if _bits(word, start, 8) != _ZERO:
            form &= ~(_ZERO << start)
    return form


def _bits(word: int, start: int, count: int) -> int:
    return word >> start & ((1 << count) - 1)
