"""Operations of machine code, told apart by words that were assembled for sm_90 and sm_100."""

import pytest

from irdiff.backends.nvidia import operations
from tests.elf_files import elf_file

ADD = 0x207037221
"""FADD R3, R7, R2"""
SCHEDULER = 0x1F << 105


def kinds(*words):
    return operations.kinds(elf_file({".text.k": b"".join(word.to_bytes(16, "little") for word in words)}))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ADD, 0x1D140D7221, id="add-of-other-registers"),
        pytest.param(ADD, ADD | SCHEDULER, id="other-scheduling"),
        pytest.param(0x10000000001F00007308, 0x1000000000A600D27308, id="reciprocal-of-other-registers"),
        pytest.param(0x4000003F000000460E7820, 0x4000003F800000460E7820, id="product-with-another-constant"),
        pytest.param(0xC1E1B000000C016040C7981, 0xC1E1B000000000412087981, id="load-at-another-offset"),
    ],
)
def test_words_of_one_kind(one, other):
    assert kinds(one) == kinds(other) != kinds()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ADD, 0xE0000800000160B037221, id="another-addition:FHADD.BF16"),
        pytest.param(0x8000000008B00A47308, 0x10000000001F00007308, id="another-function:MUFU"),
        pytest.param(0xE0000001C0F1B7223, 0x1005E0000001F5F5D7223, id="flushed-denormals:FFMA.FTZ"),
        pytest.param(0xC1E1B000000C016040C7981, 0xC1E1D000000002236347981, id="wider-load"),
        pytest.param(ADD, 0x2FF037221, id="addition-of-zero-is-a-move"),
        pytest.param(0x8701828606000001C2879F0, 0x870281804E000083C187DF0, id="another-matrix-product"),
    ],
)
def test_words_of_other_kinds(one, other):
    assert kinds(one) != kinds(other)


def test_what_neither_rounds_nor_accesses_memory_is_not_counted_nor_what_never_runs():
    integer_sum, never = 0x7FFE0300000001731177210, 0x80000000000FFFFF984
    assert kinds(ADD, integer_sum, never) == kinds(ADD)


def test_an_opcode_that_nobody_knows_counts():
    assert kinds(ADD, 0x1FF) != kinds(ADD)


IMMEDIATE_SUM = 0x3F80000001017823
"""FFMA R1, R1, 1, R0: its constant begins at bit 32."""


def forms(*words):
    return operations.forms(elf_file({".text.k": b"".join(word.to_bytes(16, "little") for word in words)}))


def test_words_of_one_form_differ_in_registers_guards_and_scheduling_alone():
    counts, examples = forms(ADD, 0x1D140D7221, 0x207030221, ADD | SCHEDULER)
    assert [*counts.values()] == [4]
    assert [*examples.values()] == [(ADD, ADD.to_bytes(16, "little"))]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(ADD, 0x2FF037221, id="addition-of-zero-is-a-move"),
        pytest.param(ADD, ADD | 1 << 72, id="another-modifier"),
        pytest.param(IMMEDIATE_SUM, IMMEDIATE_SUM + (1 << 32), id="another-constant"),
        pytest.param(IMMEDIATE_SUM, IMMEDIATE_SUM + (1 << 55), id="a-sum-and-a-product"),
    ],
)
def test_words_of_different_forms(one, other):
    assert not forms(one)[0].keys() & forms(other)[0].keys()
