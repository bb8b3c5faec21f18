"""Counts what one launch executes: the whole grid, from its machine code and its launch.

`count` is a pure function. What cannot be counted ends in `NotCountedWork`, with the reason.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from irdiff.errors import IrdiffError
from irdiff.work import classes, grid, programs
from irdiff.work.accesses import COLUMNS
from irdiff.work.execute import NotCounted, TooMany
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.record import Amount, NotCountedWork, Work
from irdiff.work.repeating import EndlessLoop
from irdiff.work.sass import SassFunction

_LANES = 16_384
"""Lanes that are executed at once."""
_MOST_LANES = 131_072
"""Lanes that are executed in all, where programs differ."""
_MOST_STEPS = 240_000
MAX_PROGRAMS = 1 << 40
"""Beyond, sums might not fit 64 bits."""


def count(function: SassFunction, facts: LaunchFacts) -> Work | NotCountedWork:
    """Everything that the launch executes."""
    if facts.warps > 32 or math.prod(facts.grid) > MAX_PROGRAMS or min(facts.grid) < 1:
        return NotCountedWork(
            reason=f"a grid of {facts.grid} with {facts.warps} warps is more than is counted"
        )
    notes: dict[str, None] = {}
    unknown: set[int] = set()
    steps = 0

    def costs(places: object) -> Any:
        nonlocal steps
        executed = programs.execute(function, facts, places)  # type: ignore[arg-type]
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
    sure, beyond = found.total

    def amount(column: str, opcodes: frozenset[str] | None = None) -> Amount:
        at = COLUMNS.index(column)
        chosen = [ins.place for ins in function.instructions if opcodes is None or ins.opcode in opcodes]
        low = sure[at, chosen].sum()
        return Amount(low=round(float(low)), high=round(float(low + beyond[at, chosen].sum())))

    return classes.work(function, sure, beyond, amount, found, tuple(notes))
