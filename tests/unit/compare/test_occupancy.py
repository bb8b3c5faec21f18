"""Blocks a multiprocessor, at the edges of the units that hardware allocates in.

Those of NVIDIA are answers of the CUDA driver on an H200; those of AMD follow the
documents that the module names.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from irdiff.compare import occupancy
from irdiff.model import Fact, Target
from irdiff.resolve import targets

HOPPER, BLACKWELL, CDNA3, CDNA4 = targets.select(
    ["sm_90", "sm_100", "gfx942", "gfx950"], [Path(__file__).parents[3] / "targets"]
)


REGISTERS = [
    # registers are allocated a warp, from the quarter of a multiprocessor that it runs on
    (128, 32, 16, "threads"), (128, 40, 12, "registers"), (128, 255, 2, "registers"), (96, 64, 10, "registers"),
    (1024, 64, 1, "registers"), (1024, 65, 0, "registers"), (32, 24, 32, "blocks"),
]  # fmt: skip
"""Threads, registers of each, blocks, and what limits them."""
SHARED = [
    (16, 57344, 3), (0, 57344, 4), (0, 45568, 5), (1008, 114688, 2), (1041, 114688, 1), (0, 232448, 1), (0, 232449, 0),
]  # fmt: skip
"""Static and dynamic bytes, and blocks: they count with what the driver reserves."""
BARRIERS = [
    (1, 32, "blocks"),
    (2, 32, "blocks"),
    (3, 21, "barriers"),
    (4, 16, "barriers"),
    (16, 4, "barriers"),
]
AMD: dict[str, Fact] = {"vgprs": 32, "sgprs": 30}
LDS: dict[str, Fact] = {**AMD, "warps": 4, "shared_bytes": 32769}


@pytest.mark.parametrize(
    ("target", "facts", "expected"),
    [
        *((HOPPER, {"registers": registers, "reqntid": f"{threads},1,1"}, (blocks, limit))
          for threads, registers, blocks, limit in REGISTERS),
        *((HOPPER, {"static_shared_bytes": static, "shared_bytes": dynamic, "registers": 32, "warps": 4},
           (blocks, "shared memory"))
          for static, dynamic, blocks in SHARED),
        *((HOPPER, {"registers": 22, "warps": 1, "barriers": barriers}, (blocks, limit))
          for barriers, blocks, limit in BARRIERS),
        (BLACKWELL, {"registers": 40, "warps": 4, "tmem_columns": 256}, (2, "tensor memory")),
        (CDNA3, LDS, (1, "LDS")),
        (CDNA4, LDS, (4, "LDS")),
        (CDNA3, {"vgprs": 32, "sgprs": 106, "warps": 1}, (28, "SGPRs")),  # above 100 leave seven waves
    ],
)  # fmt: skip
def test_blocks_and_what_limits_them(
    target: Target, facts: dict[str, Fact], expected: tuple[int, str]
) -> None:
    found = occupancy.facts(facts, target)
    number = found.get("blocks_per_multiprocessor", found.get("workgroups_per_compute_unit"))
    assert (number, found["occupancy_limit"]) == expected


@pytest.mark.parametrize(
    ("vgprs", "expected"),
    [(1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (128, 4), (129, 3), (256, 2), (257, 1), (512, 1)],
)
def test_amd_allocates_8_registers_of_512_at_a_time(vgprs: int, expected: int) -> None:
    assert occupancy.facts({"vgprs": vgprs, "sgprs": 30, "warps": 1}, CDNA3)["waves_per_simd"] == expected


@pytest.mark.parametrize("facts", [{}, {"registers": 0, "warps": 4}, {"registers": "many", "warps": 4}])
def test_what_is_not_known_gives_no_occupancy(facts: dict[str, Fact]) -> None:
    assert occupancy.facts(facts, HOPPER) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, facts={})) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, backend="npu")) == {}
