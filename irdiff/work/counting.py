"""Counts what one launch executes: the whole grid, from its machine code and its launch.

What cannot be counted ends in `NotCountedWork`, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from irdiff.backends.machines import Readers
from irdiff.counted_work import NotCountedWork, Work
from irdiff.errors import IrdiffError
from irdiff.execution import grid
from irdiff.execution.compiled_launch import CompiledLaunch
from irdiff.execution.control_flow import NotCounted
from irdiff.execution.grid import Place
from irdiff.execution.machine import RunnableLaunch
from irdiff.execution.memory_costs import COLUMNS
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.repeating import EndlessLoop
from irdiff.ir.blocks import CodeInstruction

_LANES = 16_384
"""Lanes that are executed at once."""
_MOST_LANES = 131_072
"""Lanes that are executed in all, where programs differ."""
_MOST_STEPS = 8_000
"""Instructions that are executed for a launch; a step of many lanes counts as several."""
_MOST_STEPS_AT_FIRST = 3_000
"""For the first programs, where they differ: all that have to follow would take several times as many."""
_TOO_LONG_AT_FIRST = (
    f"too long: its blocks do different work, and the first took over {_MOST_STEPS_AT_FIRST:,} steps"
)
_LANES_AS_A_STEP = 2048
"""Lanes that make a step take twice as long as that of one warp, as measured."""
_MOST_COUNTS = 8_000_000
"""Counts that are kept of programs that are executed at once: 64 MB."""
MAX_PROGRAMS = 1 << 40
"""Beyond, sums might not fit 64 bits."""


@dataclass(frozen=True, kw_only=True)
class CountedLaunch:
    """The work of a launch, and what each of its instructions did."""

    work: Work
    code: Sequence[CodeInstruction]
    sure: Mapping[str, Any]
    """`executed`, `requests`, `sectors`, `wavefronts`, … (`memory_costs.COLUMNS`) → an array of float64 with
    the count of each instruction, all warps of the grid together."""
    beyond: Mapping[str, Any]
    """The same arrays for what happens in addition if the data so decide."""


def count(compiled: CompiledLaunch, readers: Readers) -> CountedLaunch | NotCountedWork:
    """Everything that the launch executes."""
    try:
        return count_on(readers[compiled.backend].read(compiled))
    except IrdiffError as error:
        return NotCountedWork(reason=error.what)


def count_on(machine: RunnableLaunch) -> CountedLaunch | NotCountedWork:
    """Everything that the launch executes. Raises IrdiffError for code that cannot be read."""
    facts = machine.facts
    if facts.warps > 32 or math.prod(facts.grid) > MAX_PROGRAMS or min(facts.grid) < 1:
        return NotCountedWork(
            reason=f"a grid of {facts.grid} with {facts.warps} warps is more than is counted"
        )
    if machine.refusal:
        return NotCountedWork(reason=machine.refusal)
    runs = _Runs(machine)
    lanes, size = facts.warps * machine.lanes, len(COLUMNS) * 2 * len(machine.code)
    batch = max(1, min(_LANES // lanes, _MOST_COUNTS // size))
    most = max(16, min(_MOST_LANES // lanes, 4 * _MOST_COUNTS // size))
    try:
        found = grid.whole(runs.costs, facts.grid, batch=batch, most=most)
    except NotCounted as error:
        return NotCountedWork(reason=str(error))
    except IrdiffError as error:
        return NotCountedWork(reason=error.what)
    except EndlessLoop as error:
        return NotCountedWork(reason=f"the loop at {machine.code[error.head].shown_place} never ends")
    if found is None:
        programs = math.prod(facts.grid)
        return NotCountedWork(reason=f"too long: its {programs:,} programs differ, and show no pattern")
    sure, beyond = (dict(zip(COLUMNS, table, strict=True)) for table in found.total)
    work = machine.work(found, tuple(runs.notes), runs.shapes)
    return CountedLaunch(work=work, code=machine.code, sure=sure, beyond=beyond)


class _Runs:
    """Executes programs, within a budget for the whole launch."""

    def __init__(self, machine: RunnableLaunch) -> None:
        self._machine = machine
        self._patterns = AccessPatterns()
        self._spent = 0.0
        self.notes: dict[str, None] = {}
        self.shapes: dict[int, str] = {}

    def costs(self, places: Sequence[Place]) -> Any:
        """(sure and beyond, columns, instructions, programs). Raises NotCounted, EndlessLoop."""
        if self._spent > _MOST_STEPS_AT_FIRST:
            raise NotCounted(_TOO_LONG_AT_FIRST)
        machine = self._machine
        lanes = len(places) * machine.facts.warps * machine.lanes
        weight = (1 + lanes / _LANES_AS_A_STEP) * machine.steps_each
        most_steps = (
            int(((_MOST_STEPS if self._spent else _MOST_STEPS_AT_FIRST) - self._spent) / weight),
            int((_MOST_STEPS - self._spent) / weight),
        )
        executed = machine.execute(places, self._patterns, most_steps)
        self._spent += executed.steps * weight
        if not executed.ended and not executed.tally.is_alike and self._spent < _MOST_STEPS:
            raise NotCounted(_TOO_LONG_AT_FIRST)
        if not executed.ended:
            raise NotCounted(f"too long: more than {_MOST_STEPS:,} steps")
        self.notes.update(dict.fromkeys(executed.open_loops))
        for place, shape in executed.tally.shapes.items():
            self.shapes[place] = shape if self.shapes.get(place, shape) == shape else ""
        return executed.tally.both
