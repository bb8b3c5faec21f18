from __future__ import annotations

from pathlib import Path

import pytest

from irdiff.run import run_archive
from tests.programs import calibrate

SAMPLE = Path(__file__).parents[1] / "data" / "gate" / "h200-3.8.0-3.9.0.tar.zst"


@pytest.mark.slow
def test_the_sample_of_an_h200() -> None:
    with run_archive.opened(SAMPLE) as folder:
        found = calibrate.of_folder(folder, None, resamples=20)
        assert "86 changed cases with times: 8 slower by 1%, 4 slower by 2%, 2 slower by 5%" in found
        assert "86 of the cases without artifacts" in found
        assert found == calibrate.of_folder(folder, folder / "timing.json", resamples=20)
