"""Findings: results for a case besides its verdict, of a closed list of kinds. In JSON a finding is
`KIND:DETAIL`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FindingKind(StrEnum):
    """The text below a kind says what its detail is."""

    # of texts
    INFERRED_ATTRIBUTES_ONLY = "inferred-attributes-only"
    SAME_UP_TO_REGISTERS = "same-up-to-registers"
    """No detail. Only for SASS."""
    EQUAL_AS_LLVM_PRINTS = "equal-as-llvm-prints"
    OPAQUE_INTRINSIC = "opaque-intrinsic"
    """The name of the intrinsic."""
    LEXICAL_LLIR = "lexical-llir"
    """Why LLVM did not read both sides: a reason of `ir.canonical.Printed`."""
    GENERIC_NORMALIZER = "generic-normalizer"
    """The stage."""
    COMPARED_AS_BYTES = "compared-as-bytes"
    """The stage. Its artifacts are no text."""
    NOT_NORMALIZED = "not-normalized"
    """The stage, and why."""
    # of machine code
    MACHINE_CODE_AS_TEXT = "machine-code-as-text"
    """`no-linker` or `no-binary`."""
    ASSEMBLER_SETS_INTERSECT = "assembler-sets-intersect"
    ASSEMBLER_ALLOCATED_OTHERWISE = "assembler-allocated-otherwise"
    NOT_COMPARED = "not-compared"
    """The last stage of each side."""
    NOT_COMPILED = "not-compiled"
    """`same-input`: equal launches under equal toolchains."""
    # of the launch
    SPECIALIZATION_DIFFERS = "specialization-differs"
    """The parts of the launch that differ."""
    LAUNCH_DIFFERS = "launch-differs"
    """The entries of the compiler's metadata that differ."""
    LAUNCH_NOT_COMPARED = "launch-not-compared"
    """A clause that says what irdiff cannot read of the launch."""
    CALLED_IN_ANOTHER_ORDER = "called-in-another-order"
    """No detail: among the calls of its label."""


NOT_COMPARED = frozenset({FindingKind.NOT_COMPARED, FindingKind.LAUNCH_NOT_COMPARED})
"""A case with one of these findings counts as changed, because a part of it was not compared."""

_FINDINGS = {
    FindingKind.INFERRED_ATTRIBUTES_ONLY: "LLVM IR differs only in attributes that LLVM infers",
    FindingKind.SAME_UP_TO_REGISTERS: "the same instructions up to register assignment",
    FindingKind.EQUAL_AS_LLVM_PRINTS: "LLVM IR is spelled differently; one LLVM prints both sides alike",
    FindingKind.ASSEMBLER_SETS_INTERSECT: "assembled several times, both sides give the same machine code",
    FindingKind.ASSEMBLER_ALLOCATED_OTHERWISE: "same text, the assembler allocated differently",
    FindingKind.OPAQUE_INTRINSIC: "the LLVM here knows another `{}`: calls were compared as they are spelled",
    FindingKind.CALLED_IN_ANOTHER_ORDER: "its calls come in another order among those of its label",
    FindingKind.LAUNCH_NOT_COMPARED: "the launch was not compared, and counts as changed: {}",
}
_LEXICAL = {
    "unreadable": "the LLVM here cannot read both sides",
    "too-long": "too long to be read by LLVM",
    "died": "LLVM died reading it",
    "timeout": "LLVM took too long to read it",
    "unavailable": "no LLVM could be started",
}
_PASSED = {
    "shared": "size of shared memory",
    "num_warps": "number of warps",
    "num_ctas": "number of blocks a cluster",
    "cluster_dims": "shape of a cluster",
    "tmem_size": "size of tensor memory",
    "global_scratch_size": "size of scratch memory",
    "global_scratch_align": "alignment of scratch memory",
    "profile_scratch_size": "size of the profiler's memory",
    "profile_scratch_align": "alignment of the profiler's memory",
    "tensordesc_meta": "description of tensor descriptors",
    "warp_size": "number of threads a warp",
    "packed": "tuple of metadata for Triton's launcher",
    "symbol": "entry point",
}
"""Entries of the launch metadata that have a name in plain words."""
_AS_TEXT = {
    "no-linker": "as its assembly: no linker made a binary of it",
    "no-binary": "as the text of its last stage: it has no binary",
}


def without_packed(names: Sequence[str]) -> Sequence[str]:
    """Leaves out the tuple of the other entries (`packed`), unless it is the only one that differs."""
    return [name for name in names if name != "packed"] or names


def passed(names: Iterable[str]) -> str:
    """`size of shared memory and another number of warps`: entries of the launch metadata, in words."""
    return " and another ".join(_PASSED.get(name, f"`{name}`") for name in names)


@dataclass(frozen=True)
class Finding:
    kind: FindingKind
    detail: str = ""
    """Several are separated by commas."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else str(self.kind)

    @property
    def words(self) -> str:
        """For readers; as it stands where it says what it means."""
        match self.kind:
            case FindingKind.NOT_COMPARED:
                base, head = self.details
                return (
                    f"the code was not compared, and counts as changed: base ends in {base}, head in {head}"
                )
            case FindingKind.LAUNCH_DIFFERS:
                return f"the launch passes another {passed(without_packed(self.details))}"
            case FindingKind.LEXICAL_LLIR:
                return f"LLVM IR was compared as it is spelled: {_LEXICAL.get(self.detail, self.detail)}"
            case FindingKind.MACHINE_CODE_AS_TEXT:
                return f"the code was compared {_AS_TEXT.get(self.detail, self.detail)}"
            case _:
                words = _FINDINGS.get(self.kind)
                return words.format(self.detail) if words else str(self)

    @property
    def details(self) -> tuple[str, ...]:
        return tuple(self.detail.split(","))

    @classmethod
    def parse(cls, text: str) -> Finding:
        """Raises ValueError for a kind that is not known."""
        kind, _, detail = text.partition(":")
        return cls(FindingKind(kind), detail)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """A string, in JSON and in records."""
        from pydantic_core import core_schema

        as_text = core_schema.no_info_after_validator_function(cls.parse, core_schema.str_schema())
        return core_schema.json_or_python_schema(
            json_schema=as_text,
            python_schema=core_schema.union_schema([core_schema.is_instance_schema(cls), as_text]),
            serialization=core_schema.to_string_ser_schema(),
        )
