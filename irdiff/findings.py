"""What was seen of a case next to its verdict: a closed list of kinds. In JSON a finding is `KIND:DETAIL`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FindingKind(StrEnum):
    """Each with what its detail is, where it has one."""

    # of texts
    INFERRED_ATTRIBUTES_ONLY = "inferred-attributes-only"
    REORDERED_ONLY = "reordered-only"
    SAME_UP_TO_REGISTERS = "same-up-to-registers"
    """Of SASS."""
    EQUAL_AS_LLVM_PRINTS = "equal-as-llvm-prints"
    OPAQUE_INTRINSIC = "opaque-intrinsic"
    """Its name."""
    LEXICAL_LLIR = "lexical-llir"
    """Why LLVM did not read both sides, as in `normalize.Printed`."""
    GENERIC_NORMALIZER = "generic-normalizer"
    """The stage."""
    COMPARED_AS_BYTES = "compared-as-bytes"
    """The stage, whose artifacts are no text."""
    NOT_NORMALIZED = "not-normalized"
    """The stage and why."""
    # of machine code
    MACHINE_CODE_AS_TEXT = "machine-code-as-text"
    """`no-linker` or `no-binary`."""
    ASSEMBLER_SETS_INTERSECT = "assembler-sets-intersect"
    ASSEMBLER_ALLOCATED_OTHERWISE = "assembler-allocated-otherwise"
    SAME_INSTRUCTIONS = "same-instructions"
    """In another order, or with other registers; in runs of earlier versions."""
    NOT_COMPARED = "not-compared"
    """What each side ends in."""
    NOT_COMPILED = "not-compiled"
    """`same-input`: equal launches under equal toolchains."""
    # of the launch
    SPECIALIZATION_DIFFERS = "specialization-differs"
    """Parts of the launch."""
    LAUNCH_DIFFERS = "launch-differs"
    """Entries of the compiler's metadata."""


@dataclass(frozen=True)
class Finding:
    kind: FindingKind
    detail: str = ""
    """Several are separated by commas."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.detail}" if self.detail else str(self.kind)

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
