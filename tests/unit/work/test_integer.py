"""Integer instructions against Python's integers."""

import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irdiff.backends.nvidia.execution.integer import COMPUTED
from irdiff.backends.nvidia.execution.warp_state import WarpState
from tests.unit.work.kernels import function_of

WORDS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1])
MASK = 2**32 - 1


def executed(line, registers, flags=None):
    """The destinations' values by name, after one instruction on registers R0, R1, …"""
    state = WarpState(programs=1, warps=1, constants={}, special={})
    for number, value in enumerate(registers):
        state.write("R", number, np.array([[value]], dtype=np.uint32), None, None)
    for number, value in (flags or {}).items():
        state.write("P", number, np.array([[value]]), None, None)
    (instruction,) = function_of(line).instructions
    found = {}
    for target, (value, _) in COMPUTED[instruction.opcode](state, instruction):
        found[f"{target.kind}{target.number}"] = None if value is None else int(value.flat[0])
    return found


def signed(value):
    return value - 2**32 if value >> 31 else value


@given(WORDS, WORDS, WORDS)
def test_sums_and_their_carries(a, b, c):
    found = executed("IADD3 R9, P1, P2, R0, R1, R2", [a, b, c])
    assert found == {"R9": a + b + c & MASK, "P1": a + b + c > MASK, "P2": a + b + c > 2 * MASK + 1}


@given(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_a_difference_of_pairs(a, b):
    low = executed("IADD3 R9, P1, R0, -R1, RZ", [a & MASK, b & MASK])
    high = executed("IADD3.X R9, R0, ~R1, RZ, P1, !PT", [a >> 32, b >> 32], {1: bool(low["P1"])})
    assert low["R9"] | high["R9"] << 32 == (a - b) % 2**64


@given(WORDS, WORDS, st.integers(0, 2**64 - 1))
def test_wide_products(a, b, c):
    pair = [a, b, c & MASK, c >> 32]
    unsigned = executed("IMAD.WIDE.U32 R8, R0, R1, R2", pair)
    assert unsigned["R8"] | unsigned["R9"] << 32 == (a * b + c) % 2**64
    found = executed("IMAD.WIDE R8, R0, R1, R2", pair)
    assert found["R8"] | found["R9"] << 32 == (signed(a) * signed(b) + c) % 2**64
    assert executed("IMAD.HI.U32 R8, R0, R1, RZ", pair)["R8"] == a * b >> 32


@given(WORDS, WORDS, WORDS, st.integers(0, 31))
def test_shifts(a, b, c, n):
    assert executed(f"SHF.L.U32 R9, R0, {n:#x}, RZ", [a])["R9"] == a << n & MASK
    assert executed(f"SHF.R.U32.HI R9, RZ, {n:#x}, R0", [a])["R9"] == a >> n
    assert executed(f"SHF.R.S32.HI R9, RZ, {n:#x}, R0", [a])["R9"] == signed(a) >> n & MASK
    assert executed(f"SHF.L.U64.HI R9, R0, {n:#x}, R1", [a, b])["R9"] == ((b << 32 | a) << n) >> 32 & MASK
    assert executed(f"LEA R9, R0, R1, {n:#x}", [a, b])["R9"] == (a << n) + b & MASK
    assert (
        executed(f"LEA.HI R9, R0, R1, R2, {n:#x}", [a, b, c])["R9"] == (((c << 32 | a) << n) >> 32) + b & MASK
    )
    assert (
        executed(f"LEA.HI.X.SX32 R9, R0, R1, {n:#x}, P1", [a, b], {1: True})["R9"]
        == ((signed(a) << n) >> 32) + b + 1 & MASK
    )


@given(WORDS, WORDS, WORDS, st.integers(0, 255))
def test_truth_tables(a, b, c, lut):
    expected = 0
    for bit in range(32):
        index = (a >> bit & 1) << 2 | (b >> bit & 1) << 1 | c >> bit & 1
        expected |= (lut >> index & 1) << bit
    found = executed(f"LOP3.LUT P1, R9, R0, R1, R2, {lut:#x}, !PT", [a, b, c])
    assert found == {"R9": expected, "P1": expected != 0}


@pytest.mark.parametrize(
    ("word", "function"), [("LT", operator.lt), ("GE", operator.ge), ("EQ", operator.eq), ("NE", operator.ne)]
)
@given(a=st.integers(0, 2**64 - 1), b=st.integers(0, 2**64 - 1))
def test_comparisons_of_pairs(word, function, a, b):
    low = executed(f"ISETP.{word}.U32.AND P1, PT, R0, R1, PT", [a & MASK, b & MASK])["P1"]
    high = executed(f"ISETP.{word}.AND.EX P1, P2, R0, R1, PT, P1", [a >> 32, b >> 32], {1: bool(low)})
    whole = [value - 2**64 if value >> 63 else value for value in (a, b)]
    assert high["P1"] == function(*whole)


@given(WORDS, WORDS, st.integers(0, 0xFFFF))
def test_permuted_bytes(a, b, selector):
    pair = (b << 32 | a).to_bytes(8, "little")
    chosen = [pair[selector >> 4 * n & 7] for n in range(4)]
    expected = [(255 if byte >> 7 else 0) if selector >> 4 * n & 8 else byte for n, byte in enumerate(chosen)]
    assert executed(f"PRMT R9, R0, {selector:#x}, R1", [a, b])["R9"] == int.from_bytes(
        bytes(expected), "little"
    )


def test_what_is_not_known_stays_so_unless_it_does_not_matter():
    assert executed("IADD3 R9, R0, R7, RZ", [1])["R9"] is None
    assert (
        executed("LOP3.LUT R9, R7, 0xff, R0, 0x55, !PT", [5])["R9"] == ~5 & MASK
    )  # a table of its third input
    assert executed("IMAD.MOV.U32 R9, RZ, RZ, R0", [3])["R9"] == 3
