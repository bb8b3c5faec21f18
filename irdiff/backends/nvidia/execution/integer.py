"""Computes the integer instructions of SASS, for all lanes at once.

Semantics as in NVIDIA's binary utilities' instruction tables, and as measured: counts that follow from these
values are compared with the counters of a GPU instruction by instruction.
"""

from __future__ import annotations

import numpy as np

from irdiff.backends.nvidia.execution import arithmetic, bits, conversions
from irdiff.backends.nvidia.execution.words import I32, U32, Compute, binary, unary

COMPUTED: dict[str, Compute] = {
    "MOV": arithmetic.move,
    "UMOV": arithmetic.move,
    "LDC": arithmetic.load_constant,
    "ULDC": arithmetic.load_constant,
    "LDCU": arithmetic.load_constant,
    "S2R": arithmetic.special,
    "S2UR": arithmetic.special,
    "CS2R": arithmetic.special,
    "IADD3": arithmetic.add3,
    "UIADD3": arithmetic.add3,
    "IMAD": arithmetic.multiply_add,
    "UIMAD": arithmetic.multiply_add,
    "LEA": arithmetic.shift_add,
    "ULEA": arithmetic.shift_add,
    "SHF": arithmetic.shift,
    "USHF": arithmetic.shift,
    "LOP3": bits.logic,
    "ULOP3": bits.logic,
    "PLOP3": bits.logic_of_flags,
    "UPLOP3": bits.logic_of_flags,
    "ISETP": bits.compare,
    "UISETP": bits.compare,
    "SEL": bits.select,
    "USEL": bits.select,
    "FSEL": bits.select,
    "PRMT": bits.permute,
    "UPRMT": bits.permute,
    "VIADD": binary(lambda a, b, _ins: a + b),
    "SGXT": binary(bits.sign_extended),
    "USGXT": binary(bits.sign_extended),
    "IABS": unary(lambda a, _ins: np.abs(a.view(I32)).view(U32)),
    "POPC": unary(bits.bit_count),
    "UPOPC": unary(bits.bit_count),
    "FLO": unary(bits.leading_bit),
    "UFLO": unary(bits.leading_bit),
    "BREV": unary(bits.reversed_bits),
    "UBREV": unary(bits.reversed_bits),
    "IMNMX": arithmetic.extreme,
    "UIMNMX": arithmetic.extreme,
    "VIMNMX": arithmetic.extreme,
    "VIADDMNMX": arithmetic.extreme,
    "I2F": conversions.to_float,
    "I2FP": conversions.to_float,
    "F2I": conversions.to_integer,
    "MUFU": conversions.reciprocal,
    "HFMA2": conversions.half_constant,
    "P2R": bits.flags_to_register,
    "R2P": bits.register_to_flags,
}
