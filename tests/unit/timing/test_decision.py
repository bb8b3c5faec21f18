"""Verdicts on simulated samples whose truth is known: the small version of `python -m tests.programs.bench_statistics`.

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
ONE_HUMPED, TWO_HUMPED = "one-humped", "two-humped head, 1/4 by 6 %"


def samples(name=ONE_HUMPED, change=0.0, spread=0.002, seed=0, processes=PROCESSES, case="case"):
    rng = np.random.default_rng(seed)
    rows = timing_noise.samples(FAMILIES[name], change, spread, rng, processes=processes)
    return [dataclasses.replace(row, case=case) for row in rows]


def only(rows, rules=None):
    (found,) = decision.decide(rows, rules or protocol()).values()
    return found


def slower_head(rows, share, chosen):
    return [
        dataclasses.replace(row, elapsed_us=row.elapsed_us * (1 + share))
        if row.arm == "head" and chosen(row)
        else row
        for row in rows
    ]


def outcome(name, change, trials, processes=PROCESSES, level="measured"):
    return bench_statistics.simulate(
        Cell(noise=FAMILIES[name], level=level, change=change, trials=trials, processes=processes, seed=7)
    )


# the whole decision under noise


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_a_change_of_one_and_a_half_thresholds_is_hardly_ever_the_same(name):
    assert not outcome(name, 0.015, 60).broken


@pytest.mark.slow
def test_a_second_hump_in_a_quarter_of_the_processes_is_hardly_ever_the_same():
    found = outcome(TWO_HUMPED, 0.015, 300)
    assert not found.broken
    assert found.alone[Speed.UNCLEAR] > 150


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_no_change_is_rarely_called_one(name):
    assert not outcome(name, 0.0, 30).broken


@pytest.mark.slow
def test_at_measured_noise_a_change_is_found_and_no_change_is_the_same():
    assert outcome(ONE_HUMPED, 0.02, 60).found >= 57
    assert outcome(ONE_HUMPED, 0.05, 20).found == 20
    assert outcome(ONE_HUMPED, 0.0, 60).alone[Speed.SAME] >= 54


@pytest.mark.parametrize("processes", [2, 3, 6, 17])
def test_fewer_processes_than_the_protocols_give_no_verdict(processes):
    for change in (0.0, 0.0105, 0.05):
        found = outcome(ONE_HUMPED, change, 5, processes)
        assert found.alone == {Speed.UNCLEAR: 5}


# each reason for no verdict, in words


def test_few_processes_are_said():
    found = only(samples(processes=17))
    assert found.unclear is Unclear.FEW_PROCESSES
    assert found.why == "only 17 processes measured it, a verdict needs 18"


def test_a_protocol_of_more_processes_needs_them():
    rows, rules = samples(processes=20), protocol(20)
    assert only(rows, rules).speed is Speed.SAME
    lost = [row for row in rows if row.process != 4]
    assert only(lost, rules).why == "only 19 processes measured it, a verdict needs 20"


def test_processes_in_two_humps_are_said():
    rows = slower_head(samples(), 0.06, lambda row: row.process in (3, 11))
    found = only(rows)
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.TWO_HUMPS)
    assert found.why.startswith("in 2 of 18 processes head is about 6")
    assert "slower than in the others: two humps" in found.why


def test_one_process_apart_is_enough_against_same():
    found = only(slower_head(samples(), 0.03, lambda row: row.process == 9))
    assert found.estimate.head.high < 1.01  # the interval alone would say `same`
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.TWO_HUMPS)


def test_samples_in_two_humps_are_said():
    found = only(slower_head(samples(), 0.06, lambda row: row.round % 4 == 0))
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.TWO_HUMPS)
    assert "samples within a process lie in two humps" in found.why


def test_a_control_that_disagrees_is_said():
    rows = [
        dataclasses.replace(row, elapsed_us=row.elapsed_us * 1.03) if row.arm == "control" else row
        for row in samples(change=0.02)
    ]
    found = only(rows)
    assert found.estimate.noise_floor > 0.025
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.CONTROL)
    assert "base's own binary, loaded again, may be off by 3" in found.why


def test_a_wide_interval_is_said():
    found = only(samples(spread=0.03, seed=3))
    wide = [words for words in found.why.split("; ") if "too wide to lie within 1 % on both sides" in words]
    assert found.speed is Speed.UNCLEAR
    assert wide


def test_an_interval_on_the_threshold_is_said():
    found = only(samples(change=0.01))
    assert (found.speed, found.unclear) == (Speed.UNCLEAR, Unclear.THRESHOLD)
    assert found.why.endswith("is neither within 1 % nor beyond it")


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


def test_no_cases_no_decisions():
    assert decision.decide([], protocol()) == {}
