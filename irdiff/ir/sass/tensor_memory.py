"""Shapes, operations and bytes of Blackwell's matrix unit and tensor memory. Pure.

Source: PTX ISA, "Instruction descriptor" and "Data movement shape" of tcgen05; where SASS has these was read
from kernels of which ptxas was given the PTX. No counter of a GPU has confirmed it.
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

from irdiff.ir.sass.instructions import InstructionForm

_DEPTH = {"UTCQMMA": 32, "UTCIMMA": 32, "UTCOMMA": 64}
"""Multiply-adds along K."""
_DEPTH_OF_FORMAT = {0: 16, 1: 16, 2: 8}
"""Multiply-adds of `UTCHMMA` along K by the format of its left side: fp16, bf16, tf32."""
_NAMES = {0: "F16", 1: "BF16", 2: "TF32"}
_MOST_ROWS = _MOST_COLUMNS = 256
_SPARSE_BIT = 2
_LANES, _PARTIAL_LANES = 32, 16
_SHAPE = re.compile(r"(\d+)dp(\d+)bit")
_REPEATED = re.compile(r"x(\d+)$")
TENSOR_MATRIX = frozenset({"UTCHMMA", "UTCQMMA", "UTCIMMA", "UTCOMMA"})
"""One thread issues them; their shape stands in a register."""
TENSOR_MEMORY = frozenset({"LDTM", "STTM"})


class MatrixShape(NamedTuple):
    name: str
    operations: int
    """Two for each multiply-add."""


def shape(opcode: str, descriptor: int) -> MatrixShape | None:
    """The shape in an instruction descriptor; None for a sparse one or an unknown format."""
    columns, rows = (descriptor >> 17 & 0x3F) << 3, (descriptor >> 24 & 0x1F) << 4
    kind = descriptor >> 7 & 7
    depth = _DEPTH.get(opcode) or _DEPTH_OF_FORMAT.get(kind)
    if not depth or not rows or not columns or descriptor >> _SPARSE_BIT & 1:
        return None
    kind_name = f" {_NAMES[kind]}" if opcode == "UTCHMMA" else ""
    return MatrixShape(f"{opcode} {rows}x{columns}x{depth}{kind_name}", 2 * rows * columns * depth)


def most_operations(opcode: str) -> int:
    return 2 * _MOST_ROWS * _MOST_COLUMNS * _DEPTH.get(opcode, 16)


@functools.lru_cache(maxsize=1 << 10)
def moved_bytes(form: InstructionForm) -> int:
    """That a warp moves between registers and tensor memory."""
    lanes, bits = _LANES, 32
    for word in form.modifiers:
        if partial := _SHAPE.match(word):
            lanes, bits = int(partial[1]), int(partial[2])
    return lanes * bits // 8 * _times(form)


def loaded_registers(form: InstructionForm) -> int:
    """Registers of each thread that takes part."""
    is_half = any(re.search(r"_t\d+_t\d+$", word) for word in form.modifiers)
    return max(1, moved_bytes(form) // 4 // (_PARTIAL_LANES if is_half else _LANES))


def _times(form: InstructionForm) -> int:
    return next((int(match[1]) for word in form.modifiers if (match := _REPEATED.match(word))), 1)
