"""Launches on NVIDIA's GPUs: warps that execute SASS."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from irdiff.backends.nvidia import encodings
from irdiff.backends.nvidia.disassembler import Disassembler
from irdiff.backends.nvidia.execution import constant_bank, deciding, programs, recording
from irdiff.backends.nvidia.execution.accesses import LANES_OF_A_WARP
from irdiff.backends.nvidia.execution.constant_bank import BANK_LAYOUTS
from irdiff.backends.nvidia.execution.deciding import Deciding
from irdiff.backends.nvidia.execution.integer import COMPUTED
from irdiff.counted_work import Work
from irdiff.errors import IrdiffError
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.execution.grid import WholeGrid
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.runs import Executed, Place
from irdiff.ir.sass import classes
from irdiff.ir.sass.destinations import NO_RESULT
from irdiff.ir.sass.instructions import SassFunction, SassInstruction


@dataclass(frozen=True)
class Warps:
    function: SassFunction
    facts: LaunchFacts
    lanes = LANES_OF_A_WARP
    steps_each = 1.0

    @property
    def code(self) -> Sequence[SassInstruction]:
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

    def work(self, counted_grid: WholeGrid, notes: tuple[str, ...], shapes: Mapping[int, str]) -> Work:
        return recording.work(self.function, self.facts, counted_grid, notes, shapes)


def _is_known(opcode: str) -> bool:
    return classes.has_class(opcode) or opcode in COMPUTED or opcode in NO_RESULT or opcode in classes.OTHERS


class WarpReader:
    """Reads cubins by the nvdisasm of an installed toolchain."""

    reads_assembly = False

    def __init__(self, nvdisasm: Path | None) -> None:
        self.refusal = "" if nvdisasm else "no installed toolchain has nvdisasm"
        self._disassembler = Disassembler(nvdisasm or Path())

    def is_counted(self, arch: int | str) -> bool:
        return arch in BANK_LAYOUTS

    def prepare(self, launches: Sequence[CompiledLaunch]) -> None:
        codes: dict[int, list[bytes]] = defaultdict(list)
        for launch in launches:
            try:
                codes[int(launch.arch)].append(encodings.code_of(launch.binary, launch.kernel))
            except IrdiffError:  # reading it says so
                continue
        for arch, of_arch in codes.items():
            self._disassembler.prepare(arch, of_arch)

    def read(self, compiled: CompiledLaunch) -> Warps:
        arch = int(compiled.arch)
        function = self._disassembler.read(arch, compiled.binary, compiled.kernel)
        return Warps(function, constant_bank.facts_of(compiled.plan(LANES_OF_A_WARP), compiled.binary, arch))
