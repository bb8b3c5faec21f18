"""How Triton makes machine code of LLVM IR for a backend: how it calls LLVM, and the assembler after it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from irdiff.model import Launch, Target


@dataclass(frozen=True, kw_only=True)
class LlvmCall:
    """A request to LLVM: everything that its result depends on, apart from the text."""

    backend: str
    """Name of the backend that the code is for."""
    triple: str
    processor: str
    fuses: bool
    features: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    """Switches of LLVM's, without dashes."""
    newest_isa: int | None = None
    """The newest version of the assembly that may be written, as 86 for 8.6."""
    isa_feature: str = ""
    """How the feature of LLVM's begins that says this."""
    header: tuple[str, str] | None = None
    """The replacement that Triton writes over version and processor in the header of the assembly."""


class Lowered(NamedTuple):
    """A text under an older version of its language."""

    text: bytes
    asked: str
    """The version of its header, as in `9.0`."""
    now: str


class AssemblerProgram(Protocol):
    """A program of the backend's own that makes machine code of its assembly."""

    NAME: str
    BACKEND: str
    VERSION: re.Pattern[str]
    """The version, in what it prints for `--version`."""
    ERROR: re.Pattern[str]
    """Its message about a text that it refuses."""
    UNKNOWN_PROCESSOR: str
    """Words that it prints for a processor which it does not know."""
    NEWER_THAN_ALL: str
    """A text under a version of the language that no program knows yet."""
    NEWER_THAN_ALL_FLAGS: tuple[str, ...]

    def newest_isa(self, printed: bytes) -> int | None:
        """By what it prints of `NEWER_THAN_ALL`, the newest version that it knows, as 86 for 8.6."""

    def flags(self, launch: Launch, version: str, assembly: str) -> tuple[str, ...]:
        """As Triton `version` calls it for a launch. Raises ValueError where the text has no header."""

    def lowered(self, text: bytes, newest: int | None) -> Lowered | None:
        """A text whose header asks for a newer version than that; None for another text."""


class CodeGeneration(Protocol):
    """The tools of a backend below Triton. LLVM's own assembler and linker are the same for all."""

    LLVM_NAME: str
    """Its name in the list of LLVM's targets."""
    ASSEMBLER: AssemblerProgram | None
    """None where LLVM assembles and links."""
    PROBE: LlvmCall
    """The options that test whether an LLVM reads a text."""
    ISAS: Sequence[int]
    """Versions of its assembly that an LLVM may write, the newest first; empty where there is one."""
    SWITCHES: tuple[str, ...]
    """Options of LLVM that Triton may set."""

    def llvm_call(self, launch: Launch, target: Target, version: str, assembly: str | None) -> LlvmCall:
        """As Triton `version` calls LLVM for a launch, whose assembly is given where an assembler follows.

        Raises ValueError where that has no header.
        """

    def finished(self, assembly: str, call: LlvmCall) -> str:
        """LLVM's assembly with Triton's own last changes."""

    def unknown_intrinsics(self, assembly: str) -> list[str]:
        """Names that assembly calls and LLVM does not know: it is not valid."""


def fuses(launch: Launch) -> bool:
    """True if multiplications and additions become one operation."""
    return launch.options.get("enable_fp_fusion", "True") == "True"


def release(version: str) -> tuple[int, int]:
    """Returns (major, minor) of a version of Triton, and (99, 0) if it has none."""
    match = re.match(r"(\d+)\.(\d+)", version)
    return (int(match[1]), int(match[2])) if match else (99, 0)
