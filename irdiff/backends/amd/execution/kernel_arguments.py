"""The kernel arguments of a launch on an AMD GPU, with the hidden ones that its runtime passes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from irdiff.backends.launch_plan import LaunchPlan
from irdiff.errors import NormalizeError
from irdiff.execution.launch_facts import UNKNOWN_BYTE, LaunchFacts, put, put_arguments

_MOST_ARGUMENT_BYTES = 1 << 16


def facts_of(plan: LaunchPlan, hidden: Mapping[str, tuple[int, int]]) -> LaunchFacts:
    """Returns the facts of a launch on an AMD GPU: bank 0 is its kernel arguments.

    `hidden`: offset and size of what the runtime passes, by name.
    """
    size = max([plan.size_bytes, 1, *(offset + width for offset, width in hidden.values())])
    if size > _MOST_ARGUMENT_BYTES:
        raise NormalizeError(f"{plan.kernel} takes {size:,} bytes of arguments")
    bank = np.full(size, UNKNOWN_BYTE, dtype=np.int16)
    regions, _ = put_arguments(plan, bank, 0, {})
    block = (plan.block_threads, 1, 1)
    values = {f"block_count_{axis}": plan.grid[n] for n, axis in enumerate("xyz")}
    values |= {f"group_size_{axis}": block[n] for n, axis in enumerate("xyz")}
    for name, (offset, width) in hidden.items():
        if name in values and 0 <= offset <= len(bank) - width and width in (2, 4, 8):
            put(bank, offset, values[name].to_bytes(8, "little")[:width])
    return LaunchFacts(
        kernel=plan.kernel, arch=0, grid=plan.grid, cluster=1, warps=-(-plan.block_threads // 64),
        constants={0: bank}, regions=tuple(regions), shared_bytes=plan.shared_bytes, descriptors={},
    )  # fmt: skip
