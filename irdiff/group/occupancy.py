"""How many warps the registers of a kernel allow on a multiprocessor. Pure.

NVIDIA, compute capability 7.0 to 12.x: 65,536 registers a multiprocessor, allocated per warp in units of
256, at most 64 warps (CUDA C++ Programming Guide, technical specifications). AMD CDNA 2 to 4: 512 registers a
lane and SIMD for VGPRs and AGPRs together, in units of 8, at most 8 waves a SIMD (AMD Instinct MI300 ISA,
"VGPRs").
"""

from __future__ import annotations

from collections.abc import Mapping

from irdiff.model import Fact


def warps(facts: Mapping[str, Fact]) -> int:
    """Warps a multiprocessor (NVIDIA), or waves a SIMD (AMD); 0 where the registers are not known."""
    registers, vector = facts.get("registers"), facts.get("vgprs")
    if isinstance(registers, int) and registers > 0:
        return min(64, 65536 // (-(-registers * 32 // 256) * 256))
    if isinstance(vector, int) and vector > 0:
        return min(8, 512 // (-(-vector // 8) * 8))
    return 0
