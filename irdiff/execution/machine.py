"""The interface of every machine whose code can be executed. `backends/machines.py` lists them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from irdiff.counted_work import Work
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.execution.grid import WholeGrid
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.runs import Executed, Place
from irdiff.ir.blocks import CodeInstruction


class RunnableLaunch(Protocol):
    """One kernel with its launch, ready to be executed."""

    @property
    def code(self) -> Sequence[CodeInstruction]: ...
    @property
    def facts(self) -> LaunchFacts: ...
    @property
    def lanes(self) -> int:
        """Lanes of a warp."""

    @property
    def steps_each(self) -> float:
        """How many of the steps that a launch may take one instruction uses up."""

    @property
    def refusal(self) -> str:
        """Why it cannot be executed; empty where it can."""

    def execute(
        self, places: Sequence[Place], patterns: AccessPatterns, most_steps: tuple[int, int]
    ) -> Executed:
        """`most_steps`: where programs differ, and where they do the same. Raises NotCounted, EndlessLoop."""

    def work(self, counted_grid: WholeGrid, notes: tuple[str, ...], shapes: Mapping[int, str]) -> Work:
        """`shapes`: by place, those of matrix instructions whose registers name them."""


class CodeReader(Protocol):
    """Reads the machine code of one backend's launches."""

    @property
    def refusal(self) -> str:
        """Why it can read none; empty where it can."""

    @property
    def reads_assembly(self) -> bool:
        """True if it reads the assembly, and not the binary."""

    def is_counted(self, arch: int | str) -> bool:
        """True if machine code of this architecture can be executed here."""

    def prepare(self, launches: Sequence[CompiledLaunch]) -> None:
        """Does for many launches at once what each would take long for."""

    def read(self, compiled: CompiledLaunch) -> RunnableLaunch:
        """Raises IrdiffError for code that is not there, or cannot be read."""
