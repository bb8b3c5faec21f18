"""Timings as the gate reads them: a row of `timing.json`, and a whole recorded run with its timings.

`tests/data/gate/h200-3.8.0-3.9.0.tar.zst` holds `run.json` and `timing.json` of 86 changed cases of Triton 3.8.0 →
3.9.0 on an H200, whose binaries are those that were timed; artifacts and the host's name are left out.
"""

import datetime
from dataclasses import replace
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.gate import acceptance, outputs, policy, timings
from irdiff.gate.objections import Certainty
from irdiff.run import run_archive, run_folder
from irdiff.timing import timing_file
from irdiff.timing.results import CaseTiming, Measurement, OutputStatus, Speed, Unclear
from tests.unit.gate.policies import CASE
from tests.unit.golden import recorded
from tests.unit.runs import blank, check, found, gpu

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "gate"
SLOWER = {"loss/cross_entropy:bf16-smooth-50k@sm_90", "normalization/softmax:bf16-64k-online@sm_90"}


def read(row, *cards):
    (timed,) = timings.of_results(found([row], gpus=cards))
    return timed


def row(status=OutputStatus.EQUAL, side=None, message=""):
    outputs = check(status, side, message)
    return CaseTiming(case=CASE, gpu="GPU-1", outputs=outputs, measurement=None, processes=(), note="")


def measured(**changes):
    fields = {"ratio": 1.05, "ratio_low": 1.04, "ratio_high": 1.06, "noise_floor": 0.002}
    fields |= {"speed": Speed.SLOWER, "unclear": None, "why": "", **changes}
    return replace(row(), measurement=blank(Measurement, **fields))


def test_results_of_both_sides():
    results = ("equal True", "close True", "different False", "fault:head False", "fault False", "fault:base None",
               "hang:control None", "not-launched:head None", "not-checked None")  # fmt: skip
    for said in results:
        status, same = said.split()
        status, _, side = status.partition(":")
        found = read(row(OutputStatus[status.replace("-", "_").upper()], side or None), gpu())
        assert str(found.same_result) == same, said
    for card in (gpu(), gpu(trustworthy=False, throttled=("thermal",))):
        timed = read(row(OutputStatus.HANG, "head", "while timing: gone"), card)
        assert (timed.faulted, timed.note) == (True, "hang at head: while timing: gone")
        assert (timed.speed, timed.low_percent, timed.same_result) == (None, None, False)


def test_a_measurement_and_those_without_a_verdict():
    timed = read(measured(), gpu())
    assert (timed.slower_percent, timed.low_percent) == (pytest.approx(5.0), pytest.approx(4.0))
    assert (timed.noise_percent, timed.device) == (pytest.approx(0.2), "card")
    assert (timed.speed, timed.enough, timed.faulted) == (Speed.SLOWER, True, False)
    for unclear in Unclear:
        timed = read(measured(speed=Speed.UNCLEAR, unclear=unclear, why="because"), gpu())
        enough = unclear in (Unclear.MANY_CASES, Unclear.WIDE, Unclear.THRESHOLD)
        assert (timed.speed, timed.enough, timed.note) == (Speed.UNCLEAR, enough, "because")


def test_figures_that_cannot_be_relied_on_are_none():
    nan, inf = float("nan"), float("inf")
    odd = [{"ratio": nan}, {"noise_floor": nan}, {"noise_floor": inf}, {"ratio_high": inf}]
    odd += [{"ratio_low": low} for low in (-inf, 0.0, 1.055)]
    unfit = gpu(trustworthy=False, throttled=("thermal",))
    for changes, cards in (({}, ()), ({}, (unfit,)), *((changes, (gpu(),)) for changes in odd)):
        timed = read(measured(**changes), *cards)
        assert timed.low_percent is None
        assert timed.note


def _gate(rules, today):
    with run_archive.opened(DATA / "h200-3.8.0-3.9.0.tar.zst") as folder:
        run, measured = run_folder.load(folder), timing_file.load(folder)
    assert measured is not None
    of, day = timings.of_results(measured), datetime.date.fromisoformat(today)
    accepted = acceptance.load(DATA / "passing-accepted.toml")
    return run, gate.evaluate(run, policy.load(rules), timings=of, accepted=accepted, today=day)


def test_the_default_policy_denies_what_is_slower_and_what_is_not_known():
    _, outcome = _gate(ROOT / "reports" / "irdiff-policy.toml", "2026-01-02")
    (slower,) = (rule for rule in outcome.rules if rule.rule.id == "slower")
    assert not outcome.passed
    assert {row.name for row in slower.findings if row.certainty is Certainty.VIOLATED} == SLOWER
    assert len(slower.findings) > 50


@pytest.mark.parametrize(("name", "today"), [("accepted", "2026-12-31"), ("accepted-ended", "2027-01-01")])
def test_what_people_read_of_it(name, today):
    _, outcome = _gate(DATA / "passing.toml", today)
    recorded(f"gate/{name}.txt", outputs.text(outcome))
