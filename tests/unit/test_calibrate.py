from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irdiff.run import run_archive
from tests.programs import calibrate
from tests.programs.calibrate import Timed

SAMPLE = Path(__file__).parents[1] / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"


def timed(name: str, ratio: float, score: float, low: float | None = None) -> Timed:
    low = ratio - 0.005 if low is None else low
    rules = {"registers": 1.0} if score > 5 else {}
    return Timed(case=name, ratio=ratio, low=low, scores={"severity": score}, rules=rules)


def test_figures_of_few_values() -> None:
    positive = np.array([True, True, False, False])
    for scores, chance in (
        ([4, 3, 2, 1], 1.0),
        ([1, 2, 3, 4], 0.0),
        ([1, 1, 1, 1], 0.5),
        ([4, 2, 3, 1], 0.75),
    ):
        assert calibrate.auc(np.array(scores), positive) == chance
    assert calibrate.auc(np.array([1.0, 2.0]), np.array([False, False])) is None
    assert calibrate.spearman(np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0, 3.0])) is None
    assert timed("a", 1.02, 1).is_slower(0.01)
    assert not timed("a", 1.02, 1, low=0.99).is_slower(0.01)


def test_a_score_that_follows_the_times_is_found() -> None:
    found = calibrate.report([timed(str(n), 1 + n / 100, float(n)) for n in range(10)], resamples=200)
    assert "10 changed cases with times: 9 slower by 1%, 8 slower by 2%, 5 slower by 5%" in found
    lines = {line.split()[0]: line.split() for line in found.splitlines() if line}
    assert lines["severity"][1] == "+1.00"
    assert lines["severity"][-3:] == ["+1.00", "[+1.00,", "+1.00]"]
    assert lines["registers"][1:] == ["4", "1.0750", "4", "0"]


@pytest.mark.slow
def test_the_sample_of_an_h200() -> None:
    with run_archive.opened(SAMPLE) as folder:
        found = calibrate.of_folder(folder, None, resamples=20)
        assert "86 changed cases with times: 8 slower by 1%, 4 slower by 2%, 2 slower by 5%" in found
        assert "86 of the cases without artifacts" in found
        assert found == calibrate.of_folder(folder, folder / "timing.json", resamples=20)
