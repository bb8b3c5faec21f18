"""Counts what one launch executes: the whole grid, from its machine code and its launch.

What cannot be counted ends in `NotCountedWork`, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.counted_work import NotCountedWork, Work
from irdiff.errors import IrdiffError
from irdiff.work import deciding, grid, programs, recording
from irdiff.work.accesses import COLUMNS, EXECUTED
from irdiff.work.compiled_launch import CompiledLaunch
from irdiff.work.deciding import Deciding
from irdiff.work.disassembler import Disassembler
from irdiff.work.execute import NotCounted
from irdiff.work.grid import Place, TooMuch
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.patterns import AccessPatterns
from irdiff.work.repeating import EndlessLoop
from irdiff.work.sass import SassFunction

_LANES = 16_384
"""Lanes that are executed at once."""
_MOST_LANES = 131_072
"""Lanes that are executed in all, where programs differ."""
_BUDGET = 24_000
"""Instructions that are executed for a launch; a step of many lanes counts as several."""
_RESERVE = 16_000
"""And as many more for a sample, where these did not suffice."""
_BRANCH_BUDGET = 16_000
"""And for how often each instruction executes in all programs, where what they access is estimated."""
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
    function: SassFunction
    sure: Mapping[str, Any]
    """`executed`, `requests`, `sectors`, `wavefronts`, … (`accesses.COLUMNS`) → an array of float64 with the
    count of each instruction, all warps of the grid together."""
    beyond: Mapping[str, Any]
    """What may happen besides, where data decide."""


def count(compiled: CompiledLaunch, disassembler: Disassembler) -> CountedLaunch | NotCountedWork:
    """Everything that the launch executes."""
    try:
        function = disassembler.read(compiled.arch, compiled.binary, compiled.kernel)
        return count_function(function, compiled.facts)
    except IrdiffError as error:
        return NotCountedWork(reason=error.what)


def count_function(function: SassFunction, facts: LaunchFacts) -> CountedLaunch | NotCountedWork:
    """Everything that the launch executes."""
    if facts.warps > 32 or math.prod(facts.grid) > MAX_PROGRAMS or min(facts.grid) < 1:
        return NotCountedWork(
            reason=f"a grid of {facts.grid} with {facts.warps} warps is more than is counted"
        )
    runs = _Runs(function, facts)
    lanes, size = facts.warps * 32, len(COLUMNS) * 2 * len(function.instructions)
    batch = max(1, min(_LANES // lanes, _MOST_COUNTS // size))
    most = max(16, min(_MOST_LANES // lanes, 4 * _MOST_COUNTS // size))
    try:
        found = grid.whole(runs.costs, facts.grid, batch=batch, most=most)
        branches = None if found.exact else runs.of_all_programs(batch, most)
        if branches is not None:
            found = grid.scaled(found, branches, EXECUTED)
    except NotCounted as error:
        return NotCountedWork(reason=str(error))
    except TooMuch:
        return NotCountedWork(
            reason=f"more than {_BUDGET + _RESERVE:,} instructions would have to be executed"
        )
    except EndlessLoop as error:
        return NotCountedWork(reason=f"the loop at {function.instructions[error.head].address:#x} never ends")
    except IrdiffError as error:
        return NotCountedWork(reason=error.what)
    sure, beyond = (dict(zip(COLUMNS, table, strict=True)) for table in found.total)
    work = recording.work(function, facts, found, branches, tuple(runs.notes))
    return CountedLaunch(work=work, function=function, sure=sure, beyond=beyond)


class _Runs:
    """Executes programs, within a budget for the whole launch."""

    def __init__(self, function: SassFunction, facts: LaunchFacts) -> None:
        self._function, self._facts = function, facts
        self._deciding = deciding.deciding(function.instructions)
        self._patterns = AccessPatterns()
        self._left, self._reserve = float(_BUDGET), _RESERVE
        self._overwrites = False
        self.notes: dict[str, None] = {}

    def costs(self, places: Sequence[Place]) -> Any:
        """(sure and beyond, columns, instructions, programs). Raises TooMuch, NotCounted, EndlessLoop."""
        executed, spent = self._execute(self._deciding, places, self._left)
        self._left -= spent
        self._overwrites |= executed.overwrites
        if not executed.ended:
            self._left, self._reserve = self._left + self._reserve, 0
            raise TooMuch
        self.notes.update(dict.fromkeys(executed.open_loops))
        return np.stack([executed.tally.sure, executed.tally.beyond])

    def of_all_programs(self, batch: int, most: int) -> grid.WholeGrid | None:
        """How often each instruction executes, without what it accesses; None where that takes too long."""
        if self._overwrites:
            return None
        branches, left = deciding.of_branches(self._function.instructions), float(_BRANCH_BUDGET)

        def costs(places: Sequence[Place]) -> Any:
            nonlocal left
            executed, spent = self._execute(branches, places, left)
            left -= spent
            if not executed.ended:
                raise TooMuch
            return np.stack([executed.tally.sure, executed.tally.beyond])

        try:
            found = grid.whole(costs, self._facts.grid, batch=batch, most=most)
        except (TooMuch, NotCounted):
            return None
        return found if found.exact else None

    def _execute(
        self, needed: Deciding, places: Sequence[Place], left: float
    ) -> tuple[programs.Executed, float]:
        weight = 1 + len(places) * self._facts.warps * 32 / _LANES_AS_A_STEP
        executed = programs.execute(
            self._function, needed, self._facts, places, self._patterns, most_steps=int(left / weight)
        )
        return executed, executed.steps * weight
