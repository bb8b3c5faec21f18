"""The functions of `Values` that integer instructions of AMD compute. Source: AMD Instinct MI300 ISA."""

from __future__ import annotations

import re

_STEPS = """
v_add_u32 s_add_i32 s_add_u32: add 32 0 1; v_sub_u32 s_sub_i32 s_sub_u32: sub 32 0 1
v_subrev_u32: sub 32 1 0; v_mul_lo_u32 s_mul_i32: mul 32 0 1
v_lshlrev_b32: shl 32 1 0; s_lshl_b32: shl 32 0 1; v_lshrrev_b32: shr 32 1 0; s_lshr_b32: shr 32 0 1
v_ashrrev_i32: sar 32 1 0; s_ashr_i32: sar 32 0 1; v_lshlrev_b64: shl 64 1 0; s_lshl_b64: shl 64 0 1
v_and_b32 s_and_b32: and 32 0 1; v_or_b32 s_or_b32: or 32 0 1; v_xor_b32 s_xor_b32: xor 32 0 1
s_and_b64: and 64 0 1; s_or_b64: or 64 0 1; s_xor_b64: xor 64 0 1
v_not_b32 s_not_b32: not 32 0; s_not_b64: not 64 0
s_andn2_b32: not 32 1, and 32 0 -1; s_andn2_b64: not 64 1, and 64 0 -1
v_mov_b32 s_mov_b32 s_movk_i32 v_accvgpr_write_b32 v_accvgpr_read_b32 v_accvgpr_mov_b32: copy 0 0
s_mov_b64 v_mov_b64: copy 0 0; v_add3_u32: add 32 0 1, add 32 -1 2; v_or3_b32: or 32 0 1, or 32 -1 2
v_lshl_add_u32: shl 32 0 1, add 32 -1 2; v_lshl_add_u64: shl 64 0 1, add 64 -1 2
v_lshl_or_b32: shl 32 0 1, or 32 -1 2; v_and_or_b32: and 32 0 1, or 32 -1 2
v_bfe_u32 s_bfe_u32: field 32 0 1 2; v_xad_u32: xor 32 0 1, add 32 -1 2
v_add_lshl_u32: add 32 0 1, shl 32 -1 2; v_bfrev_b32 s_brev_b32: reversed 32 0
v_mul_u32_u24: mul24 32 0 1; v_mad_u32_u24: mul24 32 0 1, add 32 -1 2
v_min_i32 s_min_i32: smin 32 0 1; v_max_i32 s_max_i32: smax 32 0 1
v_min_u32 s_min_u32: umin 32 0 1; v_max_u32 s_max_u32: umax 32 0 1
"""
"""The functions of `Values` that an instruction computes, one after another: name, width, numbers of the
sources. -1 is the last result.
"""
COMPUTED = {
    name: [(step.split()[0], *map(int, step.split()[1:])) for step in steps.split(",")]
    for rule in re.split(r"[;\n]", _STEPS.strip())
    for names, _, steps in [rule.partition(":")]
    for name in names.split()
}
SAME_VALUE = {"v_rcp_iflag_f32": "v_rcp_f32"}
"""Instructions that return the same value. They differ only in the exceptions that they raise, and no kernel
of Triton enables these. Source: AMD Instinct MI300 ISA, V_RCP_IFLAG_F32.
"""
PAIR = "pack", 0
