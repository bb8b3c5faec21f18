"""Rules of cost: what was measured, what is expected where nothing was, and figures that were counted."""

from dataclasses import replace

import pytest

from irdiff import gate
from irdiff.counted_work import NotCountedWork
from irdiff.gate.objections import Certainty
from irdiff.model import Expected, ExpectedTime, Sides, Verdict
from irdiff.timing.results import Speed
from tests.unit.gate import policies
from tests.unit.gate.policies import CASE, TODAY, timed
from tests.unit.runs import case, run

COST = {"kind": "cost", "percent": 3.0}
TRAFFIC = {"kind": "fact", "facts": ["spills", "spill traffic"]}


def objection(rule, changed, timings=()):
    (outcome,) = gate.evaluate(run(changed), policies.of(rule), timings=timings, today=TODAY).rules
    return [(found.certainty, found.detail) for found in outcome.findings]


def expecting(word):
    expected = ExpectedTime(expected=word, why="the reason")
    return replace(case(CASE, Verdict.CHANGED), expected=expected)


@pytest.mark.parametrize(
    ("word", "objections"),
    [
        (Expected.NO_CHANGE, []),
        (Expected.SLOWER, [(Certainty.VIOLATED, "not timed, and likely slower: the reason")]),
        (Expected.FASTER, [(Certainty.UNKNOWN, "not timed; likely faster, which proves nothing")]),
        (Expected.UNKNOWN, [(Certainty.UNKNOWN, "not timed, and irdiff could not predict its time")]),
    ],
)
def test_what_is_not_timed_holds_only_where_no_change_is_expected(word, objections):
    assert objection(COST, expecting(word)) == objections
    if objections:
        asked = [(Certainty.UNKNOWN, "changed and not timed")]
        assert objection({**COST, "measured_only": True}, expecting(word)) == asked


def test_a_run_without_expectations_is_not_passed():
    assert objection(COST, case(CASE, Verdict.CHANGED))[0][0] is Certainty.UNKNOWN


def test_what_was_measured_takes_the_place_of_what_is_expected():
    same = timed(-0.5, 0.5, Speed.SAME)
    assert objection(COST, expecting(Expected.SLOWER), [same]) == []
    slower = timed(4.0, 5.0, Speed.SLOWER)
    assert objection(COST, expecting(Expected.NO_CHANGE), [slower])[0][0] is Certainty.VIOLATED


def test_a_counted_figure_is_denied_like_any_fact():
    changed = case(CASE, Verdict.CHANGED, base={"spilled_bytes": 0}, head={"spilled_bytes": 64})
    assert objection(TRAFFIC, changed) == [(Certainty.VIOLATED, "spilled_bytes 0 → 64")]


def test_a_figure_that_was_not_counted_is_unknown_beside_others_that_are_known():
    facts = {"spill_store_bytes": 0, "spill_load_bytes": 0}
    changed = case(CASE, Verdict.CHANGED, base=facts, head=facts)
    reason = NotCountedWork(reason="too long: more than 8,000 steps")
    changed = replace(changed, work=Sides(base=reason, head=reason))
    detail = "spill traffic is not known: too long: more than 8,000 steps"
    assert objection(TRAFFIC, changed) == [(Certainty.UNKNOWN, detail)]
