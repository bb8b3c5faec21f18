"""Counts what one launch executes: the whole grid, from its machine code and its launch.

What cannot be counted ends in `NotCountedWork`, with the reason.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.counted_work import NotCountedWork, Work
from irdiff.errors import IrdiffError
from irdiff.work import deciding, grid, programs, recording
from irdiff.work.accesses import COLUMNS
from irdiff.work.compiled_launch import CompiledLaunch
from irdiff.work.disassembler import Disassembler
from irdiff.work.execute import NotCounted, TooMany
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.repeating import EndlessLoop
from irdiff.work.sass import SassFunction

_LANES = 16_384
"""Lanes that are executed at once."""
_MOST_LANES = 131_072
"""Lanes that are executed in all, where programs differ."""
_MOST_STEPS = 240_000
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
    notes: dict[str, None] = {}
    unknown: set[int] = set()
    steps = 0
    needed = deciding.deciding(function.instructions)

    def costs(places: object) -> Any:
        nonlocal steps
        executed = programs.execute(function, needed, facts, places)  # type: ignore[arg-type]
        notes.update(dict.fromkeys(executed.open_loops))
        steps += executed.steps
        if steps > _MOST_STEPS:
            raise TooMany(f"more than {_MOST_STEPS:,} instructions would have to be executed")
        unknown.update(executed.unknown_branches)
        return np.stack([executed.tally.sure, executed.tally.beyond])

    lanes = facts.warps * 32
    batch, most = max(1, _LANES // lanes), max(16, _MOST_LANES // lanes)
    try:
        try:
            found = grid.whole(costs, facts.grid, batch=batch, most=most)
        except TooMany:
            steps = 0
            found = grid.sampled(costs, facts.grid)
    except NotCounted as error:
        return NotCountedWork(reason=str(error))
    except EndlessLoop as error:
        return NotCountedWork(reason=f"the loop at {function.instructions[error.head].address:#x} never ends")
    except IrdiffError as error:
        return NotCountedWork(reason=error.what)
    sure, beyond = (dict(zip(COLUMNS, table, strict=True)) for table in found.total)
    work = recording.work(function, facts, found, tuple(notes))
    return CountedLaunch(work=work, function=function, sure=sure, beyond=beyond)
