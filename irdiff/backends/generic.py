"""A backend that irdiff does not know: its texts are compared by the generic rules, its binaries as bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import CodeGeneration
from irdiff.backends.kernel_entry import EntryError, KernelEntry
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.statistic import Statistic
from irdiff.errors import NormalizeError
from irdiff.ir import Ir
from irdiff.model import CodeLine, Fact

FOLDER = ""
STAGES: tuple[str, ...] = ()
IRS: Mapping[str, Ir] = {}
BINARY: BinaryKind | None = None
STATISTICS: tuple[Statistic, ...] = ()
METADATA: Mapping[str, str] = {}
NEUTRAL: frozenset[str] = frozenset()
DISTRIBUTIONS: tuple[str, ...] = ()
SOURCES: tuple[str, ...] = ()
BUILD_VARIABLES: tuple[str, ...] = ()
CODE_GENERATION: CodeGeneration | None = None
MACHINE_OPERATIONS: MachineOperations | None = None
WARP_SIZE: int | None = None
THREADS: re.Pattern[str] | None = None
HAS_CLUSTERS = False
HAS_TENSOR_MAPS = False


def read(binary: bytes) -> tuple[dict[str, bytes], dict[str, Fact]]:
    raise NormalizeError("no backend that irdiff knows makes such binaries")


def entry(binary: bytes, name: str) -> KernelEntry:
    raise EntryError(f"{name}: no backend that irdiff knows makes such binaries")


def assembly_facts(text: str) -> dict[str, Fact]:
    return {}


def faults(assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    return iter(())


def log_facts(log: str) -> dict[str, Fact]:
    return {}


def occupancy(
    kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
) -> dict[str, Fact]:
    return {}
