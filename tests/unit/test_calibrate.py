from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irdiff.run import run_archive
from tests.programs import calibrate

SAMPLE = Path(__file__).parents[1] / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"


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


@pytest.mark.slow
def test_the_sample_of_an_h200() -> None:
    with run_archive.opened(SAMPLE) as folder:
        found = calibrate.of_folder(folder, None, resamples=20)
        assert "86 changed cases with times: 8 slower by 1%, 4 slower by 2%, 2 slower by 5%" in found
        assert "86 of the cases without artifacts" in found
        assert found == calibrate.of_folder(folder, folder / "timing.json", resamples=20)
