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


def blocks(target: Target, **facts: Fact) -> tuple[Fact, Fact]:
    found = occupancy.facts(facts, target)
    number = found.get("blocks_per_multiprocessor", found.get("workgroups_per_compute_unit"))
    assert number is not None
    return number, found["occupancy_limit"]


@pytest.mark.parametrize(
    ("threads", "registers", "expected"),
    [
        (128, 32, (16, "threads")),
        (128, 40, (12, "registers")),
        (128, 255, (2, "registers")),
        (96, 64, (10, "registers")),
        (1024, 64, (1, "registers")),
        (1024, 65, (0, "registers")),
        (32, 24, (32, "blocks")),
    ],
)
def test_registers_are_allocated_a_warp_from_the_quarter_that_it_runs_on(
    threads: int, registers: int, expected: tuple[int, str]
) -> None:
    assert blocks(HOPPER, registers=registers, reqntid=f"{threads},1,1") == expected


@pytest.mark.parametrize(
    ("static", "dynamic", "expected"),
    [
        (16, 57344, (3, "shared memory")),
        (0, 57344, (4, "shared memory")),
        (0, 45568, (5, "shared memory")),
        (1008, 114688, (2, "shared memory")),
        (1041, 114688, (1, "shared memory")),
        (0, 114688, (2, "shared memory")),
        (0, 232448, (1, "shared memory")),
        (0, 232449, (0, "shared memory")),
    ],
)
def test_shared_memory_counts_with_what_the_driver_reserves(
    static: int, dynamic: int, expected: tuple[int, str]
) -> None:
    facts = {"static_shared_bytes": static, "shared_bytes": dynamic, "registers": 32, "warps": 4}
    assert blocks(HOPPER, **facts) == expected


@pytest.mark.parametrize(("barriers", "expected"), [(1, 32), (2, 32), (3, 21), (4, 16), (16, 4)])
def test_barriers_of_a_hopper_multiprocessor(barriers: int, expected: int) -> None:
    assert blocks(HOPPER, registers=22, warps=1, barriers=barriers)[0] == expected


def test_tensor_memory_is_allocated_by_columns() -> None:
    assert blocks(BLACKWELL, registers=40, warps=4, tmem_columns=256) == (2, "tensor memory")


def test_warps_that_the_compiler_added_count() -> None:
    """Of a warp-specialized kernel: the option `num_warps` is that of one partition."""
    found = occupancy.facts({"registers": 128, "warps": 4, "reqntid": "384,1,1"}, HOPPER)
    assert found["warps_per_multiprocessor"] == 12


def test_one_block_in_place_of_two_halves_the_warps_whatever_the_registers_say() -> None:
    """Triton #11127: 64 and 72 registers a thread, 16 warps a block."""
    before, after = (occupancy.facts({"registers": number, "warps": 16}, HOPPER) for number in (64, 72))
    assert (before["warps_per_multiprocessor"], after["warps_per_multiprocessor"]) == (32, 16)


@pytest.mark.parametrize(
    ("vgprs", "expected"),
    [(1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (128, 4), (129, 3), (256, 2), (257, 1), (512, 1)],
)
def test_amd_allocates_8_registers_of_512_at_a_time(vgprs: int, expected: int) -> None:
    assert occupancy.facts({"vgprs": vgprs, "sgprs": 30, "warps": 1}, CDNA3)["waves_per_simd"] == expected


def test_lds_of_both_generations() -> None:
    facts: dict[str, Fact] = {"vgprs": 32, "sgprs": 30, "warps": 4, "shared_bytes": 32769}
    assert blocks(CDNA3, **facts) == (1, "LDS")
    assert blocks(CDNA4, **facts) == (4, "LDS")


def test_scalar_registers_above_100_leave_seven_waves() -> None:
    assert blocks(CDNA3, vgprs=32, sgprs=106, warps=1) == (28, "SGPRs")


@pytest.mark.parametrize("facts", [{}, {"registers": 0, "warps": 4}, {"registers": "many", "warps": 4}])
def test_what_is_not_known_allows_nothing_to_be_said(facts: dict[str, Fact]) -> None:
    assert occupancy.facts(facts, HOPPER) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, facts={})) == {}
    assert occupancy.facts({"registers": 32, "warps": 4}, replace(HOPPER, backend="npu")) == {}
