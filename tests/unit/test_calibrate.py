from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.programs import calibrate
from tests.programs.calibrate import Estimate, Timed

SAMPLE = Path(__file__).parents[1] / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"


def timed(name: str, ratio: float, score: float, low: float | None = None) -> Timed:
    return Timed(
        case=name,
        ratio=ratio,
        low=ratio - 0.005 if low is None else low,
        scores={"severity": score},
        rules={"registers": 1.0} if score > 5 else {},
    )


def test_auc_is_the_chance_that_a_slower_case_ranks_higher() -> None:
    positive = np.array([True, True, False, False])
    assert calibrate.auc(np.array([4.0, 3.0, 2.0, 1.0]), positive) == 1.0
    assert calibrate.auc(np.array([1.0, 2.0, 3.0, 4.0]), positive) == 0.0
    assert calibrate.auc(np.array([1.0, 1.0, 1.0, 1.0]), positive) == 0.5
    assert calibrate.auc(np.array([4.0, 2.0, 3.0, 1.0]), positive) == 0.75
    assert calibrate.auc(np.array([1.0, 2.0]), np.array([False, False])) is None


def test_spearman_without_spread_is_undefined() -> None:
    assert calibrate.spearman(np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])) is None
    assert calibrate.spearman(np.array([1.0, 2.0, 9.0]), np.array([5.0, 6.0, 7.0])) == pytest.approx(1.0)


def test_slower_needs_the_whole_interval_above_one() -> None:
    assert calibrate.is_slower(timed("a", 1.02, 1), 0.01)
    assert not calibrate.is_slower(timed("a", 1.02, 1, low=0.99), 0.01)
    assert not calibrate.is_slower(timed("a", 1.009, 1), 0.01)


def test_a_score_that_follows_the_times_is_found() -> None:
    cases = [timed(str(n), 1 + n / 100, float(n)) for n in range(10)]
    found = calibrate.calibrate(cases, resamples=200)
    (row,) = found.predictions
    assert row.slowdown.value == 1.0
    assert row.auc["5%"] == Estimate(value=1.0, low=1.0, high=1.0)
    assert found.positives == {"1%": 9, "2%": 8, "5%": 5}
    registers = next(rule for rule in found.rules if rule.name == "registers")
    assert (registers.cases, registers.median_ratio, registers.slower) == (4, 1.075, 4)
    assert "10 changed cases with times: 9 slower by 1%" in calibrate.report(found)


@pytest.mark.slow
def test_the_sample_of_an_h200(tmp_path: Path) -> None:
    folder = calibrate.unpacked(SAMPLE, tmp_path)
    found = calibrate.of_folder(folder, None, resamples=20)
    assert (found.cases, found.without_artifacts) == (86, 86)
    assert found.positives == {"1%": 8, "2%": 4, "5%": 2}
    assert {row.name for row in found.predictions} >= {"own severity", "severity of its group"}
    assert found == calibrate.of_folder(folder, folder / "timing.json", resamples=20)
