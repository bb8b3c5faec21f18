"""Computes the time of one launch: of its simulated schedulers for all waves of blocks, and of the GPU's
memory. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from irdiff.backends import machines
from irdiff.cost import profile, simulate, trace
from irdiff.execution.schedule import QUARTERS, Load, Op, Rates
from irdiff.model import Launch
from irdiff.work import CountedLaunch

_FEW_WAVES = 8
_BITS = 8


@dataclass(frozen=True, kw_only=True)
class LaunchTime:
    """One side of a case."""

    scheduled_us: float
    """The time of the simulated schedulers for all waves of blocks."""
    memory_us: float
    """The time to move each byte of the arguments once, at the memory's stated bandwidth."""
    blocks: int
    """That a multiprocessor holds at once."""
    warps: int
    """The number of warps of a block."""
    grid: int
    undecided: float
    """Share of the instructions that data decide."""
    counts: Mapping[str, float]
    """For all warps together: `instructions`, `global sectors`, `shared wavefronts`, `spill sectors`; for an
    average warp: `stall cycles`, `waits on scoreboards`, `waits on global loads`, `latency of one warp`."""


def of_launch(counted: CountedLaunch, launch: Launch, blocks_at_once: int, rates: Rates) -> LaunchTime | None:
    """`blocks_at_once`: that a multiprocessor holds, by its resources.

    None for code whose time has no model.
    """
    work, executed = counted.work, profile.of_counted(counted)
    grid, warps = work.programs, max(1, work.warps // work.programs)
    held = max(1, min(blocks_at_once, -(-grid // rates.multiprocessors)))
    moved = executed.total("sectors") * 32 + executed.total("tma_bytes")
    needed = argument_bytes(launch)
    cold = min(1.0, needed / moved) if moved else 1.0
    ops = machines.ops(counted.code, Load(rates=rates, each=executed.each, warps=warps * held, cold=cold))
    if ops is None:
        return None
    steps = trace.steps(counted.code, executed.executed)
    simulated = max(1.0, _simulated(ops, steps, held, warps))
    full, rest = divmod(grid, rates.multiprocessors * held)
    waves = float(full)
    if rest:
        last = -(-rest // rates.multiprocessors)
        shorter = 0 < full <= _FEW_WAVES and last < held
        waves += _simulated(ops, steps, last, warps) / simulated if shorter else 1.0
    scheduled = simulated * waves / rates.clock_ghz / 1000
    memory = needed / (rates.dram_bytes * rates.multiprocessors * rates.clock_ghz * 1000)
    return LaunchTime(
        scheduled_us=scheduled,
        memory_us=memory,
        blocks=held,
        warps=warps,
        grid=grid,
        undecided=executed.undecided,
        counts={
            **_of_steps(ops, steps),
            "instructions": executed.total("executed"),
            "latency of one warp": simulate.run(ops, steps, 1, 1),
            "shared wavefronts": executed.total("wavefronts"),
            "global sectors": executed.total("sectors"),
            "spill sectors": executed.total("local_sectors"),
        },
    )


def _simulated(ops: list[Op], steps: list[trace.TraceStep], blocks: int, warps: int) -> float:
    """One of the four schedulers: a quarter of each block's warps, or of the blocks where these are small."""
    if warps >= QUARTERS:
        return simulate.run(ops, steps, blocks, -(-warps // QUARTERS))
    return simulate.run(ops, steps, max(1, -(-blocks * warps // QUARTERS)), 1)


def _of_steps(ops: list[Op], steps: list[trace.TraceStep]) -> dict[str, float]:
    """Returns the stall cycles and the waits that the schedule gives an average warp."""
    stalls = waits = loads = 0.0
    pending: dict[int, str] = {}
    for step in steps:
        op = ops[step.place]
        stalls += op.stall * step.weight
        for board in range(6):
            if op.waits >> board & 1:
                waits += step.weight
                loads += step.weight * (pending.pop(board, "") == "l2")
        pending[op.result] = op.pipe
    return {"stall cycles": stalls, "waits on scoreboards": waits, "waits on global loads": loads}


def argument_bytes(launch: Launch) -> float:
    """Counts each storage of the launch's tensors once, with the size of the largest tensor in it."""
    sizes: dict[int, float] = {}
    for argument in launch.arguments:
        if argument.alias is None or not argument.dtype or argument.shape is None:
            continue
        digits = "".join(filter(str.isdigit, argument.dtype.split("e", maxsplit=1)[0]))
        size = float(max(1, int(digits or "8") // _BITS))
        for extent in argument.shape:
            size *= extent
        sizes[argument.alias] = max(sizes.get(argument.alias, 0.0), size)
    return sum(sizes.values())
