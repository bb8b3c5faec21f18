"""What a launch executes, of kernels whose counts a person can work out."""

import numpy as np
import pytest

from irdiff.counted_work import Amount, NotCountedWork
from irdiff.errors import NormalizeError
from irdiff.execution.launch_facts import KnownContent
from tests.unit.work.kernels import counted, facts, function_of

X, Y = 0x7F00_1000_0000, 0x7F10_1000_0000
COPY = """
    S2R R0, SR_TID.X
    S2R R1, SR_CTAID.X
    IMAD R0, R1, 0x80, R0
    ISETP.GE.AND P0, PT, R0, c[0x0][0x220], PT
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    IMAD.WIDE R4, R0, STRIDE, R2
    @!P0 LDG.E R6, desc[UR4][R4.64]
    @P0 EXIT
    STG.E desc[UR4][R4.64], R6
    EXIT
"""


def known(number):
    return Amount(low=number, high=number)


@pytest.mark.parametrize(("stride", "sectors"), [("0x4", 1024), ("0x80", 8192)])
def test_sectors_are_those_that_an_h100_counts(stride, sectors):
    """`hardware-counters.md`: 64 programs of 128 elements, contiguous and each lane in a sector of its own."""
    work = counted(COPY.replace("STRIDE", stride), facts(X, Y, 64 * 128, grid=(64, 1, 1), warps=4))
    assert work.instructions == known(64 * 4 * 11)
    assert work.global_requests == known(2 * 256)
    assert work.global_sectors == known(2 * sectors)
    assert work.least_global_sectors == known(2 * 1024)


def test_only_the_last_program_is_masked():
    work = counted(COPY.replace("STRIDE", "0x4"), facts(X, Y, 9_999 * 128 + 40, grid=(10_000, 1, 1), warps=4))
    assert work.programs_executed < 60
    assert work.global_sectors == known(2 * (9_999 * 16 + 5))
    assert work.global_requests == known(2 * (9_999 * 4 + 2))
    assert work.instructions == known(9_999 * 44 + 2 * 11 + 2 * 9)


LOOP = """
    MOV R0, RZ
    MOV R1, RZ
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    .L_x_0:
    LDG.E R6, desc[UR4][R2.64]
    IADD3 R1, R1, 0x1, RZ
    ISETP.GE.AND P1, PT, R1, 0x3, PT
    @P1 BRA `(.L_x_1)
    NOP
    BRA `(.L_x_2)
    .L_x_1:
    MOV R1, RZ
    .L_x_2:
    IADD3 R2, P0, R2, STEP, RZ
    IADD3.X R3, RZ, R3, RZ, P0, !PT
    IADD3 R0, R0, 0x1, RZ
    ISETP.GE.AND P0, PT, R0, c[0x0][0x218], PT
    @!P0 BRA `(.L_x_0)
    EXIT
"""


@pytest.mark.parametrize("trips", [1, 2, 3, 7, 100, 3001])
def test_a_loop_that_repeats_every_third_time_is_counted_and_not_run(trips):
    work = counted(LOOP.replace("STEP", "0x20"), facts(X, trips))
    body = sum(11 if (n + 1) % 3 else 10 for n in range(trips))
    assert work.instructions == known(4 + body + 1)
    assert work.global_sectors == known(trips)
    assert work.trip_counts == ({0x40: trips})


def test_sectors_of_a_loop_follow_where_its_addresses_move_by_less_than_a_sector():
    lines = LOOP.replace("LDG.E R6", "LDG.E.128 R8").replace("STEP", "0x10").replace("R2.64", "R2.64+0x18")
    assert counted(lines, facts(X, 1000)).global_sectors == known(1000)  # each access starts in one sector


DATA = """
    MOV R2, c[0x0][0x210]
    MOV R3, c[0x0][0x214]
    LDG.E R4, desc[UR4][R2.64]
    ISETP.GE.AND P0, PT, R4, 0x1, PT
    @P0 BRA `(.L_x_0)
    MOV R5, RZ
    LDG.E R6, desc[UR4][R2.64]
    .L_x_0:
    EXIT
"""


def test_a_branch_on_data_gives_an_interval():
    work = counted(DATA, facts(X))
    assert work.instructions == Amount(low=6, high=8)
    assert work.global_requests == Amount(low=1, high=2)


@pytest.mark.parametrize(("value", "instructions"), [(0, 8), (5, 6)])
def test_contents_that_the_launch_fixes_are_known(value, instructions):
    region = KnownContent(address=X, content=np.array([value], dtype=np.int32).view(np.uint8))
    assert counted(DATA, facts(X, regions=[region])).instructions == known(instructions)


def test_a_loop_that_data_decide_says_so():
    lines = """
        MOV R2, c[0x0][0x210]
        MOV R3, c[0x0][0x214]
        .L_x_0:
        LDG.E R4, desc[UR4][R2.64]
        ISETP.GE.AND P0, PT, R4, 0x1, PT
        @P0 BRA `(.L_x_0)
        EXIT
    """
    work = counted(lines, facts(X))
    assert work.notes == ("data decide how often the loop at 0x40 runs",)


def test_lanes_that_part_execute_both_ways_and_each_waits():
    lines = """
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x8, PT
        BSSY B0, `(.L_x_1)
        @P0 BRA `(.L_x_1)
        NOP
        .L_x_1:
        BSYNC B0
        EXIT
    """
    assert counted(lines, facts()).instructions == known(4 + 1 + 2 + 1)


@pytest.mark.parametrize(("shift", "wavefronts"), [("0x2", 1), ("0x3", 2), ("0x7", 32)])
def test_bank_conflicts(shift, wavefronts):
    lines = f"""
        S2R R0, SR_TID.X
        SHF.L.U32 R0, R0, {shift}, RZ
        LDS R1, [R0]
        EXIT
    """
    work = counted(lines, facts(warps=2))
    assert work.shared_wavefronts == known(2 * wavefronts)
    assert work.least_shared_wavefronts == known(2)


@pytest.mark.parametrize(("address", "wavefronts"), [("[UR4]", 2), ("[R0]", 4)])
def test_lanes_that_read_the_same_share_passes(address, wavefronts):
    """Measured on an H100: 2 for a load of 16 bytes of which all lanes read the same, 4 where each reads its own."""
    lines = f"""
        S2R R0, SR_TID.X
        SHF.L.U32 R0, R0, 0x4, RZ
        UMOV UR4, 0x100
        LDS.128 R4, {address}
        EXIT
    """
    assert counted(lines, facts()).shared_wavefronts == known(wavefronts)


def test_spills_keep_what_they_hold():
    lines = """
        MOV R1, 0x1000
        MOV R4, c[0x0][0x218]
        STL [R1+0x10], R4
        MOV R4, RZ
        LDL R5, [R1+0x10]
        .L_x_0:
        IADD3 R4, R4, 0x1, RZ
        ISETP.LT.AND P0, PT, R4, R5, PT
        @P0 BRA `(.L_x_0)
        EXIT
    """
    work = counted(lines, facts(X, 50))
    assert work.instructions == known(5 + 50 * 3 + 1)
    assert work.spill_bytes == known(2 * 128)


def test_one_half_of_the_warps_tells_the_other_what_to_do():
    """As warp-specialized kernels do: a word in shared memory, behind a barrier of all."""
    lines = """
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x20, PT
        @P0 BRA `(.L_x_0)
        MOV R3, 0x5
        STS [RZ+0x20], R3
        BAR.SYNC.DEFER_BLOCKING 0x1
        EXIT
        .L_x_0:
        BAR.SYNC.DEFER_BLOCKING 0x1
        LDS R4, [RZ+0x20]
        .L_x_1:
        IADD3 R4, R4, -0x1, RZ
        ISETP.NE.AND P1, PT, R4, RZ, PT
        @P1 BRA `(.L_x_1)
        EXIT
    """
    assert counted(lines, facts(warps=2)).instructions == known(2 * 3 + 4 + 2 + 5 * 3 + 1)


def test_matrix_operations():
    lines = """
        HGMMA.64x128x16.F32.BF16 R24, gdesc[UR8], R24, gsb0
        HMMA.16816.F32 R4, R8, R12, R4
        EXIT
    """
    work = counted(lines, facts(warps=4))
    assert work.matrix_operations == {
        "HGMMA 64x128x16 F32 BF16": known(2 * 64 * 128 * 16),
        "HMMA 16816 F32": known(4 * 2 * 16 * 8 * 16),
    }


# what is hostile ends with a reason


def reason(lines, launch=None):
    work = counted(lines, launch or facts(X))
    assert isinstance(work, NotCountedWork)
    return work.reason


def test_an_endless_loop():
    lines = """
        MOV R0, RZ
        .L_x_0:
        LDG.E R4, desc[UR4][R2.64]
        BRA `(.L_x_0)
    """
    assert reason(lines) == "the loop at 0x10 never ends"


def test_a_loop_whose_end_cannot_be_foreseen():
    lines = """
        MOV R0, 0x1
        .L_x_0:
        IMAD R0, R0, 0x19660d, RZ
        LOP3.LUT R0, R0, 0x3c6ef35f, RZ, 0x3c, !PT
        ISETP.NE.AND P0, PT, R0, 0x7, PT
        @P0 BRA `(.L_x_0)
        EXIT
    """
    assert reason(lines) == "too long: more than 8,000 steps"


def test_a_huge_grid():
    assert counted("EXIT", facts(grid=(1 << 31, 256, 1))).instructions == known((1 << 31) * 256)
    assert "is more than is counted" in reason("EXIT", facts(grid=(1 << 40, 1 << 40, 1)))


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("NOP", "the code runs past its end"),
        ("MOV R2, 0x7\nRET.REL.NODEC R2 `(k)", "where no instruction is"),
        ("BRX R2 -0x10", "its targets are not read"),
        ("RET.REL.NODEC R9 `(k)", "an address that is not known"),
    ],
)
def test_code_that_leads_nowhere(lines, words):
    assert words in reason(lines)


def test_warps_that_wait_for_nobody():
    lines = """
        S2R R0, SR_TID.X
        ISETP.GE.AND P0, PT, R0, 0x20, PT
        @P0 BRA `(.L_x_0)
        BAR.SYNC.DEFER_BLOCKING 0x1, 0x80
        .L_x_0:
        EXIT
    """
    assert reason(lines, facts(warps=2)) == "warps wait at a barrier that the others do not reach"


def test_an_address_that_cannot_be_read():
    with pytest.raises(NormalizeError, match="an address that cannot be read"):
        function_of("LDG.E R0, [R2+what]")


def test_an_instruction_that_is_not_computed_makes_its_result_unknown():
    lines = """
        MOV R4, RZ
        BMSK.W R4, R5, 0x1
        ISETP.GE.AND P0, PT, R4, 0x1, PT
        @P0 BRA `(.L_x_0)
        NOP
        .L_x_0:
        EXIT
    """
    assert counted(lines, facts()).instructions == Amount(low=5, high=6)
