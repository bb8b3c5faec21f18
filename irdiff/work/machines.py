"""The two machines whose code can be executed: warps of NVIDIA's SASS, waves of AMD's assembly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from irdiff.counted_work import Work
from irdiff.ir.amdgcn.machine_code import MachineKernel
from irdiff.work import amd, classes, deciding, programs, recording
from irdiff.work.amd.code import WaveInstruction
from irdiff.work.deciding import Deciding
from irdiff.work.destinations import NO_RESULT
from irdiff.work.flow import CodeInstruction
from irdiff.work.grid import WholeGrid
from irdiff.work.integer import COMPUTED
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.patterns import AccessPatterns
from irdiff.work.programs import Executed, Place
from irdiff.work.recording import Counts
from irdiff.work.sass import SassFunction


class RunnableLaunch(Protocol):
    """One kernel with its launch, ready to be executed."""

    @property
    def code(self) -> Sequence[CodeInstruction]: ...
    @property
    def facts(self) -> LaunchFacts: ...
    @property
    def lanes(self) -> int:
        """Of a warp."""

    @property
    def steps_each(self) -> float:
        """What an instruction counts of the steps that a launch may take."""

    @property
    def refusal(self) -> str:
        """Why it cannot be executed; empty where it can."""

    def execute(
        self, places: Sequence[Place], patterns: AccessPatterns, most_steps: tuple[int, int]
    ) -> Executed:
        """`most_steps`: where programs differ, and where they do the same. Raises NotCounted, EndlessLoop."""

    def work(self, found: WholeGrid, notes: tuple[str, ...], shapes: Mapping[int, str]) -> Work:
        """`shapes`: by place, those of matrix instructions whose registers name them."""


@dataclass(frozen=True)
class Warps:
    function: SassFunction
    facts: LaunchFacts
    lanes = 32
    steps_each = 1.0

    @property
    def code(self) -> Sequence[CodeInstruction]:
        return self.function.instructions

    @property
    def refusal(self) -> str:
        unknown = sorted({ins.opcode for ins in self.function.instructions if not _is_known(ins.opcode)})
        return f"no table says what {', '.join(unknown)} does" if unknown else ""

    @cached_property
    def _deciding(self) -> Deciding:
        return deciding.deciding(self.function.instructions)

    def execute(
        self, places: Sequence[Place], patterns: AccessPatterns, most_steps: tuple[int, int]
    ) -> Executed:
        return programs.execute(
            self.function, self._deciding, self.facts, places, patterns, most_steps=most_steps
        )

    def work(self, found: WholeGrid, notes: tuple[str, ...], shapes: Mapping[int, str]) -> Work:
        return recording.work(self.function, self.facts, found, notes, shapes)


def _is_known(opcode: str) -> bool:
    return classes.has_class(opcode) or opcode in COMPUTED or opcode in NO_RESULT or opcode in classes.OTHERS


@dataclass(frozen=True)
class Waves:
    kernel: MachineKernel
    facts: LaunchFacts
    lanes = amd.LANES
    steps_each = 0.2
    """Every instruction is looked at, and most of them make nothing but an unknown value."""
    refusal = ""

    @cached_property
    def code(self) -> tuple[WaveInstruction, ...]:
        return amd.instructions(self.kernel)

    def execute(
        self, places: Sequence[Place], patterns: AccessPatterns, most_steps: tuple[int, int]
    ) -> Executed:
        return amd.execute(
            self.code, self.kernel.settings, self.facts, places, patterns, most_steps=most_steps
        )

    def work(self, found: WholeGrid, notes: tuple[str, ...], _shapes: Mapping[int, str]) -> Work:
        return amd.work(Counts(self.code, self.lanes, *found.total), self.facts, found.executed, notes)
