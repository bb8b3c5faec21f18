"""Occupancy of AMD's GPUs. Pure.

CDNA: 512 vector registers a lane and SIMD, VGPRs and AGPRs together, in units of 8; scalar registers as
LLVM has them (`getOccupancyWithNumSGPRs`); LDS a work-group in the target's units; at most 8 waves a SIMD and
16 work-groups of several waves a compute unit (AMD CDNA 3 instruction set architecture guide; LLVM's "User
Guide for AMDGPU Backend" and AMDGPUBaseInfo.cpp). Never compared with a GPU.

Where another generation differs, its targets state it as a fact: `_CDNA` names these. One that is not stated
is that of CDNA.
"""

from __future__ import annotations

from collections.abc import Mapping

from irdiff.backends.limits import least, rounded
from irdiff.model import Fact

_CDNA: Mapping[str, int] = {
    "vgpr_granule": 8,
    "max_waves_per_simd": 8,
    "max_workgroups_per_multiprocessor": 16,
}
"""The most work-groups are those of several waves: each of them needs a barrier."""
_SCALAR_REGISTERS = ((80, 10), (88, 9), (100, 8), (1 << 20, 7))
"""Scalar registers of a wave, at most → waves of a SIMD."""
_SHARE_SCALAR_REGISTERS = 64
"""Lanes of a wave until GFX9; later generations have 32, and give each wave all that it may have (LLVM)."""


def occupancy(
    kernel: Mapping[str, int], limits: Mapping[str, int], warps: int, warp_size: int
) -> dict[str, Fact]:
    """`workgroups_per_compute_unit` and `waves_per_simd`."""
    if "vgprs" not in kernel:
        return {}
    groups, limit = least(_allowed(kernel, {**_CDNA, **limits}, warps, warp_size))
    waves = -(-groups * warps // limits["simds_per_multiprocessor"])
    return {"workgroups_per_compute_unit": groups, "waves_per_simd": waves, "occupancy_limit": limit}


def _allowed(
    kernel: Mapping[str, int], limits: Mapping[str, int], waves: int, warp_size: int
) -> dict[str, int]:
    """Work-groups that each resource allows."""
    simds = limits["simds_per_multiprocessor"]
    lds = kernel.get("shared_bytes", 0) + kernel.get("lds_bytes", 0)
    vector = rounded(max(kernel["vgprs"], 1), limits["vgpr_granule"])
    most = {
        "waves": limits["max_waves_per_simd"] * simds // waves,
        "VGPRs": limits["vgprs_per_simd"] // vector * simds // waves,
    }
    if warp_size == _SHARE_SCALAR_REGISTERS:
        by_scalar = next(most for up_to, most in _SCALAR_REGISTERS if kernel.get("sgprs", 0) <= up_to)
        most["SGPRs"] = by_scalar * simds // waves
    if lds:
        most["LDS"] = limits["shared_memory_bytes"] // rounded(lds, limits["lds_granule_bytes"])
    if waves > 1:
        most["work-groups"] = limits["max_workgroups_per_multiprocessor"]
    return most
