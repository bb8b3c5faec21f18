"""Runs some programs of a grid: how many steps they took, and what each instruction cost in each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from irdiff.execution.control_flow import ControlFlow, TooManySteps
from irdiff.execution.memory_costs import CostTally

Place = tuple[int, int, int]
"""The coordinates of a program in the grid."""


@dataclass(frozen=True, kw_only=True)
class Executed:
    tally: CostTally
    open_loops: tuple[str, ...]
    """Loops that data decide, as sentences."""
    steps: int
    ended: bool
    """True if all programs ended within the allowed steps."""


def executed_by(executor: ControlFlow[Any], most_steps: tuple[int, int]) -> Executed:
    """Raises NotCounted, EndlessLoop. `most_steps`: as of `execute`."""
    executor.most_steps, executor.most_steps_alike = most_steps
    try:
        executor.run()
        ended = True
    except TooManySteps:
        ended = False
    return Executed(
        tally=executor.tally,
        open_loops=tuple(executor.open_loops.values()),
        steps=executor.steps,
        ended=ended,
    )
