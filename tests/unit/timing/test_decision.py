"""Estimates and verdicts of simulated samples whose truth is known: `bench_statistics`, small.

All is seeded, and a limit is broken where a binomial with that chance would be so only once in 1000 times.
"""

import dataclasses

import numpy as np
import pytest

from irdiff.timing import decision
from irdiff.timing.results import PROCESSES, Speed, Unclear
from tests.programs import bench_statistics, timing_noise
from tests.programs.bench_statistics import Cell, protocol

FAMILIES = {noise.name: noise for noise in timing_noise.FAMILIES}
ONE_HUMPED = "one-humped"


def samples(name=ONE_HUMPED, change=0.0, spread=0.002, seed=0, processes=PROCESSES, case="case"):
    rng = np.random.default_rng(seed)
    rows = timing_noise.samples(FAMILIES[name], change, spread, rng, processes=processes)
    return [dataclasses.replace(row, case=case) for row in rows]


def quiet(change=0.0):
    """Samples of three processes without any noise."""
    return [
        dataclasses.replace(row, elapsed_us=row.launches * 100.0 * (1 + change * (row.arm == "head")))
        for row in samples(processes=3)
    ]


def slower(rows, share, chosen=lambda row: True, arm="head"):
    return [
        dataclasses.replace(row, elapsed_us=row.elapsed_us * (1 + share))
        if row.arm == arm and chosen(row)
        else row
        for row in rows
    ]


def only(rows, rules=None):
    (found,) = decision.decide(rows, rules or protocol()).values()
    return found


def outcome(name, change, trials, processes=PROCESSES):
    facts = {"level": "measured", "change": change, "trials": trials, "processes": processes, "seed": 7}
    return bench_statistics.simulate(Cell(noise=FAMILIES[name], **facts))


def test_times_are_of_one_launch_and_by_process():
    found = decision.process_times(quiet(0.05))
    assert [row.process for row in found] == [0, 1, 2]
    assert found[0].base_us == found[0].base_mean_us == found[0].control_us == pytest.approx(100.0)
    assert found[0].head_us == found[0].head_mean_us == pytest.approx(105.0)
    (first, *_) = decision.process_times(slower(quiet(), 0.06, lambda row: row.round < 4))
    assert first.head_us == pytest.approx(100.0)
    assert first.head_mean_us == pytest.approx(100 + 6 * 3 / 14)  # of 16 samples, one is cut off at each end
    rows = [row for row in samples(processes=3) if (row.process, row.arm) != (1, "control")]
    assert [row.process for row in decision.process_times(rows)] == [0, 2], "it lacks an arm"
    assert decision.estimate([row for row in rows if row.process != 2], confidence=0.95) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_verdicts_are_hardly_ever_wrong(name):
    assert not outcome(name, 0.015, 60).broken
    assert not outcome(name, 0.0, 30).broken


@pytest.mark.parametrize(
    ("rows", "unclear", "words"),
    [
        (samples(processes=17), Unclear.FEW_PROCESSES, "only 17 processes measured it, any other timing verdict needs 18"),
        (slower(samples(), 0.06, lambda row: row.process in (3, 11)), Unclear.TWO_HUMPS, "in 2 of 18 processes"),
        (slower(samples(), 0.03, lambda row: row.process == 9), Unclear.TWO_HUMPS, "in 1 of 18 processes"),
        (slower(samples(), 0.06, lambda row: row.round % 4 == 0), Unclear.TWO_HUMPS, "samples within a process"),
        (
            slower(samples(), 9.0, lambda row: row.round == 5),
            Unclear.TWO_HUMPS,
            "18 of 288 samples of head took more than 1.5 times the median, and 0 of 576 of base",
        ),
        (slower(samples(change=0.02), 0.03, arm="control"), Unclear.CONTROL, "loaded again, may be off by 3"),
        (samples(spread=0.03, seed=3), Unclear.CONTROL, "too wide to lie within 1 % on both sides"),
        (samples(change=0.01), Unclear.THRESHOLD, "is neither within 1 % nor beyond it"),
    ],
)  # fmt: skip
def test_a_case_without_a_verdict_says_why(rows, unclear, words):
    found = only(rows)
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, unclear)
    assert words in found.why


@pytest.mark.slow
def test_the_correction_for_many_cases_is_said():
    rows = samples(change=0.012, spread=0.003, seed=4)
    alone = only(rows)
    assert (alone.speed, alone.unclear, alone.why) == (Speed.SLOWER, None, "")
    assert 0.05 / 61 < alone.p_value < 0.05
    crowd = [row for number in range(60) for row in samples(seed=100 + number, case=f"other {number}")]
    found = decision.decide([*rows, *crowd], protocol())["case"]
    assert found.q_value > alone.q_value
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.MANY_CASES)
    assert found.why.endswith("not after the correction for the number of cases")
