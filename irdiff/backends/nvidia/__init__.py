"""NVIDIA's GPUs: LLVM makes PTX of LLVM IR, and `ptxas` makes a `cubin` of that.

The machine code has no text of its own: its status stands under `sass`, and nvdisasm shows it on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import CodeGeneration
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.nvidia import code_generation, operations
from irdiff.backends.nvidia.cubin import entry, read
from irdiff.backends.nvidia.occupancy import occupancy
from irdiff.backends.statistic import OF_TEXT, Direction, Resource, Statistic
from irdiff.ir import Ir, ptx, sass
from irdiff.model import CodeLine, Component, Fact
from irdiff.stages import Stage

__all__ = [
    "ASSEMBLY",
    "BINARY",
    "BUILD_VARIABLES",
    "CODE_GENERATION",
    "CUBIN",
    "DISTRIBUTIONS",
    "FOLDER",
    "HAS_CLUSTERS",
    "HAS_TENSOR_MAPS",
    "IRS",
    "MACHINE_OPERATIONS",
    "METADATA",
    "NAME",
    "NEUTRAL",
    "SOURCES",
    "STAGES",
    "STATISTICS",
    "THREADS",
    "WARP_SIZE",
    "assembly_facts",
    "entry",
    "faults",
    "log_facts",
    "occupancy",
    "read",
]

NAME = "cuda"
FOLDER = "nvidia"
ASSEMBLY = "ptx"
MACHINE_CODE = "sass"
CUBIN = "cubin"
STAGES: tuple[str, ...] = (Stage.LAUNCH, Stage.TTIR, Stage.TTGIR, Stage.LLIR, ASSEMBLY, MACHINE_CODE)
IRS: Mapping[str, Ir] = {ASSEMBLY: ptx, MACHINE_CODE: sass}
BINARY: BinaryKind | None = BinaryKind(
    artifact=CUBIN, status=MACHINE_CODE, assembly=ASSEMBLY, made_by=Component.PTXAS
)
METADATA: Mapping[str, str] = {"tmem_size": "tmem_columns"}
NEUTRAL = frozenset({"clc", "enable_reflect_ftz", "maxnreg", "ptx_options", "ptx_version", "sched4reg"})
DISTRIBUTIONS: tuple[str, ...] = ()
SOURCES: tuple[str, ...] = (".cu", ".cuh")
BUILD_VARIABLES: tuple[str, ...] = (r"CUDA(_HOME|_PATH|TOOLKIT_\w+)?",)
CODE_GENERATION: CodeGeneration | None = code_generation
MACHINE_OPERATIONS: MachineOperations | None = operations
WARP_SIZE: int | None = 32
THREADS: re.Pattern[str] | None = re.compile(r"\.(?:reqntid|maxntid) (\d+)")
HAS_CLUSTERS = True
HAS_TENSOR_MAPS = True

_LOG, _CUBIN, _METADATA = "ptxas -v", "attributes of the cubin", "Triton's metadata"
_COUNTED = "counted over the whole launch (irdiff/work)"
_LIMITS = "resources and the limits of the target"
_OF = Resource
# fmt: off
STATISTICS: tuple[Statistic, ...] = (
    Statistic(_OF.SPILLS, "spills", "B", ("spill_store_bytes", "spill_load_bytes"), _LOG,
              should_be_none=True),
    Statistic(_OF.STACK, "stack", "B", ("stack_bytes",), _LOG, should_be_none=True),
    Statistic(_OF.OCCUPANCY, "occupancy", "warps an SM", ("warps_per_multiprocessor",), _LIMITS,
              denied=Direction.DOWN),
    Statistic(_OF.BLOCKS, "blocks an SM", "", ("blocks_per_multiprocessor",), _LIMITS, denied=Direction.DOWN),
    Statistic(_OF.SHARED_MEMORY, "shared memory", "B", ("shared_bytes",), _METADATA),
    Statistic(_OF.REGISTERS, "registers", "", ("registers",), _CUBIN),
    Statistic(_OF.TENSOR_MEMORY, "TMEM columns", "", ("tmem_columns",), _METADATA),
    Statistic(_OF.BARRIERS, "named barriers", "", ("barriers",), _CUBIN),
    Statistic(_OF.WORK, "instructions executed", "", ("executed_instructions",), _COUNTED),
    Statistic(_OF.WORK, "global sectors", "of 32 B", ("global_sectors",), _COUNTED),
    Statistic(_OF.WORK, "global requests", "", ("global_requests",), _COUNTED),
    Statistic(_OF.WORK, "shared wavefronts", "", ("shared_wavefronts",), _COUNTED),
    Statistic(_OF.WORK, "spill traffic", "B", ("spilled_bytes",), _COUNTED),
    Statistic(_OF.WORK, "bulk copies", "B", ("bulk_copied_bytes",), _COUNTED),
    Statistic(_OF.WORK, "barriers executed", "", ("executed_barriers",), _COUNTED),
    Statistic(_OF.WORK, "atomics executed", "", ("executed_atomics",), _COUNTED),
    Statistic(_OF.WORK, "matrix operations", "", ("matrix_operations",), _COUNTED),
    Statistic(_OF.INSTRUCTIONS, "PTX instructions", "", ("ptx.total",), OF_TEXT),
    Statistic(_OF.CODE, "code size", "B", ("code_bytes",), "sections that execute"),
)
# fmt: on
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")


def assembly_facts(text: str) -> dict[str, Fact]:
    """None: ptxas allocates registers."""
    return {}


def faults(assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    """None: ptxas allocates registers and waits for results."""
    return iter(())


def log_facts(log: str) -> dict[str, Fact]:
    """The spills that `ptxas -v` prints for each function, added up."""
    spills = _SPILLS.findall(log)
    if not spills:
        return {}
    stack, stores, loads = (
        sum(int(kernel_spills[column]) for kernel_spills in spills) for column in range(3)
    )
    return {"stack_bytes": stack, "spill_store_bytes": stores, "spill_load_bytes": loads}
