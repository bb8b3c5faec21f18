"""Occupancy of NVIDIA's GPUs. Pure.

Registers are allocated a warp in units of 256 from the quarter of a multiprocessor that the warp runs
on; shared memory, static and dynamic and what the driver reserves, a block in units of 128 bytes; further
limits are threads, blocks, barriers, columns of tensor memory (CUDA C++ Programming Guide, table of compute
capabilities; granules as the CUDA occupancy calculator has them). The answer was the driver's own
(`cuOccupancyMaxActiveBlocksPerMultiprocessor`) for all 238 sm_90 binaries of the corpus and 119 kernels
at the edges of the limits, on an H200 with driver 580. That all blocks of a cluster must fit into one group
of multiprocessors at once is not looked at: it limits clusters a GPU, not blocks a multiprocessor.
"""

from __future__ import annotations

from collections.abc import Mapping

from irdiff.backends.limits import least, rounded
from irdiff.model import Fact

_REGISTERS_AT_ONCE = 256
_QUARTERS = 4
_SHARED_BYTES_AT_ONCE = 128


def occupancy(
    kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
) -> dict[str, Fact]:
    """`blocks_per_multiprocessor` and `warps_per_multiprocessor`."""
    if kernel.get("registers", 0) < 1:
        return {}
    blocks, limit = least(_allowed(kernel, limits, warps, warp_size))
    warps_at_once = blocks * warps
    return {
        "blocks_per_multiprocessor": blocks,
        "warps_per_multiprocessor": warps_at_once,
        "occupancy_limit": limit,
    }


def _allowed(
    kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
) -> dict[str, int]:
    """Blocks that each resource allows."""
    a_warp = rounded(kernel["registers"] * warp_size, _REGISTERS_AT_ONCE)
    shared = kernel.get("shared_bytes", 0) + kernel.get("static_shared_bytes", 0)
    taken = rounded(shared + limits["reserved_shared_memory_bytes"], _SHARED_BYTES_AT_ONCE)
    most = {
        "blocks": limits["blocks_per_multiprocessor"],
        "threads": limits["threads_per_multiprocessor"] // warp_size // warps,
        "registers": limits["registers_per_multiprocessor"] // _QUARTERS // a_warp * _QUARTERS // warps,
        "shared memory": limits["shared_memory_per_multiprocessor_bytes"] // taken,
    }
    for name, fact, available in (
        ("tensor memory", "tmem_columns", "tmem_columns"),
        ("barriers", "barriers", "barriers_per_multiprocessor"),
    ):
        if kernel.get(fact, 0) > 0 and available in limits:
            most[name] = limits[available] // kernel[fact]
    return most
