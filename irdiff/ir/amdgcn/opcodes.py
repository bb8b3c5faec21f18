"""The opcodes of AMD's assembly by class. Names follow the AMD CDNA instruction set architecture guides."""

from __future__ import annotations

import functools
import re

from irdiff.ir.opcode_classes import INTEGER, OpcodeClass, counted

TABLE = (
    OpcodeClass(r"v_s?mfmac?_|v_wmma", "mfma", ""),
    OpcodeClass(r"buffer_load_\w*lds|global_load_lds", "async_copy", ""),
    OpcodeClass(r"\w*atomic", "atomic", ""),
    OpcodeClass(r"s_barrier", "barrier", ""),
    OpcodeClass(r"s_wait", "wait", ""),
    OpcodeClass(r"buffer_(?:wbl2|inv|gl)|s_dcache|global_wb|global_inv", "fence", ""),
    OpcodeClass(r"v_(?:pk_)?(?:fma|mac|mad)_", "", "float"),
    OpcodeClass(r"v_(?:pk_)?(?:add|sub|subrev|mul|max|min|cmp\w*)_(?:legacy_)?f", "", "float"),
    OpcodeClass(r"v_(?:pk_)?(?:exp|log|rcp|rsq|sqrt|ldexp)_(?:legacy_)?f", "", "float"),
    OpcodeClass(r"v_cvt_", "convert", "conversions"),
    OpcodeClass(r"v_readlane|v_readfirstlane|v_writelane", "warp_exchange", "moves"),
    OpcodeClass(r"v_accvgpr", "accumulator_move", "moves"),
    OpcodeClass(r"v_mov|s_mov|s_cmov|v_swap", "", "moves"),
    OpcodeClass(r"s_c?branch|s_setpc|s_endpgm", "branch", "control flow"),
    OpcodeClass(r"s_swappc", "branch", ""),
    OpcodeClass(r"\.L|s_getpc|s_nop|s_code", "", "control flow"),
    OpcodeClass(r"ds_(?:bpermute|permute|swizzle)|v_permlane", "warp_exchange", "lane exchange"),
    OpcodeClass(r"v_perm|\w*dpp", "", "lane exchange"),
    OpcodeClass(r"s_load", "", "scalar loads"),
    OpcodeClass(r"[vs]_", "", INTEGER),
)
TWO_RESULTS = re.compile(
    r"v_(?:add|sub|subrev|addc|subb|subbrev)_co_|v_mad_[ui]64|v_div_scale|v_swap|v_permlane\d+_swap"
)
READS_RESULT = re.compile(
    r"_dpp|_sdwa|v_(?:mac|fmac|smfmac|dot\w*c|writelane)|_d16|s_cmov|v_(?:mad|fma)_mix(?:lo|hi)"
    r"|v_(?:mad|fma|div_fixup)_[fui]16|v_cvt_(?:sr|scalef32|pk_(?:fp8|bf8))|v_pk_fmac|_swap|s_(?:add|mul)k_"
    r"|s_bitset|s_fmac"
)
"""Instructions that read the register that they write: they keep a part of it, or add to it. `v_fma_f16` and
its kin keep the upper half since gfx9 (LLVM, `GCNSubtarget::zeroesHigh16BitsOfDest`)."""
_MEMORY = re.compile(
    r"(global|buffer|flat|scratch|ds|s)_(load|store|read|write|buffer_load)(\d?)_?(?:\w*?)((?:dword|[bui]\d+|short|byte|sbyte|ubyte)\w*)"
)


@functools.lru_cache(maxsize=1 << 12)
def class_of(opcode: str) -> str:
    """The fact that an opcode is counted in; empty where it is in none."""
    if name := counted(TABLE, opcode):
        return name
    memory = _MEMORY.match(opcode)
    if not memory:
        return ""
    space = {"ds": "shared", "s": "scalar", "buffer": "global"}.get(memory.group(1), memory.group(1))
    kind = "store" if memory.group(2) in ("store", "write") else "load"
    return f"{kind}_{space}_{_width(memory.group(4)) * int(memory.group(3) or 1)}"


def _width(suffix: str) -> int:
    """Bits that one lane loads or stores."""
    digits = re.match(r"\D*(\d+)", suffix)
    if suffix.startswith("dword"):
        return 32 * int(digits[1] if digits and suffix.startswith("dwordx") else 1)
    if "short" in suffix or "byte" in suffix:
        return 16 if "short" in suffix else 8
    return int(digits[1]) if digits else 0
