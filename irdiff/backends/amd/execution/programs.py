"""Runs some programs of a grid: the registers with which waves start, and what each instruction cost.

Source: LLVM, "User Guide for AMDGPU Backend", initial kernel execution state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from irdiff.backends.amd.execution.code import WaveInstruction
from irdiff.backends.amd.execution.lanes import EXEC, LANES, MASK, SCALAR, U32, VECTOR, WaveRegisters
from irdiff.backends.amd.execution.memory import ARGUMENTS_ADDRESS, WaveMemory
from irdiff.backends.amd.execution.wave_executor import WaveExecutor
from irdiff.backends.amd.machine_tables import LINE_BYTES
from irdiff.execution.launch_facts import LaunchFacts
from irdiff.execution.memory_costs import CostTally
from irdiff.execution.patterns import AccessPatterns
from irdiff.execution.repeating import Repeater
from irdiff.execution.runs import Executed, Place, executed_by
from irdiff.execution.state import TRUE, LaneState

_POINTERS_BEFORE_ARGUMENTS = ("dispatch_ptr", "queue_ptr")
_FIRST_VECTOR = 256


def execute(
    code: Sequence[WaveInstruction],
    settings: Mapping[str, int],
    facts: LaunchFacts,
    places: Sequence[Place],
    patterns: AccessPatterns,
    *,
    most_steps: tuple[int, int],
) -> Executed:
    """The programs at these places of the grid. Raises NotCounted, EndlessLoop."""
    programs, waves = len(places), facts.warps
    state = LaneState(programs=programs, warps=waves, constants=facts.constants, lanes=LANES)
    _start(state, settings, facts, places)
    tally, registers = CostTally(len(code), programs), WaveRegisters(state)
    memory = WaveMemory(
        state=state, tally=tally, regions=facts.regions, patterns=patterns, line_bytes=LINE_BYTES,
        registers=registers,
    )  # fmt: skip
    executor = WaveExecutor(
        code=code, state=state, tally=tally, memory=memory, repeater=Repeater(state, tally, memory),
        registers=registers,
    )  # fmt: skip
    return executed_by(executor, most_steps)


def _start(
    state: LaneState, settings: Mapping[str, int], facts: LaunchFacts, places: Sequence[Place]
) -> None:
    def of_program(values: Sequence[int]) -> Any:
        return np.repeat(np.array(values, dtype=U32), facts.warps)[:, None]

    scalars = state.registers[SCALAR]
    at = 2 * sum(settings.get(f"user_sgpr_{name}", 0) for name in _POINTERS_BEFORE_ARGUMENTS)
    if settings.get("user_sgpr_kernarg_segment_ptr"):
        for n, word in enumerate((ARGUMENTS_ADDRESS & 0xFFFFFFFF, ARGUMENTS_ADDRESS >> 32)):
            scalars[at + n] = np.array([[word]], dtype=U32), None
        at += 2
    at += 2 * settings.get("user_sgpr_dispatch_id", 0)
    first = settings.get("user_sgpr_kernarg_preload_offset", 0)
    for n in range(settings.get("user_sgpr_kernarg_preload_length", 0)):
        number = state.constant(0, 4 * (first + n), 4)
        if number is not None:
            scalars[at + n] = np.array([[number]], dtype=U32), None
    at = settings.get("user_sgpr_count", at)
    for axis, name in enumerate("xyz"):
        if settings.get(f"system_sgpr_workgroup_id_{name}", 1 if name == "x" else 0):
            scalars[at] = of_program([place[axis] for place in places]), None
            at += 1
    wave = np.tile(np.arange(facts.warps, dtype=U32), len(places))[:, None]
    # places in the other dimensions are packed above these, and are 0
    state.registers[VECTOR][_FIRST_VECTOR] = wave * U32(LANES) + np.arange(LANES, dtype=U32)[None, :], None
    state.registers[MASK][EXEC] = TRUE, None
