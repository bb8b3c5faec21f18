from __future__ import annotations

import math

import numpy as np
import pytest

from irdiff.history import change_points
from tests.programs import bench_change_points as bench


def line(*levels: tuple[int, float], noise: float = 0.002, seed: int = 1) -> list[float]:
    rng = np.random.default_rng(seed)
    return [float(level * math.exp(rng.normal(0, noise))) for count, level in levels for _ in range(count)]


def test_a_step_is_found_with_its_size() -> None:
    (step,) = change_points.level_steps(line((20, 50.0), (15, 53.0)))
    assert step.index == 20
    assert step.share == pytest.approx(0.06, abs=0.005)


def test_a_flat_line_a_single_point_and_nights_that_do_not_agree_are_no_step() -> None:
    assert change_points.level_steps(line((40, 50.0))) == []
    assert change_points.level_steps(line((40, 50.0), (1, 60.0))) == []
    for slow in ((60.0,), (60.0, 53.0), (60.0, 50.0, 56.0), (54.0, 50.0, 54.0)):
        values = line((20, 50.0), (len(slow), 1.0), (20, 50.0))
        values[20 : 20 + len(slow)] = slow
        assert change_points.level_steps(values) == [], slow
    assert change_points.level_steps([50.0] * 30) == []
    assert change_points.level_steps([50.0, 60.0, 70.0]) == []


def test_two_points_are_a_level() -> None:
    found = change_points.level_steps(line((20, 50.0), (2, 60.0), (20, 50.0)))
    assert [step.index for step in found] == [20, 22]


def test_a_slow_night_before_a_step_does_not_move_it() -> None:
    values = line((20, 50.0), (20, 55.0))
    values[17] = 60.0
    assert [step.index for step in change_points.level_steps(values)] == [20]


def test_a_noisy_line_needs_a_larger_step_than_a_quiet_one() -> None:
    quiet, noisy = (line((20, 50.0), (3, 51.5), noise=noise) for noise in (0.001, 0.02))
    assert [step.index for step in change_points.level_steps(quiet)] == [20]
    assert change_points.level_steps(noisy) == []


@pytest.mark.slow
def test_planted_steps_are_found_and_no_others() -> None:
    """The bar of the issue, on each of several draws of forty lines with a step and forty without."""
    for processes in (1, 18):
        for seed in range(3):
            found = bench.score(bench.lines(seed, processes), bench.ours)
            assert found.recall >= 0.95, (processes, seed)
            assert found.false_per_thousand <= 1, (processes, seed)


def test_the_last_point_is_held_against_its_own_line() -> None:
    before = line((30, 50.0), (10, 55.0))
    distance, allowed = change_points.beyond_noise(before, 58.0)
    assert distance == pytest.approx(58 / 55 - 1, abs=0.003)
    assert 0.01 <= allowed < distance
    assert change_points.beyond_noise(before, 55.2)[0] < allowed
    assert change_points.beyond_noise([50.0, 50.0], 90.0)[1] == math.inf
