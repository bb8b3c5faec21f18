"""PTX's opcodes by class. Names follow the chapters of the PTX ISA, "ParsedLine Set"."""

from __future__ import annotations

import functools
import re

from irdiff.ir.opcode_classes import INTEGER, OpcodeClass, counted

OPCODE = r"[a-z]\w*+(?:[.:][\w:]++)*+"
"""How an opcode is spelled with its modifiers."""
TABLE = (
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
    OpcodeClass(r"(?:add|sub|mul|mad|mad24|mul24|div|rem|abs|neg|min|max|sad|dp4a)\b", "", INTEGER),
    OpcodeClass(r"(?:shl|shr|shf|and|or|xor|not|cnot|lop3|setp|selp|slct|prmt|popc|clz)\b", "", INTEGER),
    OpcodeClass(r"(?:bfe|bfi|bfind|brev|fns|bmsk|szext)\b", "", INTEGER),
    OpcodeClass(r"\.|\{|\}", "", "directives"),
)
_MEMORY = re.compile(r"(ld|st)((?:\.[a-zA-Z0-9_:]+)*)$")
_SPACES = ("global", "shared", "local", "const", "param")


@functools.lru_cache(maxsize=1 << 12)
def class_of(opcode: str) -> str:
    """The fact that an opcode is counted in; empty where it is in none."""
    memory = _MEMORY.match(opcode)
    if not memory:
        return counted(TABLE, opcode)
    parts = memory.group(2).split(".")
    space = next((space for part in parts for space in _SPACES if part.startswith(space)), "generic")
    width = next((int(part[1:]) for part in reversed(parts) if re.fullmatch(r"[bsuf]\d+", part)), 0)
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d", part)), 1)
    kind = "load" if memory.group(1) == "ld" else "store"
    return f"{kind}_{space}_{width * vector}" if width else f"{kind}_{space}"
