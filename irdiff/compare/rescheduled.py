"""Whether two machine codes have the same instructions, and only their order or the names of registers moved.

It sorts what changed and makes nothing equal: such a case is still `changed`, in its group, and timed. It is
strict: one instruction more, one other modifier, constant or branch distance, and the answer is no.

NVIDIA, from Volta on: an instruction is a word of 128 bits. Blanked are the fields that name general
registers (bits 16-31 and 64-71, and 32-39 where the form in bits 9-11 has a register there), the guard's
predicate (12-14), and what the scheduler writes (105-125: stall, yield, barriers, reuse). All else counts;
predicates in other places count too, so a renamed one is taken for a change. A test compares the fields with
what nvdisasm prints. AMD: the lines of the canonical assembly with the numbers of registers blanked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from irdiff.compare import line_forms
from irdiff.stages import Stage

_WORD_BYTES = 16
_REGISTER_B = 0xFF << 32
_BLANKED = ~((0xFFFF << 16) | (0xFF << 64) | (0x7 << 12) | (((1 << 21) - 1) << 105))
_FORM_SHIFT, _FORM_BITS, _FORM_OF_REGISTERS = 9, 0x7, 1
_DATA = (".nv.constant", ".nv.global")


def same_instructions(base: Mapping[str, bytes], head: Mapping[str, bytes]) -> bool:
    """For the sections of two cubins (`binaries.machine_code`)."""
    return _data(base) == _data(head) and _words(base) == _words(head)


def same_lines(base: Sequence[str], head: Sequence[str]) -> bool:
    """For the canonical lines of AMD's assembly."""
    blank = line_forms.blanking(Stage.AMDGCN)
    return Counter(map(blank, base)) == Counter(map(blank, head))


def _data(sections: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in sections.items() if name.startswith(_DATA)}


def _words(sections: Mapping[str, bytes]) -> Counter[tuple[str, int]]:
    return Counter(
        (name, _without_registers(int.from_bytes(content[place : place + _WORD_BYTES], "little")))
        for name, content in sections.items()
        if name.startswith(".text")
        for place in range(0, len(content), _WORD_BYTES)
    )


def _without_registers(word: int) -> int:
    if word >> _FORM_SHIFT & _FORM_BITS == _FORM_OF_REGISTERS:
        word &= ~_REGISTER_B
    return word & _BLANKED
