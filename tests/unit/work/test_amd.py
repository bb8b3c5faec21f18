"""What waves of AMD's assembly execute, of kernels whose counts a person can work out."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from irdiff.backends.amd import machine_tables
from irdiff.backends.amd.execution.code import instructions
from irdiff.backends.amd.execution.lanes import EXEC, MASK, WaveRegisters
from irdiff.backends.amd.execution.scalar import ACTIONS as SCALAR
from irdiff.backends.amd.execution.vector import ACTIONS as VECTOR
from irdiff.backends.amd.execution.waves import Waves
from irdiff.counted_work import Amount, NotCountedWork, Work, facts_of
from irdiff.errors import NormalizeError
from irdiff.execution.launch_facts import KnownContent, LaunchFacts
from irdiff.execution.state import TRUE, LaneState
from irdiff.ir.amdgcn import machine_code
from irdiff.model import Sides, Verdict
from irdiff.report import work_table
from irdiff.work import counting
from tests.unit.runs import case

X, Y = 0x7F00_1000_0000, 0x7F10_1000_0000
SETTINGS = """
\t.amdhsa_kernel k
\t\t.amdhsa_user_sgpr_kernarg_segment_ptr 1
\t\t.amdhsa_user_sgpr_kernarg_preload_length {preloaded}
\t\t.amdhsa_user_sgpr_count {count}
\t.end_amdhsa_kernel
"""


def assembly(lines, preloaded=0):
    """A kernel `k`; labels stand on lines of their own."""
    rows = [line.strip() for line in lines.splitlines() if line.strip()]
    body = "\n".join(row if row.endswith(":") else f"\t{row}" for row in rows)
    return f"k:\n{body}\n.Lfunc_end0:\n{SETTINGS.format(preloaded=preloaded, count=2 + preloaded)}"


def facts(*arguments, grid=(1, 1, 1), waves=1, regions=()):
    """Arguments of 8 bytes each; the workgroup's place is in s2, or behind what is preloaded."""
    content = struct.pack(f"<{len(arguments)}q", *arguments)
    bank = np.full(len(content) + 8, -1, dtype=np.int16)
    bank[: len(content)] = np.frombuffer(content, dtype=np.uint8)
    return LaunchFacts(
        kernel="k", arch=0, grid=grid, cluster=1, warps=waves, constants={0: bank}, regions=tuple(regions),
        shared_bytes=0, descriptors={},
    )  # fmt: skip


def counted(lines, launch, preloaded=0):
    machine = Waves(machine_code.read(assembly(lines, preloaded), "k"), launch)
    found = counting.count_on(machine)
    return found if isinstance(found, NotCountedWork) else found.work


def known(number):
    return Amount(low=number, high=number)


COPY = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_load_dword s8, s[0:1], 0x10
    s_lshl_b32 s2, s2, 8
    v_add_u32_e32 v1, s2, v0
    s_waitcnt lgkmcnt(0)
    v_cmp_gt_i32_e32 vcc, s8, v1
    s_and_saveexec_b64 s[10:11], vcc
    s_cbranch_execz .LBB0_2
    v_lshlrev_b32_e32 v1, STRIDE, v1
    global_load_dword v2, v1, s[4:5]
    s_waitcnt vmcnt(0)
    global_store_dword v1, v2, s[6:7]
    .LBB0_2:
    s_endpgm
"""


@pytest.mark.parametrize(("shift", "lines"), [("2", 2), ("7", 64)])
def test_lines_that_a_wave_touches(shift, lines):
    """64 lanes of 4 bytes lie in two lines of 128, or each in one of its own."""
    work = counted(COPY.replace("STRIDE", shift), facts(X, Y, 64 * 256, grid=(64, 1, 1), waves=4))
    assert work.instructions == known(64 * 4 * 13)
    assert work.global_requests == known(2 * 64 * 4)
    assert work.global_sectors == known(2 * 64 * 4 * lines)
    assert work.least_global_sectors == known(2 * 64 * 4 * 2)
    assert work.bytes_by_space["global load"] == known(64 * 256 * 4)
    assert facts_of(work)["global_lines"] == 2 * 64 * 4 * lines


def test_explain_shows_lines_and_no_figure_without_a_source():
    work = [counted(COPY.replace("STRIDE", shift), facts(X, Y, 256, waves=4)) for shift in ("2", "7")]
    changed = replace(case(verdict=Verdict.CHANGED), work=Sides(base=work[0], head=work[1]))
    lines = list(work_table.lines(changed))
    assert "global lines of 128 B            16 → 512  +3100.0%" in lines
    assert not [line for line in lines if "wavefront" in line or "sector" in line or "spill" in line]


def test_lanes_that_exec_does_not_have_access_nothing():
    """The last program has 40 elements of 256: one wave with 40 lanes, and three that jump."""
    work = counted(COPY.replace("STRIDE", "2"), facts(X, Y, 99 * 256 + 40, grid=(100, 1, 1), waves=4))
    assert work.global_requests == known(2 * (99 * 4 + 1))
    assert work.bytes_by_space["global store"] == known((99 * 256 + 40) * 4)
    assert work.instructions == known(99 * 4 * 13 + 13 + 3 * 9)
    assert work.thread_instructions == known(99 * 4 * 13 * 64 + 4 * 7 * 64 + 6 * 40)


LOOP = """
    s_load_dwordx4 s[4:7], s[0:1], 0x0
    s_mov_b32 s8, 0
    v_mov_b32_e32 v1, 0
    .LBB0_1:
    global_load_dword v2, v1, s[4:5]
    v_mfma_f32_32x32x8_f16 v[4:19], v[20:21], v[22:23], v[4:19]
    v_add_u32_e32 v1, 0x80, v1
    s_add_i32 s8, s8, 1
    s_cmp_lt_i32 s8, s6
    s_cbranch_scc1 .LBB0_1
    s_endpgm
"""


@pytest.mark.parametrize("trips", [1, 2, 7, 100, 3001])
def test_a_loop_is_counted_and_not_run(trips):
    work = counted(LOOP, facts(X, trips))
    assert work.instructions == known(3 + 6 * trips + 1)
    assert work.trip_counts == {3: trips}
    assert work.loops[0].label == ".LBB0_1"
    assert work.matrix_operations == {"v_mfma_f32_32x32x8_f16": known(trips * 2 * 32 * 32 * 8)}


@pytest.mark.parametrize(
    ("test", "share"),
    [
        ("s_bitcmp1_b32 s8, 4", lambda n: n >> 4 & 1), ("s_bitcmp1_b32 s8, 0", lambda n: n & 1),
        ("s_and_b32 s9, s8, 15", lambda n: n & 15 != 0), ("s_lshr_b32 s9, s8, 6", lambda n: n >> 6 != 0),
    ],
)  # fmt: skip
@pytest.mark.parametrize("trips", [5, 40, 203])
def test_a_branch_on_bits_of_the_counter_is_not_skipped(test, share, trips):
    lines = f"""
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        s_mov_b32 s8, 0
        .LBB0_1:
        {test}
        s_cbranch_scc0 .LBB0_2
        s_nop 0
        .LBB0_2:
        s_add_i32 s8, s8, 1
        s_cmp_lt_i32 s8, s6
        s_cbranch_scc1 .LBB0_1
        s_endpgm
    """
    assert counted(lines, facts(X, trips)).instructions == known(
        3 + 5 * trips + sum(map(share, range(trips)))
    )


def test_a_comparison_may_write_what_it_reads():
    """Its sides are those before it."""
    lines = LOOP.replace(
        "s_cmp_lt_i32 s8, s6", "s_mov_b32 s10, s8\n v_mov_b32_e32 v3, s6\n v_cmp_gt_i32_e64 s[10:11], v3, s10"
    )
    lines = lines.replace("s_cbranch_scc1", "s_and_b64 vcc, exec, s[10:11]\n s_cbranch_vccnz")
    assert counted(lines, facts(X, 400)).instructions == known(3 + 9 * 400 + 1)


def test_a_loop_whose_test_stands_at_its_head():
    lines = """
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        s_mov_b32 s8, 0
        s_branch .LBB0_2
        .LBB0_1:
        s_add_i32 s8, s8, 1
        s_cmp_ge_i32 s8, s6
        s_cbranch_scc1 .LBB0_3
        .LBB0_2:
        s_nop 0
        s_branch .LBB0_1
        .LBB0_3:
        s_endpgm
    """
    work = counted(lines, facts(X, 50))
    assert [loop.trip_count for loop in work.loops] == [50]


BUFFER = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    s_and_b32 s5, s5, 0xffff
    s_mov_b32 s6, 0x7ffffffe
    s_mov_b32 s7, 0x27000
    v_lshlrev_b32_e32 v1, 2, v0
    v_bfrev_b32_e32 v2, 1
    v_cmp_gt_i32_e32 vcc, 10, v0
    v_cndmask_b32_e32 v1, v2, v1, vcc
    buffer_load_dword v3, v1, s[4:7], 0 offen
    s_endpgm
"""


def test_lanes_whose_offset_lies_outside_the_buffer_access_nothing():
    """Triton masks a load by an offset of 2**31."""
    work = counted(BUFFER, facts(X))
    assert work.bytes_by_space["global load"] == known(10 * 4)
    assert work.global_sectors == known(1)


def test_an_offset_that_data_decide_is_an_interval():
    lines = BUFFER.replace("v_lshlrev_b32_e32 v1, 2, v0", "global_load_dword v1, v0, s[4:5]")
    work = counted(lines, facts(X))
    assert work.bytes_by_space["global load"] == Amount(64 * 4, 64 * 4 + 10 * 4)
    assert "global_lines" not in facts_of(work)


DIVERGED = """
    s_load_dwordx2 s[4:5], s[0:1], 0x0
    v_lshlrev_b32_e32 v1, 2, v0
    global_load_dword v2, v1, s[4:5]
    v_cmp_gt_i32_e32 vcc, 3, v2
    s_and_saveexec_b64 s[8:9], vcc
    s_xor_b64 s[8:9], exec, s[8:9]
    s_cbranch_execz .LBB0_1
    v_mov_b32_e32 v3, 1
    .LBB0_1:
    s_andn2_saveexec_b64 s[8:9], s[8:9]
    s_cbranch_execz .LBB0_2
    v_mov_b32_e32 v3, 2
    .LBB0_2:
    s_or_b64 exec, exec, s[8:9]
    global_store_dword v1, v3, s[4:5]
    s_endpgm
"""


def test_behind_an_if_and_its_else_all_lanes_are_there_again():
    """Which lanes took which way is not known; that all come back is."""
    work = counted(DIVERGED, facts(X))
    assert work.bytes_by_space["global store"] == known(64 * 4)
    assert work.instructions == Amount(12, 14)


def test_the_other_half_of_another_mask_is_not_the_whole():
    """Two conditions that data decide: what one leaves does not complete the other."""
    lines = DIVERGED.replace(
        "s_or_b64 exec, exec, s[8:9]", "v_cmp_gt_i32_e64 s[10:11], 5, v2\n s_or_b64 exec, exec, s[10:11]"
    )
    assert counted(lines, facts(X)).bytes_by_space["global store"] == Amount(0, 64 * 4)


def test_arguments_that_the_processor_preloads():
    """It starts behind the code that loads them, at the next 256 bytes."""
    lines = """
        s_load_dwordx2 s[2:3], s[0:1], 0x0
        s_waitcnt lgkmcnt(0)
        s_branch .LBB0_0
        .p2align\t8
        .LBB0_0:
        v_lshlrev_b32_e32 v1, 2, v0
        global_load_dword v2, v1, s[2:3]
        s_endpgm
    """
    work = counted(lines, facts(X), preloaded=2)
    assert work.instructions == known(3)
    assert work.global_sectors == known(2)


def test_contents_that_the_launch_fixes_decide_how_often_a_loop_runs():
    lines = LOOP.replace("s_mov_b32 s8, 0", "s_load_dword s6, s[4:5], 0x4\n s_mov_b32 s8, 0")
    region = KnownContent(address=X, content=np.array([3, 9], dtype=np.int32).view(np.uint8))
    assert set(counted(lines, facts(X, 0, regions=[region])).trip_counts.values()) == {9}


BARRIER = """
    v_readfirstlane_b32 s4, v0
    s_cmp_lt_u32 s4, 64
    s_cbranch_scc0 .LBB0_1
    s_nop 0
    .LBB0_1:
    s_barrier
    s_endpgm
"""


def test_waves_that_parted_meet_at_a_barrier():
    work = counted(BARRIER, facts(waves=4))
    assert work.barriers == known(4)
    assert work.instructions == known(4 * 5 + 1)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (".LBB0_1:\n s_add_i32 s4, s4, 1\n s_branch .LBB0_1", "the loop at .LBB0_1 never ends"),
        (".LBB0_1:\n s_branch .LBB0_1", "an endless loop at .LBB0_1"),
        ("s_swappc_b64 s[30:31], s[0:1]\n s_endpgm", "s_swappc_b64 at k: its target is not read"),
        ("s_setpc_b64 s[30:31]", "s_setpc_b64 at k: its target is not read"),
        ("s_branch .LBB0_7\n s_endpgm", "s_branch .LBB0_7 leads out of k"),
        ("s_nop 0", "the code runs past its end"),
        ("v_mov_b32_e32 v[0:999999999], v1\n s_endpgm", ""),
        ("global_load_dword v1, v1, s[4:5] offset:9e9", None),
        (f"global_load_dword v1, v0, s[0:1] offset:{10**30}\n s_endpgm", None),
        (f"v_add_u32_e32 v1, {'v2, ' * 10_000}v3\n s_endpgm", "k has an instruction of 40,021 characters"),
        ("v_add_u32_e32 v1\n s_endpgm", "'v_add_u32_e32 v1' at k: its operands cannot be read"),
        (
            "buffer_load_dword v1, v2\n s_endpgm",
            "'buffer_load_dword v1, v2' at k: its operands cannot be read",
        ),
    ],
)
def test_what_cannot_be_counted_ends_with_its_reason(lines, reason):
    try:
        found = counted(lines, facts(X, 1))
    except NormalizeError as error:  # `count` says it
        found = NotCountedWork(reason=error.what)
    if reason == "":
        assert isinstance(found, Work)
    else:
        assert isinstance(found, NotCountedWork)
        assert found.reason == reason or (reason is None and "cannot be read" in found.reason)


def test_a_preload_of_a_thousand_million_words_is_none():
    assert counted("s_endpgm", facts(), preloaded=10**9).instructions == known(1)


@pytest.mark.parametrize("grid", [(2**31, 2**20, 1), (1, 1, 0)])
def test_a_huge_or_empty_grid_is_refused(grid):
    assert isinstance(counted("s_endpgm", facts(grid=grid)), NotCountedWork)


def test_an_instruction_that_is_not_computed_makes_its_result_unknown():
    lines = """
        s_mov_b32 s4, 0
        s_frobnicate_b32 s4, s4
        s_cmp_eq_u32 s4, 0
        s_cbranch_scc1 .LBB0_1
        s_nop 0
        .LBB0_1:
        s_endpgm
    """
    assert counted(lines, facts()).instructions == Amount(5, 6)


@pytest.mark.parametrize(
    ("opcode", "access"),
    [
        ("global_load_dwordx4", ("global", "load", 16)), ("buffer_store_short_d16_hi", ("global", "store", 2)),
        ("buffer_load_ubyte", ("global", "load", 1)), ("ds_read2st64_b64", ("shared", "load", 16)),
        ("ds_write_b16_d16_hi", ("shared", "store", 2)), ("scratch_store_dwordx2", ("scratch", "store", 8)),
        ("s_load_dwordx8", ("scalar", "load", 32)), ("global_atomic_add_f64", ("global", "atomic", 8)),
        ("buffer_atomic_smax_x2", ("global", "atomic", 8)), ("ds_read_b64_tr_b16", ("shared", "load", 8)),
        ("buffer_wbl2", None), ("ds_bpermute_b32", None), ("v_add_u32", None),
    ],
)  # fmt: skip
def test_widths_of_accesses(opcode, access):
    assert machine_tables.access_of(opcode) == access


@pytest.mark.parametrize(
    ("opcode", "operations"),
    [
        ("v_mfma_f32_16x16x32_bf16", 2 * 16 * 16 * 32), ("v_mfma_f32_4x4x4_16b_f16", 2 * 4 * 4 * 4 * 16),
        ("v_mfma_scale_f32_32x32x64_f8f6f4", 2 * 32 * 32 * 64), ("v_mfma_i32_32x32x16_i8", 2 * 32 * 32 * 16),
        ("v_mfma_f32_16x16x8_xf32", 2 * 16 * 16 * 8), ("v_fma_f32", 0),
    ],
)  # fmt: skip
def test_operations_of_matrix_instructions(opcode, operations):
    assert machine_tables.matrix_operations(opcode) == operations


WORDS = st.integers(0, 2**32 - 1) | st.sampled_from([0, 1, 2**31 - 1, 2**31, 2**32 - 1])
M = 2**32 - 1


def executed(text, words, scc=None):
    """The target's words and SCC after one instruction on v1, v2, … and s1, s2, …"""
    registers = WaveRegisters(LaneState(programs=1, warps=1, constants={}, lanes=64))
    registers.state.registers[MASK][EXEC] = TRUE, None
    (each,) = instructions(machine_code.read(assembly(text), "k"))
    for number, word in enumerate(words, 1):
        for kind in "vs":
            operand = machine_code.line_of(f"v_mov_b32 {kind}{number}").operands[0]
            registers.write(operand, (np.array([[word]], dtype=np.uint32), None))
    if scc is not None:
        registers.write_scc((np.array([[scc]]), None))
    (VECTOR if text.startswith("v_") else SCALAR)[each.opcode](registers, each)
    target = each.operands[0]
    found = [registers.fetch(target, n)[0] for n in range(target.count)]
    flag = registers.scc[0]
    return [int(word.flat[0]) for word in found], None if flag is None else bool(flag.flat[0])


def signed(word):
    return word - 2**32 if word >> 31 else word


@given(WORDS, WORDS, WORDS)
def test_vector_integers(a, b, c):
    assert executed("v_add3_u32 v9, v1, v2, v3", [a, b, c])[0] == [a + b + c & M]
    assert executed("v_xad_u32 v9, v1, v2, v3", [a, b, c])[0] == [(a ^ b) + c & M]
    assert executed("v_subrev_u32_e32 v9, v1, v2", [a, b])[0] == [b - a & M]
    assert executed("v_mul_hi_u32 v9, v1, v2", [a, b])[0] == [a * b >> 32]
    assert executed("v_bfi_b32 v9, v1, v2, v3", [a, b, c])[0] == [a & b | ~a & c & M]
    assert executed("v_ashrrev_i32_e32 v9, v1, v2", [a, b])[0] == [signed(b) >> (a & 31) & M]
    assert executed("v_bitop3_b32 v9, v1, v2, v3 bitop3:0x54", [a, b, c])[0] == [(a | b) & ~c & M]
    low, high = executed("v_mad_i64_i32 v[8:9], s[20:21], v1, v2, v[3:4]", [a, b, c, a])[0]
    assert low | high << 32 == signed(a) * signed(b) + (c | a << 32) & 2**64 - 1
    low, high = executed("v_lshl_add_u64 v[8:9], v[1:2], 3, v[3:4]", [a, b, c, a])[0]
    assert low | high << 32 == ((a | b << 32) << 3) + (c | a << 32) & 2**64 - 1


@given(WORDS, st.integers(0, 31), st.integers(0, 31))
def test_fields(a, offset, width):
    field = a >> offset & (1 << width) - 1
    assert executed(f"v_bfe_u32 v9, v1, {offset}, {width}", [a])[0] == [field]
    assert executed("s_bfe_u32 s9, s1, s2", [a, offset | width << 16])[0] == [field]
    value = field - (1 << width) if width and field >> width - 1 else field
    assert executed(f"v_bfe_i32 v9, v1, {offset}, {width}", [a])[0] == [value & M]


@given(WORDS, WORDS, st.booleans())
def test_scalar_sums_and_their_carries(a, b, carry):
    assert executed("s_add_u32 s9, s1, s2", [a, b]) == ([a + b & M], a + b > M)
    assert executed("s_addc_u32 s9, s1, s2", [a, b], carry) == ([a + b + carry & M], a + b + carry > M)
    assert executed("s_sub_u32 s9, s1, s2", [a, b]) == ([a - b & M], a < b)
    assert executed("s_subb_u32 s9, s1, s2", [a, b], carry) == ([a - b - carry & M], a < b + carry)
    overflows = not -(2**31) <= signed(a) + signed(b) < 2**31
    assert executed("s_add_i32 s9, s1, s2", [a, b]) == ([a + b & M], overflows)
    assert executed("s_cselect_b32 s9, s1, s2", [a, b], carry)[0] == [a if carry else b]


@given(WORDS, WORDS)
def test_scalar_comparisons(a, b):
    assert executed("s_cmp_lt_i32 s1, s2", [a, b])[1] == (signed(a) < signed(b))
    assert executed("s_cmp_ge_u32 s1, s2", [a, b])[1] == (a >= b)
    assert executed("s_bitcmp1_b32 s1, s2", [a, b])[1] == bool(a >> (b & 31) & 1)


@given(st.integers(0, 2**31 - 1), st.integers(1, 2**20))
def test_a_division_as_llvm_writes_it(a, b):
    """The estimate by floating point needs no more than the two corrections that follow it."""
    lines = f"""
        s_load_dwordx4 s[4:7], s[0:1], 0x0
        s_mov_b32 s8, {a:#x}
        s_mov_b32 s9, {b:#x}
        v_cvt_f32_u32_e32 v1, s9
        s_sub_i32 s10, 0, s9
        v_rcp_iflag_f32_e32 v1, v1
        s_nop 0
        v_mul_f32_e32 v1, 0x4f7ffffe, v1
        v_cvt_u32_f32_e32 v1, v1
        v_readfirstlane_b32 s11, v1
        s_mul_i32 s10, s10, s11
        s_mul_hi_u32 s10, s11, s10
        s_add_i32 s11, s11, s10
        s_mul_hi_u32 s10, s8, s11
        s_mul_i32 s11, s10, s9
        s_sub_i32 s11, s8, s11
        s_add_i32 s12, s10, 1
        s_sub_i32 s13, s11, s9
        s_cmp_ge_u32 s11, s9
        s_cselect_b32 s10, s12, s10
        s_cselect_b32 s11, s13, s11
        s_add_i32 s12, s10, 1
        s_cmp_ge_u32 s11, s9
        s_cselect_b32 s10, s12, s10
        s_cmp_eq_u32 s10, {a // b:#x}
        s_cbranch_scc1 .LBB0_1
        s_nop 0
        .LBB0_1:
        s_endpgm
    """
    assert counted(lines, facts(X, 1)).instructions == known(27)
