"""Everything that irdiff knows of single backends: one module or folder for each. Nothing else names one.

A backend that is not listed works too (`generic`): its stages come from its own `add_stages`, its texts are
compared by the generic rules, and its binaries as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from irdiff.backends import amd, generic, nvidia
from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import AssemblerProgram, CodeGeneration
from irdiff.backends.kernel_entry import KernelEntry
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.statistic import Statistic
from irdiff.ir import Ir
from irdiff.model import CodeLine, Fact


class Backend(Protocol):
    """One backend of Triton."""

    FOLDER: str
    """Its folder in Triton, `triton/backends/FOLDER`."""
    STAGES: tuple[str, ...]
    """Stages that get a status, in the order in which they are made."""
    IRS: Mapping[str, Ir]
    """The readers of its own stages' texts, those below LLVM IR."""
    BINARY: BinaryKind | None
    """The binary that a driver loads."""
    STATISTICS: tuple[Statistic, ...]
    """Statistics; those of one resource are in the order in which reports show them."""
    METADATA: Mapping[str, str]
    """The fact that an entry of Triton's metadata is, next to those of all backends."""
    NEUTRAL: frozenset[str]
    """Options of its compiler that neither its launcher nor its loader reads, in Triton's metadata. Source:
    `compiler.py` and `driver.py` of the backend, 3.2 to 3.9."""
    DISTRIBUTIONS: tuple[str, ...]
    """Packages with a Triton for it alone."""
    SOURCES: tuple[str, ...]
    """How the names of files with its own dialect of C++ end."""
    BUILD_VARIABLES: tuple[str, ...]
    """Regular expressions of the environment variables that a build of Triton reads for it."""
    CODE_GENERATION: CodeGeneration | None
    """How Triton makes its code; None where that is not known, so that no other tool can make it."""
    MACHINE_OPERATIONS: MachineOperations | None
    """How operations of its machine code are counted; None where the assembly says them."""
    WARP_SIZE: int | None
    """Threads of a warp, where all its GPUs have as many."""
    THREADS: re.Pattern[str] | None
    """Where the assembly says how many threads a block has."""
    HAS_CLUSTERS: bool
    """Blocks of a launch may form clusters."""
    HAS_TENSOR_MAPS: bool
    """The host makes tensor descriptors in a form of the driver."""

    def read(self, binary: bytes) -> tuple[dict[str, bytes], dict[str, Fact]]:
        """The executable contract of a binary by part, and facts; `machine_code` says what it may raise."""

    def entry(self, binary: bytes, name: str) -> KernelEntry:
        """The entry point of a kernel. Raises EntryError."""

    def assembly_facts(self, text: str) -> dict[str, Fact]:
        """Facts about the binary that its assembly states."""

    def faults(self, assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
        """Yields what is wrong with code by itself, and the lines: registers that its header does not
        reserve, results that are read too early.
        """

    def log_facts(self, log: str) -> dict[str, Fact]:
        """Facts in the log of its assembler."""

    def occupancy(
        self, kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
    ) -> dict[str, Fact]:
        """How many blocks of so many warps a multiprocessor holds at once, and what limits that.

        Empty where what the kernel takes is not known. Raises KeyError for a limit that no fact states.
        """


BACKENDS: Mapping[str, Backend] = {nvidia.NAME: nvidia, amd.NAME: amd}
"""By the name that targets and Triton have for it."""


def of(name: str) -> Backend:
    return BACKENDS.get(name, generic)


def of_assembly(stage: str) -> Backend:
    """Whose assembly a stage is; `generic` for another stage."""
    assembling = (each for each in BACKENDS.values() if each.BINARY and each.BINARY.assembly == stage)
    return next(assembling, generic)


_ALL = [each.CODE_GENERATION.ASSEMBLER for each in BACKENDS.values() if each.CODE_GENERATION]
ASSEMBLERS: Mapping[str, AssemblerProgram] = {each.NAME: each for each in _ALL if each}
"""By name, the programs that assemble for one backend alone."""


def assembler_of(name: str) -> AssemblerProgram | None:
    """The assembler of a backend; None if LLVM assembles, or if no assembler is known."""
    return next((each for each in ASSEMBLERS.values() if name == each.BACKEND), None)
