r"""Whether two SASS texts are the same but for a permutation of the registers: a fact, never a verdict.

Both texts are read in lock-step; line for line they must be the same once the numbers of registers are taken
out, and one permutation for each file of registers (`R`, `UR`, `P`, `UP`, `B`) must turn base's into head's
everywhere. Registers of a file are interchangeable and hold nothing that is known when a kernel begins (the
stack pointer is loaded like any other), so such texts compute the same. Not looked at is what disassembly
does not show: waits and stalls, and which registers share a bank.

An operand may stand for more registers than its name says. Such groups are aligned to their size, so the
permutation must move the whole aligned block that an operand lies in: four registers of `R` (128 bits) and
two of `UR`, four of both for `.128`, eight for matrices, tensor maps and 256 bits. Nothing may move in a
file where how many registers are meant is not known from the line: `R` with accumulators of `HGMMA`, tensor
memory or a changed register limit; every file with calls, whose convention fixes registers, and with
predicates taken as a mask (`PR`). What one permutation cannot explain, such as a value that lives elsewhere
in a part of the code, is not the same.
Source: instruction lists of NVIDIA's "CUDA Binary Utilities"; how ptxas numbers operands of `.64`, `.128`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_REGISTER = re.compile(r"(?<![\w.$])(?<!`\()(UR|UP|R|P|B)(\d{1,3})(?![\w$])")
_BLOCKS = {"R": 4, "UR": 2, "P": 1, "UP": 1, "B": 1}
_FOUR = re.compile(r"\.128\b")
_EIGHT = re.compile(r"(?<!HFMA2\.)MMA|UTMA|UBLK|UTC|\.256\b|LDSM|STSM|MOVM|TEX|TLD|SULD|SUST")
_FIXED_R = re.compile(r"GMMA|LDTM|STTM|USETMAXREG")
_FIXED = re.compile(r"\bU?PR\b|\bCALL|\bJCAL|\bBPT")
_FILE = 256
"""Registers of the largest file."""


def same_up_to_registers(base_lines: Sequence[str], head_lines: Sequence[str]) -> bool:
    """For canonical lines of SASS."""
    if len(base_lines) != len(head_lines):
        return False
    moves = _Moves()
    return all(moves.explain(*pair) for pair in zip(base_lines, head_lines, strict=True))


class _Moves:
    """The permutation as far as it is known."""

    def __init__(self) -> None:
        self._to_head: dict[str, dict[int, int]] = {file: {} for file in _BLOCKS}
        self._to_base: dict[str, dict[int, int]] = {file: {} for file in _BLOCKS}
        self._fixed: set[str] = set()

    def explain(self, base: str, head: str) -> bool:
        """Extends the permutation so that it turns one line into the other. Returns false if it cannot."""
        if base.startswith("Function : ") or base.endswith(":"):
            return base == head
        if _REGISTER.sub(r"\1#", base) != _REGISTER.sub(r"\1#", head):
            return False
        fixed = tuple(_BLOCKS) if _FIXED.search(base) else ("R",) if _FIXED_R.search(base) else ()
        if not all(file in self._fixed or self._move(file, 0, 0, _FILE) for file in fixed):
            return False
        self._fixed.update(fixed)
        least = 8 if _EIGHT.search(base) else 4 if _FOUR.search(base) else 1
        for (file, ours), (_, theirs) in zip(_REGISTER.findall(base), _REGISTER.findall(head), strict=True):
            wide = least if file in ("R", "UR") else 1
            if not self._move(file, int(ours), int(theirs), max(_BLOCKS[file], wide)):
                return False
        return True

    def _move(self, file: str, ours: int, theirs: int, size: int) -> bool:
        """Take the aligned block of a register to that of another; False where one of both is elsewhere."""
        if (ours - theirs) % size:
            return False
        to_head, to_base = self._to_head[file], self._to_base[file]
        first, other = ours - ours % size, theirs - theirs % size
        return all(
            to_head.setdefault(first + k, other + k) == other + k
            and to_base.setdefault(other + k, first + k) == first + k
            for k in range(size)
        )
