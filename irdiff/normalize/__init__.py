"""Canonical text of every IR: the only judge of `equivalent`, and what every diff shows.

    canonicalize(ir, text) -> Canonical        the canonical form
    equivalent(ir, base, head) -> Comparison   equal bytes or equal canonical forms
    lines(ir, text) -> canonical lines         the same one after another, for large texts
    raw_lines(ir, text) -> line numbers        which raw line each canonical line came from
    instruction_facts(ir, text) -> counts      instructions by class

Functions without effects, one module an IR; what reads LLVM IR with LLVM runs elsewhere (`llvm_reader`) and
is handed in. Each module states its rules, each with its reason and source.
"""

from __future__ import annotations

from irdiff.normalize.canonical import Canonical, Comparison, Printed, Reprint
from irdiff.normalize.equality import canonicalize, equivalent, lines, raw_lines
from irdiff.normalize.histogram import instruction_facts

NORMALIZER_VERSION = "8"
"""Part of every cache key: raised with any change of any rule."""

__all__ = [
    "NORMALIZER_VERSION",
    "Canonical",
    "Comparison",
    "Printed",
    "Reprint",
    "canonicalize",
    "equivalent",
    "instruction_facts",
    "lines",
    "raw_lines",
]
