import math

import numpy as np
import pytest

from irdiff.history import change_points
from tests.programs import bench_change_points as bench


def line(*levels, noise=0.002, seed=1):
    rng = np.random.default_rng(seed)
    return [float(level * math.exp(rng.normal(0, noise))) for count, level in levels for _ in range(count)]


def found(values):
    return [step.index for step in change_points.level_steps(values)]


def test_a_step_is_two_points_on_another_level_beyond_the_noise_of_the_line():
    (step,) = change_points.level_steps(line((20, 50.0), (15, 53.0)))
    assert (step.index, step.share) == (20, pytest.approx(0.06, abs=0.005))
    assert found(line((20, 50.0), (2, 60.0), (20, 50.0))) == [20, 22]
    slow_night = line((20, 50.0), (20, 55.0))
    slow_night[17] = 60.0
    assert found(slow_night) == [20], "a slow night before a step does not move it"
    assert found(line((20, 50.0), (3, 51.5), noise=0.001)) == [20]
    assert found(line((20, 50.0), (3, 51.5), noise=0.02)) == []


def test_a_flat_line_a_single_point_and_nights_that_do_not_agree_are_no_step():
    for values in (line((40, 50.0)), line((40, 50.0), (1, 60.0)), [50.0] * 30, [50.0, 60.0, 70.0]):
        assert found(values) == []
    for slow in ((60.0,), (60.0, 53.0), (60.0, 50.0, 56.0), (54.0, 50.0, 54.0)):
        values = line((20, 50.0), (len(slow), 1.0), (20, 50.0))
        values[20 : 20 + len(slow)] = slow
        assert found(values) == [], slow


@pytest.mark.slow
def test_planted_steps_are_found_and_no_others():
    """The bar of the issue, on each of several draws of forty lines with a step and forty without."""
    for processes in (1, 18):
        for seed in range(3):
            found = bench.score(bench.lines(seed, processes), bench.ours)
            assert found.recall >= 0.95, (processes, seed)
            assert found.false_per_thousand <= 1, (processes, seed)


def test_the_last_point_is_held_against_its_own_line():
    before = line((30, 50.0), (10, 55.0))
    distance, allowed = change_points.beyond_noise(before, 58.0)
    assert distance == pytest.approx(58 / 55 - 1, abs=0.003)
    assert 0.01 <= allowed < distance
    assert change_points.beyond_noise(before, 55.2)[0] < allowed
    assert change_points.beyond_noise([50.0, 50.0], 90.0)[1] == math.inf
