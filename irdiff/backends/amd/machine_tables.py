"""Tables of AMD's instructions: classes, widths of accesses, operations of matrices. Pure.

Names follow the AMD Instinct MI300 instruction set architecture guide ("Vector Memory Operations", "Matrix
Arithmetic Instructions").
"""

from __future__ import annotations

import functools
import re
from typing import NamedTuple

LINE_BYTES = 128
"""Aligned pieces in which accesses are counted. No source was read for what a cache fetches at once."""
_WIDTHS = (
    (re.compile(r"_dwordx(\d)"), 4),
    (re.compile(r"_dword"), 4),
    (re.compile(r"_(?:[us]?short|[ub]?16|u16|i16)"), 2),
    (re.compile(r"_(?:[us]?byte|b8|u8|i8)"), 1),
)
_SHARED_WIDTH = re.compile(r"_(?:b|u|i|f)(\d{1,3})")
_MATRIX = re.compile(r"v_s?mfmac?_(?:scale_)?\w+?_(\d{1,3})x(\d{1,3})x(\d{1,3})(?:_(\d{1,3})b)?")
BARRIERS = frozenset({"s_barrier"})
WAITS = frozenset({"s_waitcnt"})


class MachineAccess(NamedTuple):
    space: str
    """`global`, `shared`, `scratch`, `scalar`."""
    kind: str
    """`load`, `store`, `atomic`."""
    width: int
    """Bytes of a lane; of a wave for scalars."""


@functools.lru_cache(maxsize=1 << 12)
def access_of(opcode: str) -> MachineAccess | None:
    """None for what accesses no memory."""
    head, _, rest = opcode.partition("_")
    if head == "s" and rest.startswith(("load_", "buffer_load_")):
        return MachineAccess("scalar", "load", 4 * int(re.sub(r"\D", "", rest) or 1))
    if head == "ds":
        return _shared(rest)
    if head not in ("global", "buffer", "flat", "scratch") or rest.startswith(("wbl2", "inv", "gl", "wb")):
        return None
    space = "scratch" if head == "scratch" else "global"
    if "atomic" in rest:
        return MachineAccess(space, "atomic", 8 if rest.endswith(("_x2", "_f64")) else 4)
    for pattern, width in _WIDTHS:
        if match := pattern.search(f"_{rest}"):
            count = int(match[1]) if match.groups() and match[1] else 1
            return MachineAccess(space, "store" if "store" in rest else "load", width * count)
    return None


def _shared(rest: str) -> MachineAccess | None:
    kind = "load" if rest.startswith("read") else "store" if rest.startswith("write") else "atomic"
    if rest.startswith(("bpermute", "permute", "swizzle", "nop", "gws")):
        return None
    bits = _SHARED_WIDTH.search(f"_{rest}")
    times = 2 if rest.startswith(("read2", "write2")) else 1
    return MachineAccess("shared", kind, times * max(1, int(bits[1]) // 8) if bits else 4)


@functools.lru_cache(maxsize=1 << 10)
def matrix_operations(opcode: str) -> int:
    """Operations of one wave, two for each multiply-add; 0 if it is no matrix instruction."""
    match = _MATRIX.match(opcode)
    if not match:
        return 0
    rows, columns, depth = int(match[1]), int(match[2]), int(match[3])
    return 2 * rows * columns * depth * int(match[4] or 1)


_CLASSES = (
    (r"v_s?mfma", "matrix"),
    (r"s_barrier", "barrier"),
    (r"s_wait", "wait"),
    (r"buffer_(?:wbl2|inv|gl)|s_dcache|global_(?:wb|inv)", "fence"),
    (r"s_c?branch|s_endpgm|s_setpc|s_swappc|s_getpc", "branch"),
    (r"v_readlane|v_writelane|v_readfirstlane|v_permlane|ds_(?:b?permute|swizzle)|\w*_dpp", "lane exchange"),
    (r"v_accvgpr", "accumulator move"),
    (r"v_cvt_", "conversion"),
    (r"v_(?:exp|log|rcp|rsq|sqrt|sin|cos)_", "special function"),
    (r"v_(?:pk_)?\w*?_?(?:f16|f32|f64|bf16)(?:_|$)", "float"),
    (r"s_nop|s_sleep|s_setprio|s_sched", "nothing"),
    (r"s_", "scalar integer and moves"),
)
_COMPILED = tuple((re.compile(pattern), name) for pattern, name in _CLASSES)
_OF_ACCESS = {"global": "global", "shared": "shared", "scratch": "scratch", "scalar": "scalar"}


@functools.lru_cache(maxsize=1 << 12)
def class_of(opcode: str) -> str:
    if access := access_of(opcode):
        return "atomic" if access.kind == "atomic" else f"{_OF_ACCESS[access.space]} {access.kind}"
    return next((name for pattern, name in _COMPILED if pattern.match(opcode)), "vector integer and moves")
