"""How many blocks of a kernel a multiprocessor holds at once, and what limits that. Pure.

Each backend has its own rules (`occupancy` of its module). Limits are facts of the target; a target that does
not state them has no occupancy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irdiff import backends
from irdiff.model import Fact, Target


def facts(facts: Mapping[str, Fact], target: Target) -> dict[str, Fact]:
    """The occupancy of one side; empty if its resources or the target's limits are not known.

    0 blocks where the launch is refused. `occupancy_limit` names the resource that runs out first.
    """
    kernel = {name: value for name, value in facts.items() if isinstance(value, int)}
    limits = {name: value for name, value in target.facts.items() if isinstance(value, int)}
    warps = -(-_threads(facts, target) // target.warp_size)
    if warps < 1:
        return {}
    try:
        return backends.of(target.backend).occupancy(kernel, limits, warps, target.warp_size)
    except KeyError:  # a limit that the target does not state
        return {}


def _threads(facts: Mapping[str, Fact], target: Target) -> int:
    """Threads of a block: what the kernel requires, with warps that the compiler added, else its option."""
    required = facts.get("reqntid") or facts.get("maxntid")
    if isinstance(required, str):
        return math.prod(map(int, required.split(",")))
    warps = facts.get("warps")
    return warps * target.warp_size if isinstance(warps, int) else 0
