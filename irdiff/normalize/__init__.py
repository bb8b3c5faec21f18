"""Canonical text of every IR: the only judge of `equivalent`, and what every diff shows.

    canonicalize(ir, text) -> CanonicalText    the canonical form, with the raw line of each line
    compare(base, head) -> TextEquality        equal canonical forms, or how they differ
    equivalent(ir, base, head) -> TextEquality equal bytes or equal canonical forms
    lines(ir, text) -> canonical lines         the same one after another, for large texts
    instruction_facts(ir, text) -> counts      instructions by class

These are functions without effects, in one module for each IR. What reads LLVM IR with LLVM runs elsewhere
(`llvm_reader`) and is handed in. Each module states its rules, each with its reason and source.
"""

from __future__ import annotations

from irdiff.normalize.canonical import CanonicalText, Printed, Reprint, TextEquality
from irdiff.normalize.equality import canonicalize, compare, equivalent, lines
from irdiff.normalize.histogram import instruction_facts

NORMALIZER_VERSION = "9"
"""Raised with any change of any rule: runs of different versions are not merged, and not known to each other.
What is kept in the store is kept by the content of these modules."""

__all__ = [
    "NORMALIZER_VERSION",
    "CanonicalText",
    "Printed",
    "Reprint",
    "TextEquality",
    "canonicalize",
    "compare",
    "equivalent",
    "instruction_facts",
    "lines",
]
