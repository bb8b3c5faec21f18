"""Times of processes, ratios and their intervals."""

import dataclasses
import math

import numpy as np
import pytest

from irdiff.timing import statistics
from tests.programs import timing_noise

ONE_HUMPED = timing_noise.FAMILIES[0]


def rows(change=0.0, spread=0.002, seed=0, processes=18, **options):
    rng = np.random.default_rng(seed)
    return timing_noise.samples(ONE_HUMPED, change, spread, rng, processes=processes, **options)


def quiet(change=0.0):
    """Samples without any noise."""
    return [
        dataclasses.replace(row, elapsed_us=row.launches * 100.0 * (1 + change * (row.arm == "head")))
        for row in rows(processes=3)
    ]


def test_times_are_of_one_launch_and_by_process():
    found = statistics.process_times(quiet(0.05))
    assert [row.process for row in found] == [0, 1, 2]
    assert found[0].base_us == found[0].base_mean_us == found[0].control_us == pytest.approx(100.0)
    assert found[0].head_us == found[0].head_mean_us == pytest.approx(105.0)


def test_a_process_without_an_arm_does_not_count():
    samples = [row for row in rows(processes=3) if (row.process, row.arm) != (1, "control")]
    assert [row.process for row in statistics.process_times(samples)] == [0, 2]


def test_a_quarter_of_slow_samples_moves_the_mean_and_not_the_median():
    slow = [
        dataclasses.replace(row, elapsed_us=1.06 * row.elapsed_us)
        if row.arm == "head" and row.round < 4
        else row
        for row in quiet()
    ]
    (first, *_) = statistics.process_times(slow)
    assert first.head_us == pytest.approx(100.0)
    assert first.head_mean_us == pytest.approx(100 + 6 * 3 / 14)  # of 16 samples, one is cut off at each end


@pytest.mark.slow
def test_the_interval_covers_the_truth():
    covered = 0
    for seed in range(300):
        head = statistics.estimate(rows(seed=seed, processes=6), confidence=0.95).head
        covered += head.low <= 1.0 <= head.high
    assert 0.92 <= covered / 300 <= 0.98


def test_identical_numbers_do_not_divide_by_zero():
    found = statistics.estimate(quiet(0.05), confidence=0.95)
    assert found.head.value == pytest.approx(1.05)
    assert found.head.high - found.head.low < 1e-5
    assert found.head.p_greater(math.log(1.01)) == 0.0
    assert found.head.p_less(math.log(1.01)) == found.head.p_greater(math.log(1.06)) == 1.0


def test_one_process_has_no_interval():
    assert statistics.estimate(rows(processes=1), confidence=0.95) is None


def test_a_process_that_stands_apart():
    logs = (0.0, 0.001, -0.001, 0.03, 0.002)
    assert statistics.Ratio(value=1.0, low=0.9, high=1.1, logs=logs).apart(0.02) == (0.03,)
