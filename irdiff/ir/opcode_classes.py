"""The classes of opcodes, in one table: what each is counted as in the facts, and what an edit calls it.

Names follow the PTX ISA's chapters, the AMD CDNA ISA documents and the LLVM Language Reference. In each
column the first row that matches and is not empty counts. Loads and stores are counted by width and space,
which their opcodes spell (`histogram`).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import NamedTuple

from irdiff.stages import Stage


class OpcodeClass(NamedTuple):
    opcodes: str
    """A regular expression that matches their beginning."""
    counted: str
    """The name of the fact; empty where the row counts nothing."""
    klass: str
    """The class in an edit; empty where the row has none: an edit then has the opcode itself."""


BY_NAME = re.compile(
    r"fence|barrier|bar\.|mbarrier|wait|atom|red\.|cmpxchg|mma|mfma|wgmma|tcgen05|cp\.async|tma|ldmatrix"
    r"|stmatrix|nanosleep|membar|depbar|s_sched|s_setprio|lds_|ds_read|ds_write|griddep|elect|cluster"
)
"""Opcodes that a reader of an edit must see by name, whatever their class: synchronization, atomics, matrix
units, copies in the background."""

_INTEGER = "integer arithmetic"
_PTX = (
    OpcodeClass(r"tcgen05\.mma", "tcgen05_mma", ""),
    OpcodeClass(r"tcgen05\.", "tcgen05_other", ""),
    OpcodeClass(r"wgmma\.mma_async", "wgmma", ""),
    OpcodeClass(r"wgmma\.(?:fence|commit_group|wait_group)", "wgmma_sync", ""),
    OpcodeClass(r"(?:mma|wmma)\.", "mma", ""),
    OpcodeClass(r"ldmatrix|stmatrix", "matrix_load_store", ""),
    OpcodeClass(r"cp\.async\.bulk\.(?:tensor|prefetch)", "tma", ""),
    OpcodeClass(r"cp\.async\.(?:bulk\.)?(?:commit_group|wait)", "async_copy_sync", ""),
    OpcodeClass(r"cp\.async", "async_copy", ""),
    OpcodeClass(r"(?:atom|red)\.", "atomic", ""),
    OpcodeClass(r"(?:bar|barrier|mbarrier)\b", "barrier", ""),
    OpcodeClass(r"(?:fence|membar)\b", "fence", ""),
    OpcodeClass(r"(?:shfl|vote|match|redux)\.", "warp_exchange", ""),
    OpcodeClass(r"cvt\b", "convert", "conversions"),
    OpcodeClass(r"cvta\b", "convert", "moves"),
    OpcodeClass(r"mov\b", "", "moves"),
    OpcodeClass(r"(?:bra|brx|ret|exit|call)\b", "branch", "control flow"),
    OpcodeClass(r"\$L", "", "control flow"),
    OpcodeClass(r"(?:fma|ex2|lg2|rcp|sqrt|rsqrt|tanh|sin|cos)\b", "", "float"),
    OpcodeClass(r"(?:add|sub|mul|div|neg|max|min|abs|setp|selp)\.(?:\w+\.)*b?f", "", "float"),
    OpcodeClass(r"(?:add|sub|mul|mad|mad24|mul24|div|rem|abs|neg|min|max|sad|dp4a)\b", "", _INTEGER),
    OpcodeClass(r"(?:shl|shr|shf|and|or|xor|not|cnot|lop3|setp|selp|slct|prmt|popc|clz)\b", "", _INTEGER),
    OpcodeClass(r"(?:bfe|bfi|bfind|brev|fns|bmsk|szext)\b", "", _INTEGER),
    OpcodeClass(r"\.|\{|\}", "", "directives"),
)
_AMDGCN = (
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
    OpcodeClass(r"[vs]_", "", _INTEGER),
)
_LLIR = (
    OpcodeClass(r"f(?:add|sub|mul|div|rem|neg|cmp)$|fma|fmul|exp|log|sqrt|sin|cos", "", "float"),
    OpcodeClass(r"maxnum|minnum|maximum|minimum", "", "float"),
    OpcodeClass(r"(?:add|sub|mul|[su]div|[su]rem|shl|[al]shr|and|or|xor|icmp|select|freeze)$", "", _INTEGER),
    OpcodeClass(r"s?min|s?max|abs|bfe|prmt|lop3|fsh[lr]|ctpop|ctlz|bitreverse|bswap|mulhi", "", _INTEGER),
    OpcodeClass(r"mlir\.|func$|workitem|workgroup|read\.ptx\.sreg|readfirstlane|warp_id", "", _INTEGER),
    OpcodeClass(r"(?:getelementptr|ptrtoint|inttoptr|addrspacecast|bitcast)$", "", "addresses and casts"),
    OpcodeClass(r"(?:sext|zext|trunc)$", "", "addresses and casts"),
    OpcodeClass(r"fp\w*$|[su]itofp$|cvt", "", "float conversions"),
    OpcodeClass(r"(?:insert|extract)(?:element|value)$|shufflevector$", "", "vector shuffles"),
    OpcodeClass(r"undef|poison|mov\.b|constant", "", "vector shuffles"),
    OpcodeClass(r"br$|switch$|phi$|ret$|unreachable$|cond_br|%?[\w.$-]+:$", "", "control flow"),
    OpcodeClass(r"define$|declare$|attributes$|assume", "", "declarations"),
)
_OF_STAGE: Mapping[str, tuple[OpcodeClass, ...]] = {
    Stage.PTX: _PTX,
    Stage.AMDGCN: _AMDGCN,
    Stage.LLIR: _LLIR,
}


@functools.lru_cache(maxsize=1 << 13)
def counted(stage: str, opcode: str) -> str:
    """The name of the fact that an opcode is counted in; empty where it is in none."""
    rows = (row for row in _OF_STAGE.get(stage, ()) if row.counted)
    return next((row.counted for row in rows if re.match(row.opcodes, opcode)), "")


@functools.lru_cache(maxsize=1 << 13)
def klass(stage: str, opcode: str) -> str | None:
    """The class of an opcode in an edit; None where an edit has the opcode itself."""
    rows = (row for row in _OF_STAGE.get(stage, ()) if row.klass)
    return next((row.klass for row in rows if re.match(row.opcodes, opcode)), None)
