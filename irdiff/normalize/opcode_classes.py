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


class _Row(NamedTuple):
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

_PTX = (
    _Row(r"tcgen05\.mma", "tcgen05_mma", ""),
    _Row(r"tcgen05\.", "tcgen05_other", ""),
    _Row(r"wgmma\.mma_async", "wgmma", ""),
    _Row(r"wgmma\.(?:fence|commit_group|wait_group)", "wgmma_sync", ""),
    _Row(r"(?:mma|wmma)\.", "mma", ""),
    _Row(r"ldmatrix|stmatrix", "matrix_load_store", ""),
    _Row(r"cp\.async\.bulk\.(?:tensor|prefetch)", "tma", ""),
    _Row(r"cp\.async\.(?:bulk\.)?(?:commit_group|wait)", "async_copy_sync", ""),
    _Row(r"cp\.async", "async_copy", ""),
    _Row(r"(?:atom|red)\.", "atomic", ""),
    _Row(r"(?:bar|barrier|mbarrier)\b", "barrier", ""),
    _Row(r"(?:fence|membar)\b", "fence", ""),
    _Row(r"(?:shfl|vote|match|redux)\.", "warp_exchange", ""),
    _Row(r"cvt\b", "convert", "conversions"),
    _Row(r"cvta\b", "convert", "moves"),
    _Row(r"mov\b", "", "moves"),
    _Row(r"(?:bra|brx|ret|exit|call)\b", "branch", "control flow"),
    _Row(r"\$L", "", "control flow"),
    _Row(r"(?:fma|ex2|lg2|rcp|sqrt|rsqrt|tanh|sin|cos)\b", "", "float"),
    _Row(r"(?:add|sub|mul|div|neg|max|min|abs|setp|selp)\.(?:\w+\.)*b?f", "", "float"),
    _Row(
        r"(?:add|sub|mul|mad|shl|shr|shf|and|or|xor|not|setp|selp|min|max|div|rem|abs|neg)\b",
        "",
        "integer arithmetic",
    ),
    _Row(
        r"(?:lop3|bfe|bfi|bfind|prmt|popc|clz|brev|dp4a|mad24|mul24|slct|sad|cnot|fns|bmsk|szext)\b",
        "",
        "integer arithmetic",
    ),
    _Row(r"\.|\{|\}", "", "directives"),
)
_AMDGCN = (
    _Row(r"v_s?mfmac?_|v_wmma", "mfma", ""),
    _Row(r"buffer_load_\w*lds|global_load_lds", "async_copy", ""),
    _Row(r"\w*atomic", "atomic", ""),
    _Row(r"s_barrier", "barrier", ""),
    _Row(r"s_wait", "wait", ""),
    _Row(r"buffer_(?:wbl2|inv|gl)|s_dcache|global_wb|global_inv", "fence", ""),
    _Row(r"v_(?:pk_)?(?:fma|mac|mad)_", "", "float"),
    _Row(
        r"v_(?:pk_)?(?:add|sub|subrev|mul|max|min|exp|log|rcp|rsq|sqrt|cmp\w*|ldexp)_(?:legacy_)?f",
        "",
        "float",
    ),
    _Row(r"v_cvt_", "convert", "conversions"),
    _Row(r"v_readlane|v_readfirstlane|v_writelane", "warp_exchange", "moves"),
    _Row(r"v_accvgpr", "accumulator_move", "moves"),
    _Row(r"v_mov|s_mov|s_cmov|v_swap", "", "moves"),
    _Row(r"s_c?branch|s_setpc|s_endpgm", "branch", "control flow"),
    _Row(r"s_swappc", "branch", ""),
    _Row(r"\.L|s_getpc|s_nop|s_code", "", "control flow"),
    _Row(r"ds_(?:bpermute|permute|swizzle)|v_permlane", "warp_exchange", "lane exchange"),
    _Row(r"v_perm|\w*dpp", "", "lane exchange"),
    _Row(r"s_load", "", "scalar loads"),
    _Row(r"[vs]_", "", "integer arithmetic"),
)
_LLIR = (
    _Row(
        r"f(?:add|sub|mul|div|rem|neg|cmp)$|fma|fmul|exp|log|sqrt|sin|cos|maxnum|minnum|maximum|minimum",
        "",
        "float",
    ),
    _Row(
        r"add$|sub$|mul$|shl$|[al]shr$|and$|or$|xor$|icmp$|select$|[su]div$|[su]rem$|freeze$|mlir\.|workitem"
        r"|workgroup|read\.ptx\.sreg|readfirstlane|warp_id|func$|s?min|s?max|abs|bfe|prmt|lop3|fsh[lr]|ctpop"
        r"|ctlz|bitreverse|bswap|mulhi",
        "",
        "integer arithmetic",
    ),
    _Row(
        r"getelementptr$|ptrtoint$|inttoptr$|addrspacecast$|bitcast$|sext$|zext$|trunc$",
        "",
        "addresses and casts",
    ),
    _Row(r"fp\w*$|[su]itofp$|cvt", "", "float conversions"),
    _Row(
        r"(?:insert|extract)(?:element|value)$|shufflevector$|undef|poison|mov\.b|constant",
        "",
        "vector shuffles",
    ),
    _Row(
        r"br$|switch$|phi$|ret$|unreachable$|cond_br|%?[\w.$-]+:$",
        "",
        "control flow",
    ),
    _Row(r"define$|declare$|attributes$|assume", "", "declarations"),
)
_OF_STAGE: Mapping[str, tuple[_Row, ...]] = {
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
