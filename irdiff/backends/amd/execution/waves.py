"""Launches on AMD's GPUs: waves of 64 lanes that execute what the assembly spells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from irdiff.backends.amd.execution import code, kernel_arguments, programs, recording
from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import LANES
from irdiff.counted_work import Work
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.execution.counts import Counts
from irdiff.execution.grid import WholeGrid
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.runs import Executed, Place
from irdiff.ir.amdgcn import machine_code
from irdiff.ir.amdgcn.machine_code import MachineKernel

_COUNTED = frozenset({"gfx942", "gfx950"})
"""Architectures of the CDNA 3 and 4 guides. Others differ in their waits, their waves and their encodings."""


@dataclass(frozen=True)
class Waves:
    kernel: MachineKernel
    facts: LaunchFacts
    lanes = LANES
    steps_each = 0.2
    """Every instruction is looked at, and most of them make nothing but an unknown value."""
    refusal = ""

    @cached_property
    def code(self) -> tuple[WaveInstruction, ...]:
        return code.instructions(self.kernel)

    def execute(
        self, places: Sequence[Place], patterns: AccessPatterns, most_steps: tuple[int, int]
    ) -> Executed:
        return programs.execute(
            self.code, self.kernel.settings, self.facts, places, patterns, most_steps=most_steps
        )

    def work(self, counted_grid: WholeGrid, notes: tuple[str, ...], _shapes: Mapping[int, str]) -> Work:
        return recording.work(
            Counts(self.code, self.lanes, *counted_grid.total), self.facts, counted_grid.executed, notes
        )


class WaveReader:
    """Reads the assembly that a code object was made of."""

    refusal = ""
    reads_assembly = True

    def is_counted(self, arch: int | str) -> bool:
        return arch in _COUNTED

    def prepare(self, launches: Sequence[CompiledLaunch]) -> None:
        pass

    def read(self, compiled: CompiledLaunch) -> Waves:
        kernel = machine_code.read(compiled.assembly, compiled.kernel)
        return Waves(kernel, kernel_arguments.facts_of(compiled.plan(LANES), kernel.hidden))
