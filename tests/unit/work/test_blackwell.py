"""What Blackwell's machine code does that Hopper's does not, of kernels whose counts a person can work out."""

import pytest

from irdiff.counted_work import Amount, NotCountedWork
from irdiff.ir.sass import instructions
from irdiff.ir.sass.tensor_memory import moved_bytes, shape
from tests.unit.work.kernels import counted, facts
from tests.unit.work.test_integer import executed

X = 0x7F00_1000_0000


def known(number):
    return Amount(low=number, high=number)


@pytest.mark.parametrize(
    ("opcode", "descriptor", "name"),
    [
        # PTX ISA, instruction descriptor: format of A from bit 7, columns / 8 from bit 17, rows / 16 from bit 24
        ("UTCHMMA", 0x8210010, "UTCHMMA 128x128x16 F16"),
        ("UTCHMMA", 1 << 7 | 1 << 10 | 8 << 17 | 4 << 24, "UTCHMMA 64x64x16 BF16"),
        ("UTCHMMA", 2 << 7 | 2 << 10 | 32 << 17 | 16 << 24, "UTCHMMA 256x256x8 TF32"),
        ("UTCQMMA", 16 << 17 | 8 << 24, "UTCQMMA 128x128x32"),
    ],
)
def test_a_register_names_the_shape_of_a_matrix_instruction(opcode, descriptor, name):
    rows, columns, depth = map(int, name.split()[1].split("x"))
    assert shape(opcode, descriptor) == (name, 2 * rows * columns * depth)


@pytest.mark.parametrize("descriptor", [0x8210014, 3 << 7 | 8 << 17 | 4 << 24, 0])
def test_a_descriptor_that_is_not_read_has_no_shape(descriptor):
    """Sparse, of an unknown format, without rows."""
    assert shape("UTCHMMA", descriptor) is None


ISSUE = """
    S2R R0, SR_TID.X
    ISETP.GE.U32.AND P0, PT, R0, 0x20, PT
    @P0 EXIT
    UMOV UR4, 0x0
    UMOV UR5, 0x8210010
    GUARD UTCHMMA gdesc[UR8], gdesc[UR10], tmem[UR12], tmem[UR4], idesc[UR5], UPT
    LDTM.x32 R4, tmem[UR12]
    STTM.16dp32bit_t0_t15.x16 tmem[UR12], R4
    EXIT
"""


def test_operations_and_bytes_of_tensor_memory():
    work = counted(ISSUE.replace("GUARD ", ""), facts(X, grid=(3, 1, 1), warps=4))
    assert work.matrix_operations == {"UTCHMMA 128x128x16 F16": known(3 * 2 * 128 * 128 * 16)}
    assert work.bytes_by_space["tensor memory load"] == known(3 * 32 * 32 * 4)
    assert work.bytes_by_space["tensor memory store"] == known(3 * 16 * 16 * 4)


def test_a_matrix_instruction_that_data_decide_is_an_interval():
    guarded = ISSUE.replace("GUARD", "LDG.E R3, desc[UR6][R8.64]\n ISETP.GE.AND P1, PT, R3, RZ, PT\n @P1")
    work = counted(guarded, facts(X))
    assert work.matrix_operations == {"UTCHMMA 128x128x16 F16": Amount(0, 2 * 128 * 128 * 16)}


def test_a_shape_in_no_known_register_is_at_most_the_largest():
    work = counted(ISSUE.replace("GUARD ", "").replace("UMOV UR5, 0x8210010", "NOP"), facts(X))
    assert work.matrix_operations == {"UTCHMMA": Amount(0, 2 * 256 * 256 * 16)}


@pytest.mark.parametrize(
    ("text", "size"),
    [("LDTM.x128 R4, tmem[UR5]", 32 * 128 * 4), ("LDTM.16dp256bit.x2 R4, tmem[UR5]", 16 * 32 * 2)],
)
def test_how_much_a_warp_moves(text, size):
    assert moved_bytes(instructions.form_of(text)) == size


def test_extremes_that_write_predicates_too():
    assert executed("VIMNMX R6, PT, PT, R0, 0x2, !PT", [7])["R6"] == 7
    assert executed("VIMNMX R6, PT, PT, R0, 0x2, PT", [7])["R6"] == 2


PARTED = """
    S2R R6, SR_TID.X
    ISETP.NE.U32.AND P0, PT, R6, RZ, PT
    BSSY.RECONVERGENT B0, `(.L_x_1)
    @P0 BRA `(.L_x_0)
    IADD3 R1, R1, 0x1, RZ
    .L_x_0:
    NOP
    BSYNC.RECONVERGENT B0
    .L_x_1:
    BAR.SYNC.DEFER_BLOCKING 0x0
    EXIT
"""


def test_lanes_that_parted_meet_before_the_barrier():
    """One lane of the first warp takes the long way; all wait for it where they meet, behind a NOP."""
    work = counted(PARTED, facts(warps=2))
    assert work.barriers == known(2)


TRAP = """
    LDG.E R4, desc[UR4][R2.64]
    ISETP.NE.AND P0, PT, R4, RZ, PT
    @P0 BRA `(.L_x_0)
    EXIT
    .L_x_0:
    MOV R2, 0x10
    CALL.REL.NOINC `(.L_x_1)
    EXIT
    .L_x_1:
    BPT.TRAP 0x1
"""


def test_a_check_that_data_decide_holds():
    assert counted(TRAP, facts(X)).instructions == known(4)


def test_an_instruction_in_no_table_is_not_counted():
    work = counted("UGETNEXTWORKID.SELFCAST [UR20], [UR21]\n EXIT", facts())
    assert work == NotCountedWork(reason="no table says what UGETNEXTWORKID does")


def test_a_jump_by_a_table_is_not_counted():
    work = counted("BRX R2 .-0x1921f0\n EXIT", facts())
    assert work == NotCountedWork(reason="BRX at 0x0: its targets are not read")
