"""Target files: the shipped ones, and one of a user."""

from pathlib import Path

import pytest

from irdiff.errors import UsageError
from irdiff.resolve import targets

SHIPPED = Path(__file__).parents[3] / "targets"


def load(tmp_path, text):
    (tmp_path / "xpu.toml").write_text(text)
    return targets.load(tmp_path / "xpu.toml")


def test_shipped_targets():
    found = targets.load_all([SHIPPED])
    assert set(targets.DEFAULT) <= set(found)
    for target in found.values():
        assert set(target.facts) == set(target.sources), f"{target.name}: every figure has its source"


def test_a_file_adds_a_target(tmp_path):
    load(tmp_path, 'backend = "xpu"\narch = "pvc"\nwarp_size = 16\n')
    assert targets.select(["xpu"], [SHIPPED, tmp_path])[0].backend == "xpu"
    with pytest.raises(UsageError, match="no target sm_1"):
        targets.select(["sm_1"], [SHIPPED])
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        targets.load(tmp_path / "zpu.toml")
