"""Operations of machine code that is made of another text: what an assembler makes of the same assembly."""

from __future__ import annotations

from collections import Counter
from typing import Any, Protocol


class MachineOperations(Protocol):
    """How they are counted: those that round floating-point numbers, and accesses that others see."""

    def kinds(self, binary: bytes) -> Counter[Any]:
        """By kind, without a disassembler. Binaries with the same counts have the same operations; those with
        other counts may have them, too. Raises NormalizeError.
        """
