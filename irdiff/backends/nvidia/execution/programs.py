"""Runs some programs of a grid and says what each instruction cost in each of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from irdiff.backends.nvidia.execution.accesses import Memory
from irdiff.backends.nvidia.execution.deciding import Deciding
from irdiff.backends.nvidia.execution.executor import Executor
from irdiff.backends.nvidia.execution.warp_state import WarpState
from irdiff.execution import coalescing
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.execution.memory_costs import CostTally
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.repeating import Repeater
from irdiff.execution.runs import Executed, Place, executed_by
from irdiff.ir.sass.instructions import SassFunction

_U32 = np.uint32


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
        "SR_CTAID.X": of_program([place[0] for place in places]),
        "SR_CTAID.Y": of_program([place[1] for place in places]),
        "SR_CTAID.Z": of_program([place[2] for place in places]), "SR_CgaCtaId": rank, "SR_VIRTID": zero,
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
