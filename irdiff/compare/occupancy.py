"""How many blocks of a kernel a multiprocessor holds at once, and what limits that. Pure.

NVIDIA: registers are allocated a warp in units of 256 from the quarter of a multiprocessor that the warp runs
on; shared memory, static and dynamic and what the driver reserves, a block in units of 128 bytes; further
limits are threads, blocks, barriers, columns of tensor memory (CUDA C++ Programming Guide, table of compute
capabilities; granules as the CUDA occupancy calculator has them). The answer was the driver's own
(`cuOccupancyMaxActiveBlocksPerMultiprocessor`) for all 238 sm_90 binaries of the corpus and 119 kernels
at the edges of the limits, on an H200 with driver 580. That all blocks of a cluster must fit into one group
of multiprocessors at once is not looked at: it limits clusters a GPU, not blocks a multiprocessor.

AMD CDNA: 512 vector registers a lane and SIMD, VGPRs and AGPRs together, in units of 8; scalar registers as
LLVM has them (`getOccupancyWithNumSGPRs`); LDS a work-group in the target's units; at most 8 waves a SIMD and
16 work-groups of several waves a compute unit (AMD CDNA 3 instruction set architecture guide; LLVM's "User
Guide for AMDGPU Backend" and AMDGPUBaseInfo.cpp). Never compared with a GPU.

Limits are facts of the target; a target that does not state them has no occupancy.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from irdiff.model import Fact, Target

_REGISTERS_AT_ONCE = 256
_QUARTERS = 4
_SHARED_BYTES_AT_ONCE = 128
_VECTOR_REGISTERS_AT_ONCE = 8
_SCALAR_REGISTERS = ((80, 10), (88, 9), (100, 8), (1 << 20, 7))
"""Scalar registers of a wave, at most → waves of a SIMD."""
_WAVES_PER_SIMD = 8
_GROUPS_PER_COMPUTE_UNIT = 16
"""The most work-groups of several waves: each of them needs a barrier."""


def facts(facts: Mapping[str, Fact], target: Target) -> dict[str, Fact]:
    """What one side's resources allow; empty where they or the target's limits are not known.

    `blocks_per_multiprocessor` and `warps_per_multiprocessor`, for AMD `workgroups_per_compute_unit` and
    `waves_per_simd`; 0 where the launch is refused. `occupancy_limit` names the resource that runs out first.
    """
    kernel = {name: value for name, value in facts.items() if isinstance(value, int)}
    limits = {name: value for name, value in target.facts.items() if isinstance(value, int)}
    warps = -(-_threads(facts, target) // target.warp_size)
    if warps < 1 or kernel.get("vgprs" if target.backend == "hip" else "registers", 0) < 1:
        return {}
    try:
        if target.backend == "cuda":
            blocks, limit = _least(_nvidia(kernel, limits, warps, target.warp_size))
            allowed = {"blocks_per_multiprocessor": blocks, "warps_per_multiprocessor": blocks * warps}
        elif target.backend == "hip":
            blocks, limit = _least(_amd(kernel, limits, warps))
            waves = -(-blocks * warps // limits["simds_per_multiprocessor"])
            allowed = {"workgroups_per_compute_unit": blocks, "waves_per_simd": waves}
        else:
            return {}
    except KeyError:  # a limit that the target does not state
        return {}
    return {**allowed, "occupancy_limit": limit}


def _threads(facts: Mapping[str, Fact], target: Target) -> int:
    """Of a block: what the kernel requires, with warps that the compiler added, or else its option."""
    required = facts.get("reqntid") or facts.get("maxntid")
    if isinstance(required, str):
        return math.prod(map(int, required.split(",")))
    warps = facts.get("warps")
    return warps * target.warp_size if isinstance(warps, int) else 0


def _nvidia(
    kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
) -> dict[str, int]:
    """Blocks that each resource allows."""
    a_warp = _rounded(kernel["registers"] * warp_size, _REGISTERS_AT_ONCE)
    shared = kernel.get("shared_bytes", 0) + kernel.get("static_shared_bytes", 0)
    taken = _rounded(shared + limits["reserved_shared_memory_bytes"], _SHARED_BYTES_AT_ONCE)
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


def _amd(kernel: Mapping[str, int], limits: Mapping[str, int], waves: int) -> dict[str, int]:
    """Work-groups that each resource allows."""
    simds = limits["simds_per_multiprocessor"]
    lds = kernel.get("shared_bytes", 0) + kernel.get("lds_bytes", 0)
    vector = _rounded(kernel["vgprs"], _VECTOR_REGISTERS_AT_ONCE)
    by_scalar = next(most for up_to, most in _SCALAR_REGISTERS if kernel.get("sgprs", 0) <= up_to)
    most = {
        "waves": _WAVES_PER_SIMD * simds // waves,
        "VGPRs": limits["vgprs_per_simd"] // vector * simds // waves,
        "SGPRs": by_scalar * simds // waves,
    }
    if lds:
        most["LDS"] = limits["shared_memory_bytes"] // _rounded(lds, limits["lds_granule_bytes"])
    if waves > 1:
        most["work-groups"] = _GROUPS_PER_COMPUTE_UNIT
    return most


def _rounded(amount: int, unit: int) -> int:
    return -(-amount // unit) * unit


def _least(most: Mapping[str, int]) -> tuple[int, str]:
    """The number of blocks, and the first of the resources that allow no more."""
    limit = min(most, key=most.__getitem__)
    return most[limit], limit
