"""Verdicts on simulated samples whose truth is known."""

import math

import numpy as np
import pytest

from irdiff.timing import statistics
from irdiff.timing.results import Sample, Speed

CONFIDENCE = 0.95


def simulate(case, ratio, rng, *, processes=6, rounds=12, placement=0.001, noise=0.004, base_us=100.0):
    """Samples with a random effect a process (memory placement) and noise a sample."""
    rows = []
    for process in range(processes):
        effects = {arm: 1 + rng.normal(0, placement) for arm in ("base", "control", "head")}
        for number in range(rounds):
            for position, arm in enumerate(rng.permutation(["base", "control", "head"])):
                true = base_us * (ratio if arm == "head" else 1.0) * effects[arm]
                rows.append(
                    Sample(
                        gpu="gpu",
                        case=case,
                        process=process,
                        round=number,
                        position=position,
                        arm=str(arm),
                        launches=2,
                        elapsed_us=2 * true * (1 + abs(rng.normal(0, noise))),
                    )
                )
    return rows


def verdicts(ratios, seed=1, **options):
    rng = np.random.default_rng(seed)
    found = {}
    for number, ratio in enumerate(ratios):
        rows = simulate(f"c{number}", ratio, rng, **options)
        found[f"c{number}"] = statistics.estimate(rows, confidence=CONFIDENCE, seed=number)
    return found, statistics.judge(found, threshold=0.01, confidence=CONFIDENCE)


def test_equal_binaries_are_never_called_different():
    _, judged = verdicts([1.0] * 60)
    speeds = [row.speed for row in judged.values()]
    assert not {Speed.SLOWER, Speed.FASTER} & set(speeds)
    assert speeds.count(Speed.SAME) >= 57


@pytest.mark.parametrize(
    ("ratio", "speed"), [(1.02, Speed.SLOWER), (0.98, Speed.FASTER), (1.05, Speed.SLOWER)]
)
def test_power(ratio, speed):
    _, judged = verdicts([ratio] * 40)
    assert [row.speed for row in judged.values()].count(speed) >= 38


def test_at_the_threshold_it_stays_undecided():
    _, judged = verdicts([1.01] * 40)
    wrong = [row for row in judged.values() if row.speed in (Speed.SLOWER, Speed.FASTER)]
    assert len(wrong) <= 2


def test_a_noisy_case_is_unclear_rather_than_same_or_slower():
    _, judged = verdicts([1.0, 1.01] * 20, placement=0.02)
    assert all(row.speed is not Speed.SAME for row in judged.values())
    assert all(row.speed is not Speed.SLOWER for row in judged.values())


def test_the_interval_covers_the_truth():
    found, _ = verdicts([1.0] * 100, seed=7)
    covered = [row.head.low <= 1.0 <= row.head.high for row in found.values()]
    assert 0.90 <= np.mean(covered) <= 1.0


def test_verdicts_are_corrected_for_the_number_of_cases():
    alone, judged_alone = verdicts([1.013])
    many = dict(alone)
    rng = np.random.default_rng(3)
    for number in range(60):
        rows = simulate(f"null{number}", 1.0, rng)
        many[f"null{number}"] = statistics.estimate(rows, confidence=CONFIDENCE, seed=number)
    judged = statistics.judge(many, threshold=0.01, confidence=CONFIDENCE)
    assert judged["c0"].q_value > judged_alone["c0"].q_value


def test_a_ratio_must_leave_the_noise_floor():
    rng = np.random.default_rng(5)
    rows = simulate("c", 1.02, rng)
    shifted = [
        row if row.arm != "control" else Sample(**(vars(row) | {"elapsed_us": row.elapsed_us * 1.03}))
        for row in rows
    ]
    row = statistics.estimate(shifted, confidence=CONFIDENCE, seed=0)
    assert row.noise_floor > 0.025
    judged = statistics.judge({"c": row}, threshold=0.01, confidence=CONFIDENCE)
    assert judged["c"].speed is Speed.UNCLEAR


def test_identical_numbers_do_not_divide_by_zero():
    rows = simulate("c", 1.05, np.random.default_rng(0), placement=0, noise=0)
    row = statistics.estimate(rows, confidence=CONFIDENCE, seed=0)
    assert row.head.value == pytest.approx(1.05)
    judged = statistics.judge({"c": row}, threshold=0.01, confidence=CONFIDENCE)
    assert judged["c"].speed is Speed.SLOWER


def test_one_process_is_not_enough():
    rows = simulate("c", 1.0, np.random.default_rng(0), processes=1)
    assert statistics.estimate(rows, confidence=CONFIDENCE, seed=0) is None


def test_the_estimate_is_of_one_launch():
    rows = simulate("c", 1.0, np.random.default_rng(0), placement=0, noise=0)
    row = statistics.estimate(rows, confidence=CONFIDENCE, seed=0)
    assert row.base_us == pytest.approx(100.0)
    assert row.launches_per_sample == 2
    assert math.isclose(row.head.half_width, 1e-6, abs_tol=1e-5)


def test_no_cases_no_verdicts():
    assert statistics.judge({}, threshold=0.01, confidence=CONFIDENCE) == {}
