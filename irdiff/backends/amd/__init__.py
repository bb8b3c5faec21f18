"""AMD's GPUs: LLVM makes assembly of LLVM IR, and its assembler and linker make a code object of that.

The machine code is reported as `amdgcn`: a code object (`hsaco`) holds what the assembly says.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from irdiff.backends.amd import code_generation
from irdiff.backends.amd.assembly_metadata import assembly_facts
from irdiff.backends.amd.hsaco import entry, read
from irdiff.backends.amd.occupancy import occupancy
from irdiff.backends.amd.preloaded_arguments import misplaced_arguments
from irdiff.backends.amd.reserved_registers import overused_registers
from irdiff.backends.binary_kind import BinaryKind
from irdiff.backends.code_generation import CodeGeneration
from irdiff.backends.machine_operations import MachineOperations
from irdiff.backends.statistic import OF_TEXT, Direction, Resource, Statistic
from irdiff.ir import Ir, amdgcn
from irdiff.ir.amdgcn import wait_states
from irdiff.model import CodeLine, Component, Fact
from irdiff.stages import Stage
from irdiff.words import counted

__all__ = [
    "ASSEMBLY",
    "BINARY",
    "BUILD_VARIABLES",
    "CODE_GENERATION",
    "DISTRIBUTIONS",
    "FOLDER",
    "HAS_CLUSTERS",
    "HAS_TENSOR_MAPS",
    "HSACO",
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

NAME = "hip"
FOLDER = "amd"
ASSEMBLY = "amdgcn"
HSACO = "hsaco"
STAGES: tuple[str, ...] = (Stage.LAUNCH, Stage.TTIR, Stage.TTGIR, Stage.LLIR, ASSEMBLY)
IRS: Mapping[str, Ir] = {ASSEMBLY: amdgcn}
BINARY: BinaryKind | None = BinaryKind(
    artifact=HSACO, status=ASSEMBLY, assembly=ASSEMBLY, made_by=Component.ASSEMBLER
)
METADATA: Mapping[str, str] = {}
NEUTRAL = frozenset({
    "allow_flush_denorm", "instruction_sched_variant", "kpack", "matrix_instr_nonkdim", "schedule_hint",
    "waves_per_eu", "wgp_cu_mode",
})  # fmt: skip
DISTRIBUTIONS: tuple[str, ...] = ("pytorch-triton-rocm", "triton-rocm")
SOURCES: tuple[str, ...] = (".hip",)
BUILD_VARIABLES: tuple[str, ...] = ("ROCM_PATH",)
CODE_GENERATION: CodeGeneration | None = code_generation
MACHINE_OPERATIONS: MachineOperations | None = None
WARP_SIZE: int | None = None
THREADS: re.Pattern[str] | None = re.compile(r"\.max_flat_workgroup_size: +(\d+)")
HAS_CLUSTERS = False
HAS_TENSOR_MAPS = False

_COUNTED = "counted over the whole launch (irdiff/work); no AMD GPU has confirmed it"
_NOTES, _METADATA = "notes of the code object", "Triton's metadata"
_LIMITS = "resources and the limits of the target"
_OF = Resource
# fmt: off
STATISTICS: tuple[Statistic, ...] = (
    Statistic(_OF.SPILLS, "spills", "registers", ("vgpr_spills",), _NOTES, should_be_none=True),
    Statistic(_OF.SPILLS, "scratch memory", "B", ("scratch_bytes",), _NOTES, should_be_none=True),
    Statistic(_OF.OCCUPANCY, "occupancy", "waves a SIMD", ("waves_per_simd",), _LIMITS,
              denied=Direction.DOWN),
    Statistic(_OF.BLOCKS, "work-groups a compute unit", "", ("workgroups_per_compute_unit",),
              _LIMITS, denied=Direction.DOWN),
    Statistic(_OF.SHARED_MEMORY, "shared memory", "B", ("shared_bytes", "lds_bytes"), _METADATA),
    Statistic(_OF.REGISTERS, "VGPRs", "", ("vgprs",), _NOTES),
    Statistic(_OF.REGISTERS, "AGPRs", "", ("agprs",), _NOTES),
    Statistic(_OF.REGISTERS, "SGPRs", "", ("sgprs",), _NOTES),
    Statistic(_OF.REGISTERS, "SGPRs in lanes of VGPRs", "", ("sgpr_spills",), _NOTES),
    Statistic(_OF.WORK, "instructions executed", "", ("executed_instructions",), _COUNTED),
    Statistic(_OF.WORK, "global lines", "of 128 B", ("global_lines",), _COUNTED),
    Statistic(_OF.WORK, "global requests", "", ("global_requests",), _COUNTED),
    Statistic(_OF.WORK, "spill traffic", "B", ("spilled_bytes",), _COUNTED),
    Statistic(_OF.WORK, "barriers executed", "", ("executed_barriers",), _COUNTED),
    Statistic(_OF.WORK, "atomics executed", "", ("executed_atomics",), _COUNTED),
    Statistic(_OF.WORK, "matrix operations", "", ("matrix_operations",), _COUNTED),
    Statistic(_OF.INSTRUCTIONS, "AMDGCN instructions", "", ("amdgcn.total",), OF_TEXT),
    Statistic(_OF.CODE, "code size", "B", ("code_bytes",), "sections that execute"),
)
# fmt: on


def faults(assembly: Sequence[str]) -> Iterator[tuple[str, tuple[CodeLine, ...]]]:
    yield from overused_registers(assembly)
    yield from misplaced_arguments(assembly)
    for each in wait_states.early(assembly):
        what = f"`{each.reader.opcode}` reads what `{each.writer.opcode}` writes"
        lines = (
            CodeLine(number=number, text=line.text[:200])
            for number, line in zip(each.numbers, (each.writer, each.reader), strict=True)
        )
        yield f"{what} after {counted(each.states, 'wait state')}, and needs {each.needed}", tuple(lines)


def log_facts(log: str) -> dict[str, Fact]:
    return {}
