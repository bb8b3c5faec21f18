"""The gate on a real run: Triton 3.8.0 → 3.9.0 on an H200, 86 changed cases with their timings.

`tests/data/gate/h200-3.8.0-3.9.0.tar.zst` holds `run.json` and `timing.json` of cases whose binaries are
those that were timed; artifacts and the host's name are left out.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from irdiff import gate
from irdiff.gate import policy, timings
from irdiff.gate.outcome import Certainty, Outcome
from irdiff.run import run_archive, run_folder
from irdiff.timing import timing_file

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "gate"
SLOWER = {"loss/cross_entropy:bf16-smooth-50k@sm_90", "normalization/softmax:bf16-64k-online@sm_90"}


def _gate(rules: Path, today: datetime.date) -> Outcome:
    with run_archive.opened(DATA / "h200-3.8.0-3.9.0.tar.zst") as folder:
        run, measured = run_folder.load(folder), timing_file.load(folder)
    assert measured is not None
    assert run.summary.cases == 86
    return gate.evaluate(run, policy.load(rules), timings=timings.of_results(measured), today=today)


def test_the_default_policy_fails_and_says_what_is_slower() -> None:
    outcome = _gate(ROOT / "reports" / "irdiff-policy.toml", datetime.date(2026, 1, 2))
    assert not outcome.passed
    words = {rule.rule.id: rule.word for rule in outcome.rules}
    assert words["slower"] == "deny"
    assert words["wrong-result"] == words["untimed-gate"] == words["broken"] == "pass"
    (slower,) = (rule for rule in outcome.rules if rule.rule.id == "slower")
    violated = [finding for finding in slower.findings if finding.certainty is Certainty.VIOLATED]
    assert {finding.name for finding in violated} == SLOWER
    assert all("on NVIDIA H200" in finding.detail for finding in slower.findings)


def test_what_six_processes_measured_is_not_known_to_be_the_same() -> None:
    outcome = _gate(ROOT / "reports" / "irdiff-policy.toml", datetime.date(2026, 1, 2))
    (slower,) = (rule for rule in outcome.rules if rule.rule.id == "slower")
    unknown = [finding for finding in slower.findings if finding.certainty is Certainty.UNKNOWN]
    assert len(unknown) > 50
    assert all("processes, too few for a verdict" in finding.detail for finding in unknown)


@pytest.mark.parametrize(("today", "passes"), [("2026-12-31", True), ("2027-01-01", False)])
def test_a_policy_with_waivers_passes_until_they_end(today: str, passes: bool) -> None:
    outcome = _gate(DATA / "passing.toml", datetime.date.fromisoformat(today))
    assert outcome.passed is passes
    assert [waiver.owner for waiver in outcome.expired] == ([] if passes else ["release manager"])
