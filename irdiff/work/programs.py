"""Runs some programs of a grid and says what each instruction cost in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irdiff.work import coalescing
from irdiff.work.accesses import Memory
from irdiff.work.control_flow import ControlFlow, TooManySteps
from irdiff.work.deciding import Deciding
from irdiff.work.execute import Executor
from irdiff.work.launch_facts import LaunchFacts
from irdiff.work.memory_costs import CostTally
from irdiff.work.patterns import AccessPatterns
from irdiff.work.repeating import Repeater
from irdiff.work.sass import SassFunction
from irdiff.work.state import WarpState

Place = tuple[int, int, int]
_U32 = np.uint32


@dataclass(frozen=True, kw_only=True)
class Executed:
    tally: CostTally
    open_loops: tuple[str, ...]
    """Loops that data decide, as sentences."""
    steps: int
    ended: bool
    """Whether all programs came to their end within the steps that were allowed."""


def execute(
    function: SassFunction,
    deciding: Deciding,
    facts: LaunchFacts,
    places: Sequence[Place],
    patterns: AccessPatterns,
    *,
    most_steps: tuple[int, int],
) -> Executed:
    """The programs at these places of the grid. Raises NotCounted, EndlessLoop.

    `most_steps`: where they differ, and where they do the same.
    """
    programs, warps = len(places), facts.warps
    tally = CostTally(len(function.instructions), programs)

    def of_program(values: Sequence[int]) -> Any:
        return np.repeat(np.array(values, dtype=_U32), warps)[:, None]

    warp = np.tile(np.arange(warps, dtype=_U32), programs)[:, None]
    lane = np.arange(32, dtype=_U32)[None, :]
    zero = np.zeros((1, 1), dtype=_U32)
    rank = of_program([x % facts.cluster for x, _, _ in places])
    special = {
        "SR_TID.X": warp * _U32(32) + lane, "SR_TID.Y": zero, "SR_TID.Z": zero, "SR_LANEID": lane,
        "SR_CTAID.X": of_program([row[0] for row in places]),
        "SR_CTAID.Y": of_program([row[1] for row in places]),
        "SR_CTAID.Z": of_program([row[2] for row in places]), "SR_CgaCtaId": rank, "SR_VIRTID": zero,
        "SR_CgaSize": zero + _U32(facts.cluster), "SR_NTID.X": zero + _U32(warps * 32),
        "SR_CLUSTER_CTARANK": rank, "SR_CLUSTERID.X": of_program([x // facts.cluster for x, _, _ in places]),
    }  # fmt: skip
    state = WarpState(programs=programs, warps=warps, constants=facts.constants, special=special)
    memory = Memory(
        state=state, tally=tally, regions=facts.regions, patterns=patterns,
        line_bytes=coalescing.SECTOR_BYTES, shared_bytes=facts.shared_bytes,
        by_address=dict(facts.descriptors),
    )  # fmt: skip
    executor = Executor(
        code=function.instructions, function=function, deciding=deciding, state=state, tally=tally,
        memory=memory, repeater=Repeater(state, tally, memory),
    )  # fmt: skip
    return executed_by(executor, most_steps)


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
