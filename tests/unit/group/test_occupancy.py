"""Warps by registers, at the edges of the units that hardware allocates in."""

from __future__ import annotations

import pytest

from irdiff.group.occupancy import warps


@pytest.mark.parametrize(
    ("registers", "expected"),
    [
        (1, 64),
        (32, 64),
        (33, 51),
        (40, 51),
        (41, 42),
        (64, 32),
        (65, 28),
        (128, 16),
        (168, 12),
        (255, 8),
        (256, 8),
    ],
)
def test_nvidia_allocates_256_registers_at_a_time(registers: int, expected: int) -> None:
    """As the occupancy calculator of CUDA has it for 65,536 registers."""
    assert warps({"registers": registers}) == expected


@pytest.mark.parametrize(
    ("vgprs", "expected"),
    [(1, 8), (64, 8), (65, 7), (72, 7), (73, 6), (128, 4), (129, 3), (256, 2), (257, 1), (512, 1)],
)
def test_amd_allocates_8_registers_of_512_at_a_time(vgprs: int, expected: int) -> None:
    assert warps({"vgprs": vgprs}) == expected


@pytest.mark.parametrize(
    "facts", [{}, {"registers": 0}, {"registers": -1}, {"registers": "many"}, {"vgprs": 0}]
)
def test_registers_that_are_not_known_allow_nothing_to_be_said(facts: dict[str, int | float | str]) -> None:
    assert warps(facts) == 0
